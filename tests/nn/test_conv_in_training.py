"""Convolutions of small images beside the gradients of their filters, as in training."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.nn import conv2d
from tests.conftest import compare_onnx_and_py, op_types
from tests.nn import convolution as numpy_conv

GEOMETRIES = {
    "plain": ([(1, 1), (0, 2)], (1, 1), (1, 1)),
    "strided": ([(1, 0), (1, 1)], (2, 3), (1, 1)),
    "dilated": ([(2, 2), (0, 1)], (1, 2), (2, 3)),
}


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def step(images, filters, *, batch, dtype="float32", bias=False, **options):
    """Return inputs, and a convolution with the gradient of its filters."""
    x = pt.tensor(dtype=dtype, shape=(batch, *images[1:]))
    w = pt.tensor(dtype=dtype, shape=filters)
    b = pt.tensor(dtype=dtype, shape=filters[:1])
    y = conv2d(x, w, filter_flip=False, bias=b if bias else None, **options)
    g = y.type()
    inputs = [x, w, g, b] if bias else [x, w, g]
    return inputs, [y, pt.grad(None, w, known_grads={y: g})]


@pytest.mark.each_value
@pytest.mark.parametrize("batch", [3, 9, None])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_results_are_their_definition(name, batch):
    # From eight images on, the windows of one channel are gathered for all of them.
    pads, strides, dilations = GEOMETRIES[name]
    options = {"border_mode": pads, "subsample": strides, "filter_dilation": dilations}
    shapes = (batch or 3, 4, 5, 6), (7, 4, 3, 2)
    inputs, outputs = step(*shapes, batch=batch, bias=True, **options)
    x, w, b = drawn(*shapes, (7,))
    x[1, 2, 0, 0], x[2, 1, 2, 3] = np.nan, np.inf
    y = numpy_conv.correlate(x, w, *GEOMETRIES[name])
    (g,) = drawn(y.shape)
    program = compare_onnx_and_py(inputs, outputs, [x, w, g, b], rtol=1e-4, atol=1e-4)
    expected = [
        y + b[:, None, None],
        numpy_conv.filter_gradient(x, g, w.shape[2:], *GEOMETRIES[name]),
    ]
    for found, result in zip(program(x, w, g, b), expected, strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-4)
    if batch is None:
        empty = program(x[:0], w, g[:0], b)
        assert empty[0].shape == (0, *y.shape[1:])
        assert not empty[1].any()


@pytest.mark.each_value
@pytest.mark.parametrize("batch", [2, 9, None])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_filters_of_one_channel_each(name, batch):
    pads, strides, dilations = GEOMETRIES[name]
    options = {"border_mode": pads, "subsample": strides, "filter_dilation": dilations}
    shapes = (batch or 3, 4, 4, 3), (4, 1, 3, 2)
    inputs, outputs = step(*shapes, batch=batch, bias=True, num_groups=4, **options)
    x, w, b = drawn(*shapes, (4,))
    x[0, 2, 0, 0], x[1, 1, 2, 2] = np.nan, np.inf
    y = numpy_conv.correlate(x, w, *GEOMETRIES[name], 4)
    (g,) = drawn(y.shape)
    g[1, 0, 0, 0] = -np.inf
    program = compare_onnx_and_py(inputs, outputs, [x, w, g, b], rtol=1e-4, atol=1e-4)
    with np.errstate(invalid="ignore"):
        gradient = numpy_conv.filter_gradient(x, g, w.shape[2:], *GEOMETRIES[name], 4)
    for found, result in zip(program(x, w, g, b), [y + b[:, None, None], gradient], strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-4)
    if batch is None:
        empty = program(x[:0], w, g[:0], b)
        assert empty[0].shape == (0, *y.shape[1:])
        assert not empty[1].any()


def test_gradients_of_filters_of_one_channel_are_summed_accurately():
    x, g = (pt.tensor(dtype="float32", shape=(None, 2, 20, 20)) for _ in range(2))
    w = pt.tensor(dtype="float32", shape=(2, 1, 3, 3))
    y = conv2d(x, w, (1, 1), filter_flip=False, num_groups=2)
    program = export_onnx([x, g], pt.grad(None, w, known_grads={y: g}), verify=False)
    assert "MatMul" not in op_types(program)
    values = [v + 1 for v in drawn((300, 2, 20, 20), (300, 2, 20, 20))]
    geometry = [(1, 1)] * 2, (1, 1), (1, 1), 2
    exact = numpy_conv.filter_gradient(*(v.astype("float64") for v in values), (3, 3), *geometry)
    np.testing.assert_allclose(program(*values), exact, rtol=2e-6)
