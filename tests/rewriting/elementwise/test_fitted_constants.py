"""Numbers take the dtype and rank of their operands, with the same results."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.rewriting.elementwise.canonical_forms import fit_numbers
from tests.conftest import compare_onnx_and_py

DTYPES = ["int8", "int64", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_number_takes_dtype_and_rank(dtype):
    x = pt.matrix("x", dtype=dtype)
    graph = FunctionGraph([x], [pt.maximum(x, 0), 1 + x], clone=False)
    fit_numbers.rewrite(graph)
    for node in graph.toposort():
        (number,) = (i for i in node.inputs if isinstance(i, Constant))
        assert (number.type.dtype, number.type.shape) == (dtype, (1, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_keep_their_dtypes(dtype):
    x = pt.matrix("x", dtype=dtype)
    outputs = [pt.maximum(x, 0), x + 1, x * 0.5, x / 2, x // 2, x**2, pt.switch(x > 1, x, 0)]
    compare_onnx_and_py([x], outputs, [np.array([[-3, 2], [5, 0]], dtype)])


def test_a_constant_of_another_use_keeps_its_dtype():
    x, one = pt.vector("x", dtype="float32"), pt.constant(1, dtype="int8")
    f = pytensor.function([x], [x + one, one], mode="ONNX")
    assert [y.dtype for y in f(np.ones(2, "float32"))] == ["float32", "int8"]
