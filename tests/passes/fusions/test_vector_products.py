import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
VECTOR = np.array([1.0, -1.0, 2.0])


@pytest.mark.parametrize(
    "build", [lambda x, v: pt.dot(v, x), lambda x, v: v @ x, lambda x, v: v @ v]
)
def test_a_vector_on_the_left_needs_no_other_node(build):
    x, v = pt.matrix("x"), pt.vector("v")
    program = compare_onnx_and_py([x, v], build(x, v), [MATRIX.T, VECTOR])
    assert op_types(program) == ["MatMul"]


def test_a_constant_vector_on_the_left_stays_a_vector():
    x, weights = pt.tensor3("x"), pytensor.shared(VECTOR, name="weights")
    values = [np.stack([MATRIX.T, -MATRIX.T])]
    for result in (weights @ x, (weights[None] @ x).squeeze(1)):
        program = compare_onnx_and_py([x], result, values)
        assert op_types(program) == ["MatMul"]
        assert program.model.graph.initializers["weights"].shape == [3]


def test_a_state_of_one_row_stays_a_matrix():
    x, row = pt.matrix("x", shape=(3, 2)), pytensor.shared(VECTOR[None], name="row", shape=(1, 3))
    program = export_onnx([x], (row @ x).squeeze(0), updates={row: 2 * row})
    assert program.model.graph.inputs[1].shape == [1, 3]
    for factor in (1, 2):
        np.testing.assert_allclose(program(MATRIX.T), factor * VECTOR @ MATRIX.T)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_products_with_vectors_of_any_length(rows, columns, dtype):
    x, u, v = pt.matrix("x", dtype=dtype), pt.vector("u", dtype=dtype), pt.vector("v", dtype=dtype)
    values = [MATRIX[:rows, :columns], MATRIX[:rows, 0], VECTOR[:columns]]
    values = [value.astype(dtype) for value in values]
    compare_onnx_and_py([x, u, v], [x @ v, u @ x, u @ u, u @ x @ v], values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transposed_matrices_times_vectors_are_right(dtype):
    x, v = pt.matrix("x", dtype=dtype), pt.vector("v", dtype=dtype)
    results = [x.T @ v, pt.exp(x.T) @ v, (x.T + (2 * x).T) @ v, v @ x, x @ (v @ x)]
    results += pt.grad(((x.T @ v) ** 2).sum(), [x, v])
    compare_onnx_and_py([x, v], results, [MATRIX.astype(dtype), VECTOR[:2].astype(dtype)])


def test_a_product_with_another_use_stays_a_matrix():
    x, v = pt.matrix("x"), pt.vector("v")
    column = x @ v[:, None]
    program = compare_onnx_and_py([x, v], [column, column[:, 0] * 2], [MATRIX, VECTOR])
    assert op_types(program).count("MatMul") == 1


def test_a_constant_vector_serves_all_its_products():
    x, v = pt.matrix("x"), pt.vector("v")
    weights = pt.constant(VECTOR)
    program = compare_onnx_and_py(
        [x, v], [x @ weights, pt.dot(weights, v), pt.dot(v, weights)], [MATRIX, VECTOR]
    )
    constants = [value.const_value for value in program.model.graph.initializers.values()]
    assert sum(c.numpy().tobytes() == VECTOR.tobytes() for c in constants) <= 2
