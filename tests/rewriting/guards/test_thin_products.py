"""Products of a column and a short row stay products."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_column_times_a_short_row_is_a_product_with_its_bias(dtype):
    x, w = pt.tensor("x", dtype=dtype, shape=(None, 1)), pt.tensor("w", dtype=dtype, shape=(1, 8))
    bias = pt.tensor("bias", dtype=dtype, shape=(8,))
    special = [[np.nan], [np.inf], [0], [-0.0], [2]]
    values = [np.array(special, dtype), RNG.normal(size=(1, 8)).astype(dtype), np.ones(8, dtype)]
    program = compare_onnx_and_py([x, w, bias], x @ w + bias, values)
    assert op_types(program) == ["Gemm"]
    values[0] = values[0][:0]
    compare_onnx_and_py([x, w, bias], x @ w + bias, values)


def test_wide_rows_single_numbers_and_integers_are_broadcast():
    x = pt.matrix("x", shape=(None, 1))
    for width in (1, None, 1000):
        w = pt.matrix("w", shape=(1, width))
        values = [RNG.normal(size=(5, 1)), RNG.normal(size=(1, width or 3))]
        assert "Mul" in op_types(compare_onnx_and_py([x, w], x @ w, values))
    n, m = (
        pt.tensor("n", dtype="int64", shape=(None, 1)),
        pt.tensor("m", dtype="int64", shape=(1, 4)),
    )
    values = [np.array([[2**62], [3]]), np.array([[1, 2, 3, 4]])]
    assert op_types(compare_onnx_and_py([n, m], n @ m, values)) == ["Mul"]
