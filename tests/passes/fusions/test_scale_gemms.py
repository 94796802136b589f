"""Numbers that multiply a product are the ``alpha`` of its Gemm."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.nn import conv2d
from tests.conftest import compare_onnx_and_py, op_types

X = np.array([[1.0, 2.0, -3.0], [0.5, np.nan, 4.0]])
W = np.array([[1.0, 0.5], [-2.0, 1.5], [3.0, np.inf]])


def compare(dtype, graph, **options):
    x, w = pt.tensor("x", dtype=dtype, shape=(None, 3)), pt.tensor("w", dtype=dtype, shape=(3, 2))
    values = X.astype(dtype), W.astype(dtype)
    return compare_onnx_and_py([x, w], graph(x, w), values, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(-1, 2, 1), (-1,), (4, -1)], ids=str)
def test_a_number_that_the_attribute_holds_is_alpha(dtype, shape):
    def graph(x, w):
        rate = np.float32(1e-3).astype(dtype)
        return [pt.exp(x).T @ x * rate, -2 * (x @ w).reshape(shape)]

    program = compare(dtype, graph, rtol=1e-6)
    found = [node for node in program.model.graph if node.op_type == "Gemm"]
    alphas = [node.attributes["alpha"].as_float() for node in found]
    assert sorted(alphas) == [-2, pytest.approx(1e-3)]
    assert "Mul" not in op_types(program)


@pytest.mark.parametrize(
    "graph",
    [
        lambda x, w: x @ w * 1e-3,
        lambda x, w: (x @ w + w[0]) * 0.5,
        lambda x, w: (x @ w)[:, None] * np.array([0.5, 2.0]),
        lambda x, w: [x @ w, (x @ w) * 0.5],
    ],
    ids=["rounded", "bias", "vector", "other use"],
)
def test_other_factors_stay(graph):
    program = compare("float64", graph, rtol=1e-12)
    gemms = [node for node in program.model.graph if node.op_type == "Gemm"]
    assert not any("alpha" in node.attributes for node in gemms)


def test_a_gradient_step_multiplies_no_filters():
    shapes = (8, 4, 6, 6), (5, 4, 3, 3), (6, 5, 1, 1)
    x, *weights = (pt.tensor(dtype="float32", shape=shape) for shape in shapes)
    y = conv2d(conv2d(x, weights[0], 1, filter_flip=False), weights[1], filter_flip=False)
    gradients = pt.grad((y**2).mean(), weights)
    steps = [w - np.float32(1e-2) * g for w, g in zip(weights, gradients, strict=True)]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype("float32") for shape in shapes]
    program = compare_onnx_and_py([x, *weights], steps, values, rtol=1e-4, atol=1e-5)
    filters = {(5, 4, 3, 3), (6, 5, 1, 1)}
    scaled = [n for n in program.model.graph if n.op_type == "Mul"]
    assert not any(tuple(node.outputs[0].shape.numpy()) in filters for node in scaled)
