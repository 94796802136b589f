import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

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
