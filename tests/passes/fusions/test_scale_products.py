import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

RNG = np.random.default_rng(3)


def numbers(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype) + np.asarray(3, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rank", [2, 3])
def test_a_layer_scale_is_part_of_the_weights_and_the_bias(rank, dtype):
    x = pt.tensor("x", shape=(None,) * (rank - 1) + (5,), dtype=dtype)
    w, b, s = (numbers(*shape, dtype=dtype) for shape in [(5, 4), (4,), (4,)])
    value = RNG.normal(size=(3,) * (rank - 1) + (5,)).astype(dtype)
    for graph, operators in (
        ((x @ w + b) * s, [["Gemm"], ["MatMul", "Add"]]),
        ((x @ w) * s, [["MatMul"]]),
    ):
        tolerance = 1e-4 if dtype == "float32" else 1e-12
        program = compare_onnx_and_py([x], graph, [value], rtol=tolerance, atol=tolerance)
        assert op_types(program) in operators
        compare_onnx_and_py([x], graph, [value[:0]])
        compare_onnx_and_py([x], graph, [value[:1]], rtol=tolerance, atol=tolerance)
    value[0, ..., 0], value[1, ..., 1] = np.inf, np.nan
    compare_onnx_and_py([x], (x @ w + b) * s, [value], rtol=1e-4)


@pytest.mark.parametrize("factor", [0.0, 1e-39, 1e38, np.inf])
def test_factors_that_lose_digits_or_overflow_stay(factor):
    x = pt.matrix("x", dtype="float32")
    s = numbers(4)
    s[1] = factor
    product = (x @ numbers(5, 4)) * s
    program = compare_onnx_and_py([x], product, [RNG.random((3, 5)).astype("float32")], rtol=1e-4)
    assert op_types(program) == ["MatMul", "Mul"]


def test_products_with_other_uses_and_factors_of_rows_stay():
    x = pt.matrix("x", dtype="float32")
    y = x @ numbers(5, 4)
    program = compare_onnx_and_py([x], [y * numbers(4), y], [numbers(4, 5)], rtol=1e-4)
    assert op_types(program) == ["MatMul", "Mul"]
    program = compare_onnx_and_py([x], y * numbers(4, 1), [numbers(4, 5)], rtol=1e-4)
    assert op_types(program) == ["MatMul", "Mul"]
    z = pt.tensor("z", shape=(None, 1), dtype="float32")
    program = compare_onnx_and_py([z], (z @ numbers(1, 1)) * numbers(4), [numbers(3, 1)], rtol=1e-4)
    assert "Mul" in op_types(program)


def test_scaled_weights_keep_their_names():
    x = pt.matrix("x", dtype="float32")
    w, b = pytensor.shared(numbers(5, 4), name="w"), pytensor.shared(numbers(4), name="b")
    program = export_onnx([x], (x @ w + b) * numbers(4))
    assert set(program.model.graph.initializers) == {"w", "b"}
