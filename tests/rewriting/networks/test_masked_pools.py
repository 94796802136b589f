"""Gradients of ReLUs before max pools: masked where they are fewer, with the same results."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, nn
from tests.conftest import compare_onnx_and_py

WINDOWS = {
    "tiles": {"window": 2},
    "overlap": {"window": 3, "stride": 2, "padding": 1},
    "dilated": {"window": 2, "stride": 1, "dilation": 2},
}


RELUS = {"switch": nn.relu, "maximum": lambda x: pt.maximum(0, x)}


def masked(model):
    """Return the shapes that are masked by comparisons."""
    masks = [n for n in model.graph if n.op_type == "Where"]
    masks = [n for n in masks if n.inputs[0].producer().op_type != "IsNaN"]
    return [tuple(n.outputs[0].shape.numpy()) for n in masks]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("relu", RELUS.values(), ids=RELUS)
def test_the_gradient_is_that_of_the_relu(relu, options, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 2, 8, 6))
    y = nn.max_pool(relu(x), **options)
    g = pt.tensor("g", dtype=dtype, shape=y.type.shape)
    gradient = pt.grad(None, x, known_grads={y: g})
    value = np.random.default_rng(0).integers(-3, 3, (3, 2, 8, 6)).astype(dtype)
    value[0, 0] = -1
    upstream = np.random.default_rng(1).normal(size=(3, *y.type.shape[1:])).astype(dtype)
    upstream[0, 0], upstream[1, 1, 0, 0] = np.nan, np.inf
    program = compare_onnx_and_py([x, g], gradient, [value, upstream], rtol=1e-6)
    assert program(value[:0], upstream[:0])[0].shape == (0, 2, 8, 6)


@pytest.mark.each_value
@pytest.mark.parametrize("options", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("before", [*RELUS.values(), lambda x: 2 * x], ids=[*RELUS, "no relu"])
def test_no_element_beside_nan_has_a_gradient(before, options, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(2, 2, 8, 6))
    value = np.random.default_rng(0).normal(size=(2, 2, 8, 6)).astype(dtype)
    value[0, 0, ::3, ::2] = np.nan
    y = nn.max_pool(before(x), **options)
    compare_onnx_and_py([x], pt.grad(y.sum(), x), [value])


def test_the_smaller_array_is_masked():
    x = pt.tensor("x", dtype="float32", shape=(4, 2, 8, 8))
    y = nn.max_pool(nn.relu(x), 3, stride=2, padding=1)
    gradient = pt.grad((y**2).sum(), x)
    assert masked(export_onnx([x], gradient, verify=False).model) == [(4, 2, 4, 4)]


@pytest.mark.parametrize(
    "gradient",
    [
        lambda x, g: pt.switch(x > 0, g, 1),
        lambda x, g: pt.switch(x > 0, g, np.float64(0)),
        lambda x, g: pt.switch(x > 1, g, 0),
        lambda x, g: pt.switch(x > 0, 0, g),
        lambda x, g: pt.switch(pt.exp(x) > 0, g, 0),
        lambda x, g: [pt.switch(x > 0, g, 0), g],
    ],
    ids=["other value", "other dtype", "other bound", "other side", "other array", "other use"],
)
def test_other_masks_stay(gradient):
    x = pt.tensor("x", dtype="float32", shape=(4, 2, 8, 8))
    y = nn.max_pool(x, 3, stride=2, padding=1)
    results = gradient(x, pt.grad((y**2).sum(), x))
    value = np.random.default_rng(0).normal(size=(4, 2, 8, 8)).astype("float32")
    program = compare_onnx_and_py([x], results, [value], rtol=1e-5)
    assert masked(program.model) == [(4, 2, 8, 8)]
