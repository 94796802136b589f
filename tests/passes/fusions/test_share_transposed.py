import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import op_types

RNG = np.random.default_rng(0)


def tied(shape, dtype="float32", rank=3):
    """Return the input and output of a network that begins and ends with one matrix."""
    w = pytensor.shared(RNG.normal(size=shape).astype(dtype), name="w")
    x = pt.tensor("x", dtype=dtype, shape=(*(None,) * (rank - 1), shape[0]))
    return x, pt.tanh(x @ w) @ w.T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_used_both_ways_are_stored_once(dtype):
    x, y = tied((40, 30), dtype)
    program = export_onnx([x], y)
    assert list(program.model.graph.initializers) == ["w"]
    assert op_types(program).count("Transpose") == 1


def test_matrices_of_rank_two_need_no_node_for_it():
    x, y = tied((40, 30), rank=2)
    program = export_onnx([x], y)
    assert list(program.model.graph.initializers) == ["w"]
    assert op_types(program) == ["MatMul", "Tanh", "Gemm"]


def test_small_different_or_only_transposed_weights_are_unchanged():
    x, y = tied((4, 3))
    assert "Transpose" not in op_types(export_onnx([x], y))
    first = pytensor.shared(RNG.normal(size=(40, 40)), name="first")
    second = pytensor.shared(first.get_value().copy(), name="second")
    second.get_value(borrow=True)[3, 5] += 1e-12
    x = pt.tensor3("x")
    program = export_onnx([x], x @ first @ second.T)
    assert "Transpose" not in op_types(program)
    assert len(program.model.graph.initializers) == 2


def test_bias_is_added_to_its_product_before_residual_connections():
    w, b = (pytensor.shared(RNG.normal(size=s), name=n) for s, n in (((4, 4), "w"), (4, "b")))
    x = pt.tensor("x", shape=(None, 4))
    program = export_onnx([x], pt.exp(x + (x @ w + b)))
    assert op_types(program) == ["Gemm", "Add", "Exp"]
    assert [value.name for value in next(iter(program.model.graph)).inputs] == ["x", "w", "b"]
