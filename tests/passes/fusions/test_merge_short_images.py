"""Convolutions of short images: one product for all images of a batch, with the same results."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.nn import conv1d, conv2d
from tests.conftest import compare_onnx_and_py, op_types
from tests.nn import convolution as numpy_conv


def values_of(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def variables(values, batch=None):
    shapes = [v.shape if i or batch else (None, *v.shape[1:]) for i, v in enumerate(values)]
    return [pt.tensor(dtype="float32", shape=shape) for shape in shapes]


GEOMETRIES = {
    "plain": ([(0, 0), (0, 0)], (1, 1), (1, 1)),
    "padded": ([(1, 1), (2, 0)], (1, 1), (1, 1)),
    "strided": ([(1, 1), (1, 1)], (2, 3), (1, 1)),
    "dilated": ([(2, 2), (3, 1)], (1, 2), (2, 1)),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolutions_of_a_known_batch_have_a_depth(geometry):
    pads, strides, dilations = GEOMETRIES[geometry]
    values = values_of((3, 64, 3, 4), (160, 64, 3, 2), (160,))
    values[0][1, 4, 1, 1], values[0][2, 1, 2, 0] = np.nan, np.inf
    x, w, b = variables(values, batch=3)
    y = conv2d(x, w, pads, strides, False, dilations, bias=b)
    program = compare_onnx_and_py([x, w, b], y, values, rtol=1e-4, atol=1e-4)
    (conv,) = (node for node in program.model.graph if node.op_type == "Conv")
    assert len(conv.inputs[0].shape) == 5
    expected = numpy_conv.correlate(*values[:2], *GEOMETRIES[geometry])
    (found,) = program(*values)
    np.testing.assert_allclose(found, expected + values[2][:, None, None], rtol=1e-4, atol=1e-4)


@pytest.mark.each_value
@pytest.mark.parametrize("batch", [3, 9, None])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_gradients_of_images_are_the_sums_of_one_product(geometry, batch):
    pads, strides, dilations = GEOMETRIES[geometry]
    values = values_of((batch or 3, 64, 3, 4), (160, 64, 3, 2))
    x, w = variables(values, batch)
    y = conv2d(x, w, pads, strides, False, dilations)
    g = y.type()
    counts = numpy_conv.correlate(*values, *GEOMETRIES[geometry]).shape
    values += values_of(counts)
    values[2][1, 4, 0, 0], values[2][2, 1, 0, 1] = np.nan, -np.inf
    gradient = pt.grad(None, x, known_grads={y: g})
    program = compare_onnx_and_py([x, w, g], gradient, values, rtol=1e-4, atol=1e-3)
    sums = {"Col2Im"} if batch == 3 else {"Gather", "ReduceSum"}
    assert {"Gemm", "Col2Im", "Gather", "ReduceSum"} & set(op_types(program)) == {"Gemm", *sums}
    expected = numpy_conv.image_gradient(values[2], values[1], (3, 4), *GEOMETRIES[geometry])
    (found,) = program(*values)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    if batch is None:
        assert program(values[0][:0], values[1], values[2][:0])[0].shape == (0, 64, 3, 4)


@pytest.mark.parametrize(("size", "taps", "pad"), [(2, 3, 1), (1, 3, 1), (3, 2, 1)])
def test_images_of_few_elements_have_few_products(size, taps, pad):
    # Images of 2 x 2 with filters of 3 x 3: an element is the sum of four products, not nine.
    values = values_of((8, 160, size, size), (200, 160, taps, taps))
    x, w = variables(values, batch=8)
    y = conv2d(x, w, pad, filter_flip=False)
    g = y.type()
    values += values_of(y.type.shape)
    values[2][3, 7, 0, 0] = np.nan
    gradient = pt.grad(None, x, known_grads={y: g})
    program = compare_onnx_and_py([x, w, g], gradient, values, rtol=1e-4, atol=1e-3)
    assert "Col2Im" not in op_types(program)
    geometry = [(pad, pad)] * 2, (1, 1), (1, 1)
    expected = numpy_conv.image_gradient(values[2], values[1], (size, size), *geometry)
    np.testing.assert_allclose(program(*values)[0], expected, rtol=1e-4, atol=1e-3)
    (gather,) = (node for node in program.model.graph if node.op_type == "Gather")
    assert gather.inputs[1].const_value.size == size**2 * min(size, taps) ** 2


@pytest.mark.parametrize("taps", [3, 1])
def test_large_filters_are_the_first_factor(taps):
    # The runtime packs the second factor: 40 elements here, and half a million filter weights.
    channels = 1152 // taps**2
    values = values_of((10, channels, 2, 2), (512, channels, taps, taps), (10, 512, 2, 2))
    values[2][3, 7, 1, 0] = np.nan
    x, w, g = variables(values, batch=10)
    y = conv2d(x, w, taps // 2, filter_flip=False)
    gradient = pt.grad(None, x, known_grads={y: g})
    program = compare_onnx_and_py([x, w, g], gradient, values, rtol=1e-4, atol=1e-3)
    (gemm,) = (node for node in program.model.graph if node.op_type == "Gemm")
    assert tuple(gemm.inputs[0].shape.numpy()) == (512, channels * taps**2)
    geometry = [(taps // 2,) * 2] * 2, (1, 1), (1, 1)
    expected = numpy_conv.image_gradient(values[2], values[1], (2, 2), *geometry)
    np.testing.assert_allclose(program(*values)[0], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("batch", [3, None])
def test_filters_of_one_tap_are_a_product(batch):
    values = values_of((3, 96, 3, 3), (160, 96, 1, 1), (3, 160, 3, 3))
    values[0][1, 4, 1, 1], values[2][1, 4, 0, 0], values[2][2, 1, 0, 1] = np.inf, np.nan, -np.inf
    x, w, _ = variables(values, batch)
    y = conv2d(x, w, filter_flip=False)
    g = y.type()
    outputs = [y, *pt.grad(None, [x, w], known_grads={y: g})]
    program = compare_onnx_and_py([x, w, g], outputs, values, rtol=1e-4, atol=1e-4)
    # A batch that is not known may be empty, so that its Conv stays.
    convolutions = {"Conv", "ConvTranspose", "Col2Im"} & set(op_types(program))
    assert convolutions == (set() if batch else {"Conv"})
    geometry = [(0, 0), (0, 0)], (1, 1), (1, 1)
    expected = [
        numpy_conv.correlate(*values[:2], *geometry),
        numpy_conv.image_gradient(values[2], values[1], (3, 3), *geometry),
        numpy_conv.filter_gradient(values[0], values[2], (1, 1), *geometry),
    ]
    for found, result in zip(program(*values), expected, strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-4)
    if batch is None:
        empty = [values[0][:0], values[1], values[2][:0]]
        y, gx, gw = program(*empty)
        assert (y.shape, gx.shape, gw.any()) == ((0, 160, 3, 3), (0, 96, 3, 3), False)


def test_the_transposed_images_of_a_product_are_shared_with_the_gradient_of_its_filters():
    x, w = variables(values_of((3, 64, 3, 3), (160, 64, 1, 1)), batch=3)
    y = conv2d(x, w, filter_flip=False)
    types = op_types(export_onnx([x, w], pt.grad((y**2).sum(), [x, w]), verify=False))
    # Images, products, the gradient and the result, each once.
    assert types.count("Transpose") == 4


@pytest.mark.parametrize("bias", [True, False])
def test_one_tap_along_one_axis_is_a_product_unless_there_is_a_bias(bias):
    values = values_of((2, 256, 5), (256, 256, 1), (256,))
    x, w, b = variables(values, batch=2)
    y = conv1d(x, w, filter_flip=False, bias=b if bias else None)
    inputs, given = ([x, w, b], values) if bias else ([x, w], values[:2])
    program = compare_onnx_and_py(inputs, y, given, rtol=1e-4, atol=1e-4)
    assert ("Conv" in op_types(program)) == bias


def test_a_convolution_along_one_axis_has_a_depth():
    values = values_of((2, 128, 6), (256, 128, 3))
    x, w = variables(values, batch=2)
    program = compare_onnx_and_py(
        [x, w], conv1d(x, w, 1, filter_flip=False), values, rtol=1e-4, atol=1e-4
    )
    (conv,) = (node for node in program.model.graph if node.op_type == "Conv")
    assert len(conv.inputs[0].shape) == 4


@pytest.mark.parametrize(
    ("images", "filters", "groups"),
    [
        ((None, 64, 3, 3), (160, 64, 3, 3), 1),
        ((1, 64, 3, 3), (160, 64, 3, 3), 1),
        ((2, 64, 8, 8), (160, 64, 3, 3), 1),
        ((2, 8, 3, 3), (16, 8, 3, 3), 1),
        ((2, 256, 3, 3), (256, 64, 3, 3), 4),
    ],
)
def test_other_convolutions_stay(images, filters, groups):
    x, w = (pt.tensor(dtype="float32", shape=shape) for shape in (images, filters))
    y = conv2d(x, w, 1, filter_flip=False, num_groups=groups)
    assert op_types(export_onnx([x, w], y, verify=False)) == ["Conv"]


def test_constant_filters_stay():
    x = pt.tensor(dtype="float32", shape=(2, 64, 3, 3))
    (w,) = values_of((160, 64, 3, 3))
    y = conv2d(x, pt.constant(w), 1, filter_flip=False)
    assert op_types(export_onnx([x], y, verify=False)) == ["Conv"]
