import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError, compile_onnx
from tests.conftest import compare_onnx_and_py, op_types

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64"),
]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2), (0,), (2, 0)])
def test_positions_are_those_of_numpy_along_each_axis(shape, dtype):
    value = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
    x = pt.tensor("x", dtype=dtype, shape=(None,) * len(shape))
    compare_onnx_and_py([x], [*pt.nonzero(x), pt.flatnonzero(x), *pt.where(x)], [value])


def test_nan_and_the_smallest_number_are_not_zero_but_minus_zero_is():
    value = np.array([np.nan, -0.0, 0.0, np.inf, 5e-324])
    x = pt.vector("x")
    compare_onnx_and_py([x], [pt.flatnonzero(x), pt.nonzero_values(x)], [value])


def test_all_positions_come_from_one_operator():
    x = pt.tensor3("x", dtype="bool")
    program = compare_onnx_and_py([x], pt.nonzero(x), [np.arange(24).reshape(2, 3, 4) % 5 < 2])
    assert op_types(program) == ["NonZero", "Gather", "Gather", "Gather"]


def test_positions_along_all_axes_are_known_to_be_equally_many():
    x, mask = pt.matrix("x"), pt.matrix("mask", dtype="bool")
    rows, columns = pt.nonzero(mask)
    value = np.arange(12.0).reshape(3, 4)
    program = compare_onnx_and_py([x, mask], x[rows, columns], [value, value % 5 < 2])
    assert "Expand" not in op_types(program)


def test_an_array_must_have_as_many_elements_as_there_are_positions():
    x, n = pt.vector("x", shape=(4,)), pt.lscalar("n")
    positions = pt.argsort(pt.nonzero_values(x))
    result = pt.switch(pt.constant(np.array([1, 2])), n, positions)
    compare_onnx_and_py([x, n], result, [np.array([0.0, 1, 2, 0]), 7])
    with pytest.raises(PyTensorONNXError):
        compile_onnx([x, n], result, verify=False)(np.ones(4), 7)
