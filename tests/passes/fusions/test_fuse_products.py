"""A Relu before a Clip becomes part of it: the runtime refuses both in float64."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

X = np.array([[1.0, 2.0, -3.0], [0.5, -1.0, 4.0]])
W = np.array([[1.0, 0.5], [-2.0, 1.5], [3.0, 0.25]])
FLOATS = ["float32", "float64"]


def variables(dtype, **shapes):
    return [pt.tensor(name, dtype=dtype, shape=shape) for name, shape in shapes.items()]


def compare(inputs, outputs, dtype, values, **options):
    values = [np.asarray(value).astype(dtype) for value in values]
    return compare_onnx_and_py(inputs, outputs, values, **options)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2,), (1, 2), (None, 2), (1, 1), (), (None, 1), (1,)], ids=str)
def test_a_bias_that_broadcasts_one_way_is_fused(shape, dtype):
    x, w, b = variables(dtype, x=(None, 3), w=(3, 2), b=shape)
    named = {"x": {0: "batch"}, **({"b": {0: "batch"}} if None in shape else {})}
    value = np.arange(1.0, 1 + np.prod([n or 2 for n in shape])).reshape([n or 2 for n in shape])
    for result in (x @ w + b, b + x @ w):
        program = compare([x, w, b], result, dtype, [X, W, value], dynamic_axes=named)
        assert op_types(program) == ["Gemm"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5, 1, 1), (5, 2)], ids=str)
def test_a_bias_that_grows_the_product_is_added(shape, dtype):
    x, w, b = variables(dtype, x=(1, 3), w=(3, 2), b=shape)
    program = compare([x, w, b], x @ w + b, dtype, [X[:1], W, np.ones(shape)])
    assert "Gemm" not in op_types(program)


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64"])
def test_other_dtypes_are_right(dtype):
    x, w, b = variables(dtype, x=(None, 3), w=(3, 2), b=(2,))
    compare([x, w, b], [x @ w + b, x.T @ x], dtype, [X, W, [1, 2]], atol=1e-2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_product_with_another_use_stays(dtype):
    x, w, b = variables(dtype, x=(None, 3), w=(3, 2), b=(2,))
    product = x @ w
    program = compare([x, w, b], [product + b, pt.exp(product)], dtype, [X, W, [1, 2]])
    assert op_types(program).count("MatMul") == 1
    program = compare([x, w, b], [product + b, product], dtype, [X, W, [1, 2]])
    assert "Gemm" not in op_types(program)
    program = compare([x, w], product + product, dtype, [X, W])
    assert op_types(program).count("MatMul") == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_transposes_without_other_uses_are_fused(dtype):
    x, y, b = variables(dtype, x=(None, 3), y=(None, 3), b=(3,))
    for result in (x.T @ y, x @ y.T, x.T @ y + b):
        program = compare([x, y, b], result, dtype, [X, X + 1, [1, 2, 3]])
        assert op_types(program) == ["Gemm"]
    program = compare([x, y], [x.T @ y, pt.exp(x.T)], dtype, [X, X + 1])
    assert sorted(op_types(program)) == ["Exp", "MatMul", "Transpose"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 2), (2, 0), (0, 0), (1, 1)])
def test_empty_matrices_with_a_bias(rows, columns, dtype):
    x, y, b = variables(dtype, x=(None, None), y=(None, None), b=(1, 1))
    values = [np.ones((rows, columns)), np.ones((rows, columns)), [[1.5]]]
    compare([x, y, b], [x.T @ y + b, x @ y.T + b], dtype, values)


def test_batches_are_not_fused():
    x, y = pt.tensor3("x"), pt.tensor("y", shape=(None, 3, 2))
    program = compare_onnx_and_py([x, y], x @ y + 1, [X[None], W[None]])
    assert op_types(program) == ["MatMul", "Add"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_network_and_its_gradients_equal_those_written_by_hand(dtype):
    rng = np.random.default_rng(0)

    def parameter(name, *shape):
        return pytensor.shared(rng.normal(size=shape).astype(dtype), name=name)

    x, y = variables(dtype, x=(None, 3), y=(None, 2))
    first, second = parameter("first", 3, 4), parameter("second", 4, 2)
    bias, shift = parameter("bias", 4), parameter("shift", 2)
    parameters = [first, bias, second, shift]
    inner = pt.maximum(x @ first + bias, 0)
    cost = ((inner @ second + shift - y) ** 2).sum()
    values = [rng.normal(size=(5, 3)), rng.normal(size=(5, 2))]
    program = compare(
        [x, y],
        [cost, *pt.grad(cost, parameters)],
        dtype,
        values,
        dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
        atol=1e-5 if dtype == "float32" else 1e-13,
    )
    operators = op_types(program)
    assert operators.count("Gemm") + operators.count("MatMul") == 5
    needless = {"Transpose", "Identity", "Reshape", "Expand", "Shape", "If", "Unsqueeze", "Add"}
    assert not needless & set(operators)


VALUES = [-1.0, 0.0, 0.3, 1.0, 3.0, np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (0.5, 2), (-2, -1)])
def test_a_rectified_value_is_clipped(low, high, dtype):
    x = pt.vector("x", dtype=dtype)
    result = pt.clip(pt.maximum(x, 0), low, high)
    program = compare_onnx_and_py([x], result, [np.array(VALUES, dtype)])
    assert op_types(program) == ["Clip"]


def test_a_rectified_value_is_clipped_in_a_function():
    x = pt.vector("x")
    op = OpFromGraph([x], [pt.clip(pt.maximum(x, 0), 0.5, 2)], name="relu2")
    compare_onnx_and_py([x], op(x), [np.array(VALUES)])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (0.5, 2), (-2, -1)])
def test_a_rectified_value_may_come_from_a_function_or_go_to_one(low, high, dtype):
    x = pt.vector("x", dtype=dtype)
    bounds = [pt.scalar(name, dtype=dtype) for name in ("low", "high")]
    numbers = [np.array(n, dtype) for n in (low, high)]
    rectified = OpFromGraph([x], [pt.maximum(x, 0)], name="rectified")
    clipped = OpFromGraph([x], [pt.clip(x, *numbers)], name="clipped")
    clipped_to = OpFromGraph([x, *bounds], [pt.clip(x, *bounds)], name="clipped_to")
    relu2 = OpFromGraph([x, *bounds], [pt.clip(pt.maximum(x, 0), *bounds)], name="relu2")
    results = [
        clipped(pt.maximum(x, 0)),
        pt.clip(rectified(x), *numbers),
        clipped(rectified(x)),
        clipped_to(pt.maximum(x, 0), *numbers),
        relu2(x, *numbers),
    ]
    for result in results:
        compare_onnx_and_py([x], result, [np.array(VALUES, dtype)])


def test_a_relu_that_is_used_elsewhere_stays():
    x = pt.vector("x")
    y = pt.maximum(x, 0)
    program = compare_onnx_and_py([x], [pt.clip(y, 0, 2), y], [np.array(VALUES)])
    assert sorted(op_types(program)) == ["Clip", "Relu"]


def test_bounds_that_are_computed_stay_bounds():
    x, low = pt.vector("x"), pt.scalar("low")
    result = pt.clip(pt.maximum(x, 0), low, 2)
    program = compare_onnx_and_py([x, low], result, [np.array(VALUES), -1.0])
    assert "Relu" in op_types(program)


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
