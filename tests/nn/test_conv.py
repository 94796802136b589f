"""Convolution: values, gradients, structure, and refused arguments."""

import math
import re

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import signal

from pytensor_onnx import export_onnx
from pytensor_onnx.nn import conv1d, conv2d, conv3d
from tests.conftest import PY, compare_onnx_and_py, op_types, sweep_rest
from tests.nn import convolution as numpy_conv

CONV = {1: conv1d, 2: conv2d, 3: conv3d}
TOLERANCE = {"float64": 1e-11, "float32": 2e-5, "float16": 2e-2}
"""Relative to the largest result: sums of some dozens of products of both signs."""


def arrays(seed, *shapes, dtype="float64"):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def close(found, expected, dtype=None):
    dtype = str(dtype or found.dtype)
    scale = np.abs(expected).max(initial=1.0)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


def flipped(w):
    return np.flip(w, tuple(range(2, w.ndim)))


# Expected results of an option for images (2, 4, 7, 6) and filters (6, 4 / groups, 3, 2):
# pads, strides, dilations, groups, flip.
OPTIONS = {
    "valid": ({}, [(0, 0), (0, 0)], (1, 1), (1, 1), 1, True),
    "full": ({"border_mode": "full"}, [(2, 2), (1, 1)], (1, 1), (1, 1), 1, True),
    "half": ({"border_mode": "half"}, [(1, 1), (1, 1)], (1, 1), (1, 1), 1, True),
    "half dilated": (
        {"border_mode": "half", "filter_dilation": (2, 3)},
        [(2, 2), (2, 2)],
        (1, 1),
        (2, 3),
        1,
        True,
    ),
    "same_upper": ({"border_mode": "same_upper"}, [(1, 1), (0, 1)], (1, 1), (1, 1), 1, True),
    "same_lower": ({"border_mode": "same_lower"}, [(1, 1), (1, 0)], (1, 1), (1, 1), 1, True),
    "same strided": (
        {"border_mode": "same_upper", "subsample": (2, 4)},
        [(1, 1), (0, 0)],
        (2, 4),
        (1, 1),
        1,
        True,
    ),
    "number": ({"border_mode": 2}, [(2, 2), (2, 2)], (1, 1), (1, 1), 1, True),
    "numbers": ({"border_mode": (0, 1)}, [(0, 0), (1, 1)], (1, 1), (1, 1), 1, True),
    "pairs": ({"border_mode": ((1, 0), (2, 3))}, [(1, 0), (2, 3)], (1, 1), (1, 1), 1, True),
    "strided": ({"subsample": (3, 2)}, [(0, 0), (0, 0)], (3, 2), (1, 1), 1, True),
    "dilated": ({"filter_dilation": 2}, [(0, 0), (0, 0)], (1, 1), (2, 2), 1, True),
    "grouped": ({"num_groups": 2}, [(0, 0), (0, 0)], (1, 1), (1, 1), 2, True),
    "correlation": ({"filter_flip": False}, [(0, 0), (0, 0)], (1, 1), (1, 1), 1, False),
    "all at once": (
        {
            "border_mode": ((2, 1), 3),
            "subsample": 2,
            "filter_dilation": (1, 3),
            "num_groups": 2,
            "filter_flip": False,
        },
        [(2, 1), (3, 3)],
        (2, 2),
        (1, 3),
        2,
        False,
    ),
}


@pytest.mark.parametrize(
    "option",
    sweep_rest(
        OPTIONS,
        ("full", "half dilated", "same_lower", "same strided", "number", "pairs", "all at once"),
    ),
)
def test_conv2d_is_its_definition(option):
    kwargs, pads, strides, dilations, groups, flip = OPTIONS[option]
    shapes = (2, 4, 7, 6), (6, 4 // groups, 3, 2)
    inputs, outputs, values, expected = [], [], [], []
    for dtype, known in (("float32", True), ("float32", False), ("float64", False)):
        pair = arrays(0, *shapes, dtype=dtype)
        symbols = [
            pt.tensor(dtype=dtype, shape=v.shape if known else (None,) * v.ndim) for v in pair
        ]
        y = conv2d(*symbols, **kwargs)
        x, w = pair
        expected.append(
            numpy_conv.correlate(x, flipped(w) if flip else w, pads, strides, dilations, groups)
        )
        if known:
            assert y.type.shape == expected[-1].shape
        inputs += symbols
        outputs += [y, y.shape]
        values += pair
    program = compare_onnx_and_py(inputs, outputs, values, atol=1e-5)
    for found, shape, result in zip(*[iter(program(*values))] * 2, expected, strict=True):
        close(found, result)
        assert tuple(shape) == result.shape


@pytest.mark.each_value
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("known", [True, False])
def test_conv1d_and_conv3d_are_their_definition(rank, known):
    pads, strides, dilations = [(1, 0), (2, 1), (0, 2)], (2, 1, 3), (1, 2, 1)
    geometry = pads[:rank], strides[:rank], dilations[:rank], 2
    inputs, outputs, values, expected = [], [], [], []
    for dtype in ("float32", "float64"):
        x, w = arrays(1, (2, 4, 7, 5, 6)[: rank + 2], (6, 2, 3, 2, 2)[: rank + 2], dtype=dtype)
        inputs += [
            pt.tensor(dtype=dtype, shape=v.shape if known else (None,) * v.ndim) for v in (x, w)
        ]
        values += [x, w]
        outputs.append(
            CONV[rank](
                *inputs[-2:],
                border_mode=geometry[0],
                subsample=geometry[1],
                filter_dilation=geometry[2],
                num_groups=2,
            )
        )
        expected.append(numpy_conv.correlate(x, flipped(w), *geometry))
    program = compare_onnx_and_py(inputs, outputs, values, atol=1e-5)
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)


@pytest.mark.slow
def test_conv2d_of_one_channel_is_that_of_scipy():
    values = arrays(2, (1, 1, 6, 7), (1, 1, 3, 2))
    x, w = pt.tensor4("x", dtype="float64"), pt.tensor4("w", dtype="float64")
    modes = ("valid", "full")
    outputs = [conv2d(x, w, mode, filter_flip=flip) for mode in modes for flip in (True, False)]
    results = iter(pytensor.function([x, w], outputs, mode="ONNX")(*values))
    for mode in modes:
        close(next(results), signal.convolve(*values, mode))
        close(next(results), signal.correlate(*values, mode))


def gradients(rank, known, dtype, *, pads, strides, dilations, groups, seed=3):
    """Return graph, values and expected gradients, of images and of filters."""
    x, w = arrays(
        seed, (2, 4, 7, 6, 5)[: rank + 2], (8, 4 // groups, 3, 2, 2)[: rank + 2], dtype=dtype
    )
    (g,) = arrays(
        4, numpy_conv.correlate(x, w, pads, strides, dilations, groups).shape, dtype=dtype
    )
    symbols = [
        pt.tensor(dtype=dtype, shape=v.shape if known == "all" else (None,) * v.ndim)
        for v in (x, w, g)
    ]
    if known == "kernel":
        symbols[1] = pt.tensor(dtype=dtype, shape=(None, None, *w.shape[2:]))
    y = CONV[rank](
        *symbols[:2],
        border_mode=pads,
        subsample=strides,
        filter_dilation=dilations,
        num_groups=groups,
        filter_flip=False,
    )
    graphs = pt.grad(None, symbols[:2], known_grads={y: symbols[2]})
    geometry = pads, strides, dilations, groups
    expected = [
        numpy_conv.image_gradient(g, w, x.shape[2:], *geometry),
        numpy_conv.filter_gradient(x, g, w.shape[2:], *geometry),
    ]
    return symbols, graphs, [x, w, g], expected


GEOMETRIES = {
    "plain": {"pads": [(1, 1), (0, 0)], "strides": (1, 1), "dilations": (1, 1), "groups": 1},
    "strided": {"pads": [(1, 1), (0, 1)], "strides": (2, 3), "dilations": (1, 1), "groups": 1},
    "dilated": {"pads": [(0, 2), (1, 0)], "strides": (2, 1), "dilations": (2, 3), "groups": 2},
    "depthwise": {"pads": [(1, 1), (1, 1)], "strides": (1, 2), "dilations": (1, 1), "groups": 4},
}


@pytest.mark.parametrize("case", GEOMETRIES)
@pytest.mark.slow
def test_gradients_are_the_adjoints(case):
    inputs, graphs, values, expected = [], [], [], []
    for known, dtype in (("all", "float32"), ("kernel", "float32"), ("kernel", "float64")):
        parts = gradients(2, known, dtype, **GEOMETRIES[case])
        for total, part in zip((inputs, graphs, values, expected), parts, strict=True):
            total.extend(part)
    program = compare_onnx_and_py(inputs, graphs, values, atol=1e-5)
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)
    moved = [
        node.op_type
        for node in program.model.graph
        if node.op_type.startswith(("Gather", "Scatter", "Loop", "Scan"))
        and node.outputs[0].dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    ]
    # Windows of images of known sizes are gathered by their positions, others sliced.
    assert moved == ["Gather"]


@pytest.mark.slow
def test_gradients_of_filters_of_images_of_one_element_are_the_adjoints():
    geometry = [(2, 1), (1, 1)], (1, 2), (1, 1)
    values = arrays(19, (3, 2, 1, 1), (4, 2, 3, 2), (3, 4, 2, 1), dtype="float32")
    values[0][1, 0] = np.nan
    for batch in (3, None):
        x, w, g = (
            pt.tensor(dtype="float32", shape=shape)
            for shape in ((batch, 2, 1, 1), (4, 2, 3, 2), (batch, 4, 2, 1))
        )
        y = conv2d(x, w, geometry[0], (1, 2), filter_flip=False)
        program = compare_onnx_and_py([x, w, g], pt.grad(None, w, known_grads={y: g}), values)
        (found,) = program(*values)
        expected = numpy_conv.filter_gradient(values[0], values[2], (3, 2), *geometry)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_gradients_of_filters_of_many_images_are_the_adjoints():
    # One Gather serves 5,000 positions of a batch, and images without padding too.
    geometry = [(3, 2), (3, 3)], (2, 2), (1, 1)
    values = arrays(20, (8, 3, 21, 20), (4, 3, 7, 7), (8, 4, 10, 10), dtype="float32")
    values[0][5, 1, 3, 4], values[2][2, 1, 8, 8] = np.nan, np.inf
    x, w, g = (pt.tensor(dtype="float32", shape=v.shape) for v in values)
    y = conv2d(x, w, geometry[0], 2, filter_flip=False)
    point = pt.tensor(dtype="float32", shape=(4, 3, 1, 1))
    plain = conv2d(x, point, filter_flip=False)
    results = [
        pt.grad(None, w, known_grads={y: g}),
        pt.grad(None, point, known_grads={plain: pt.repeat(x[:, :1], 4, axis=1)}),
    ]
    program = compare_onnx_and_py([x, g], results, [values[0], values[2]], atol=2e-3)
    found = program(values[0], values[2])
    expected = [
        numpy_conv.filter_gradient(values[0], values[2], (7, 7), *geometry),
        numpy_conv.filter_gradient(
            values[0], values[0][:, :1].repeat(4, 1), (1, 1), [(0, 0)] * 2, (1, 1), (1, 1)
        ),
    ]
    for result, exact in zip(found, expected, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=2e-3)
    assert op_types(program).count("Gather") == 1


@pytest.mark.slow
def test_gradients_of_filters_of_any_size_are_the_adjoints():
    parts = gradients(2, "nothing", "float32", **GEOMETRIES["dilated"])
    more = gradients(2, "nothing", "float64", **GEOMETRIES["strided"])
    inputs, graphs, values, expected = (a + b for a, b in zip(parts, more, strict=True))
    program = compare_onnx_and_py(inputs, graphs, values, atol=1e-5)
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)


def test_gradients_of_bias_and_second_order_are_those_of_finite_differences():
    x, w, b = arrays(5, (2, 2, 5, 4), (4, 1, 3, 2), (4,))

    def slope(x, w, b):
        y = conv2d(x, w, "half", (2, 1), num_groups=2, bias=b)
        return pt.concatenate([g.ravel() for g in pt.grad((y**3).sum(), [x, w, b])])

    with pytensor.config.change_flags(cxx=""):
        pytensor.gradient.verify_grad(slope, [x, w, b], rng=np.random.default_rng(6), mode=PY)


@pytest.mark.slow
def test_second_order_in_mode_onnx_is_that_of_python():
    x, w = (pt.tensor(shape=shape) for shape in ((None, 2, None, 4), (4, 1, 3, 2)))
    y = conv2d(x, w, "half", (2, 1), num_groups=2)
    slopes = pt.grad((y**3).sum(), [x, w])
    second = pt.grad(sum((s**2).sum() for s in slopes), [x, w])
    compare_onnx_and_py([x, w], second, arrays(7, (2, 2, 5, 4), (4, 1, 3, 2)), rtol=1e-10)


def images_and_filters(images=(None, 4, 8, 8), filters=(6, 4, 3, 3)):
    return [pt.tensor(dtype="float32", shape=shape) for shape in (images, filters)]


def test_each_is_one_conv():
    x, w = images_and_filters()
    b = pt.tensor(dtype="float32", shape=(6,))
    program = export_onnx(
        [x, w, b], conv2d(x, w, "half", 2, filter_flip=False, bias=b), verify=False
    )
    (node,) = program.model.graph
    assert node.op_type == "Conv"
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    assert attributes == {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (2, 2)}
    assert [value.name for value in node.inputs] == ["input_0", "input_1", "input_2"]


def test_filters_are_flipped_at_export_if_constant_and_in_the_graph_if_computed():
    x, w = images_and_filters()
    (value,) = arrays(8, (6, 4, 3, 3), dtype="float32")
    shared = pytensor.shared(value, name="w")
    assert op_types(export_onnx([x], conv2d(x, value))) == ["Conv"]
    assert op_types(export_onnx([x], conv2d(x, shared, "half"))) == ["Conv"]
    assert op_types(export_onnx([x, w], conv2d(x, w), verify=False)) == ["Slice", "Conv"]


@pytest.mark.slow
def test_empty_batches_give_empty_results_and_zero_gradients():
    x, w = images_and_filters((None, 2, 5, 5), (3, 2, 3, 3))
    y = conv2d(x, w, "half", 2)
    outputs = [y, *pt.grad(y.sum(), [x, w])]
    values = arrays(10, (0, 2, 5, 5), (3, 2, 3, 3), dtype="float32")
    y, gx, gw = compare_onnx_and_py([x, w], outputs, values)(*values)
    assert y.shape == (0, 3, 3, 3)
    assert gx.shape == (0, 2, 5, 5)
    np.testing.assert_array_equal(gw, np.zeros((3, 2, 3, 3)))


def test_float16_is_computed():
    x, w = (pt.tensor(dtype="float16", shape=shape) for shape in ((1, 2, 5, 5), (3, 2, 3, 3)))
    values = arrays(11, (1, 2, 5, 5), (3, 2, 3, 3), dtype="float16")
    y = conv2d(x, w, filter_flip=False)
    assert y.type.dtype == "float16"
    program = export_onnx([x, w], y, verify=False)
    wide = [v.astype("float64") for v in values]
    close(program(*values), numpy_conv.correlate(*wide, [(0, 0)] * 2, (1, 1), (1, 1)), "float16")


def test_infinities_spread_to_windows_that_contain_them_only():
    x, w = images_and_filters((1, 1, 6, 6), (1, 1, 3, 3))
    g = pt.tensor(dtype="float32", shape=(1, 1, 6, 6))
    y = conv2d(x, w, "half")
    values = arrays(12, (1, 1, 6, 6), (1, 1, 3, 3), (1, 1, 6, 6), dtype="float32")
    values[0][0, 0, 1, 2], values[0][0, 0, 4, 4] = np.inf, np.nan
    values[2][0, 0, 5, 0] = -np.inf
    outputs = [y, *pt.grad(None, [x, w], known_grads={y: g})]
    compare_onnx_and_py([x, w, g], outputs, values, atol=1e-5)


def test_the_shape_is_known_without_the_convolution():
    x, w = images_and_filters((None, None, None, None), (None, None, None, None))
    program = export_onnx([x, w], conv2d(x, w, "half", 2).shape, verify=False)
    assert not {"Conv", "MatMul", "Pad"} & set(op_types(program))


@pytest.mark.parametrize(
    ("error", "message", "kwargs"),
    [
        (ValueError, "border_mode='same' is not known", {"border_mode": "same"}),
        (ValueError, "for each of the 2 spatial axes", {"border_mode": (1, 1, 1)}),
        (ValueError, "border_mode=-1 must not be less than 0", {"border_mode": (-1, 0)}),
        (TypeError, "must be made of ints", {"border_mode": ((0.5, 1), 1)}),
        (ValueError, "subsample=0 must not be less than 1", {"subsample": 0}),
        (ValueError, "subsample=.* must be one int, or 2", {"subsample": (1, 2, 3)}),
        (ValueError, "filter_dilation=-1 must not be less than 1", {"filter_dilation": -1}),
        (ValueError, "num_groups=0 must not be less than 1", {"num_groups": 0}),
        (ValueError, "6 filters cannot be divided into num_groups=4", {"num_groups": 4}),
        (ValueError, "images have 4 channels and the filters 4", {"num_groups": 2}),
        (ValueError, "9 elements and 0 of padding, but a window takes 11", {"filter_dilation": 5}),
        (ValueError, "bias .* has 5 elements, the result 6", {"bias": np.zeros(5, "float32")}),
        (ValueError, "bias .* must have 1 dimensions", {"bias": np.zeros((6, 1), "float32")}),
    ],
)
def test_operands_that_do_not_fit_are_named_when_the_graph_is_built(error, message, kwargs):
    x, w = images_and_filters((None, 4, 9, 9))
    with pytest.raises(error, match=message):
        conv2d(x, w, **kwargs)


def test_operands_of_other_ranks_and_dtypes_are_named():
    x, w = images_and_filters()
    with pytest.raises(ValueError, match=r"conv1d: input .* must have 3 dimensions; it has 4"):
        conv1d(x, w)
    with pytest.raises(ValueError, match=r"conv2d: filters .* must have 4 dimensions; it has 5"):
        conv2d(x, pt.tensor5("w", dtype="float32"))
    with pytest.raises(TypeError, match=r"conv2d: input .* must be an array of floats"):
        conv2d(pt.itensor4("x"), w)
    with pytest.raises(ValueError, match="are empty"):
        conv2d(x, np.zeros((6, 4, 0, 3), "float32"))
    shared = pytensor.shared(np.zeros((6, 3, 3, 3), "float32"))
    with pytest.raises(ValueError, match="images have 4 channels and the filters 3"):
        conv2d(x, shared)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("images", "filters"), [((2, 3, 6, 6), (4, 2, 3, 3)), ((2, 2, 2, 6), (4, 2, 3, 3))]
)
def test_operands_that_do_not_fit_fail_at_run_time(dtype, images, filters):
    x, w = (pt.tensor4(dtype=dtype) for _ in range(2))
    values = arrays(13, images, filters, dtype=dtype)
    y = conv2d(x, w)
    with pytest.raises(Exception), pytensor.config.change_flags(cxx=""):  # noqa: B017, PT011
        pytensor.function([x, w], y, mode=PY)(*values)
    with pytest.raises(Exception):  # noqa: B017, PT011
        pytensor.function([x, w], y, mode="ONNX")(*values)


def test_computed_filters_without_taps_are_an_error():
    x, w = (pt.tensor4(dtype="float32") for _ in range(2))
    f = pytensor.function([x, w], conv2d(x, 2 * w), mode="ONNX")
    values = arrays(16, (1, 2, 6, 6), (4, 2, 3, 1), dtype="float32")
    assert f(*values).shape == (1, 4, 4, 6)
    with pytest.raises(ValueError, match="the filters of Conv are empty"):
        f(values[0], values[1][:, :, :0])


@pytest.mark.slow
def test_padding_that_only_run_time_knows_has_gradients():
    inputs = [pt.tensor(dtype="float32", shape=(None,) * 4) for _ in range(3)]
    x, w, g = inputs
    y = conv2d(x, w, "same_lower", (2, 4), filter_flip=False)
    values = arrays(15, (2, 4, 7, 6), (6, 4, 3, 2), (2, 6, 4, 2), dtype="float32")
    outputs = pt.grad(None, [x, w], known_grads={y: g})
    program = compare_onnx_and_py(inputs, outputs, values, atol=1e-5)
    geometry = [(1, 1), (0, 0)], (2, 4), (1, 1)
    gx, gw = program(*values)
    close(gx, numpy_conv.image_gradient(values[2], values[1], (7, 6), *geometry))
    close(gw, numpy_conv.filter_gradient(values[0], values[2], (3, 2), *geometry))


@pytest.mark.each_value
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(
    ("sizes", "strides", "dilations", "is_operator"),
    [
        ((3, 4), (2, 2), (1, 1), True),
        ((2, 5), (1, 3), (1, 1), True),
        # Runtimes crop such windows from another position, and refuse dilations.
        ((3, 2), (4, 3), (1, 1), False),
        ((3, 3), (2, 2), (2, 1), False),
    ],
)
def test_images_of_any_size_are_padded_by_the_operator(
    upper, sizes, strides, dilations, is_operator
):
    w, b, *values = arrays(
        17, (6, 2, *sizes), (6,), (2, 4, 8, 8), (1, 4, 9, 7), (1, 4, 1, 3), dtype="float32"
    )
    values[0][0, 1, 0, 7], values[0][1, 3, 4, 4] = np.nan, np.inf
    x = pt.tensor("x", shape=(None, 4, None, None), dtype="float32")
    border = "same_upper" if upper else "same_lower"
    options = {"subsample": strides, "filter_dilation": dilations, "num_groups": 2, "bias": b}
    y = conv2d(x, w, border, filter_flip=False, **options)
    program = compare_onnx_and_py([x], y, [values[0]], atol=1e-5)
    assert (op_types(program) == ["Conv"]) == is_operator
    for value in values[1:]:
        pads = []
        for n, k, stride, d in zip(value.shape[2:], sizes, strides, dilations, strict=True):
            total = max((math.ceil(n / stride) - 1) * stride + (k - 1) * d + 1 - n, 0)
            pair = total // 2, total - total // 2
            pads.append(pair if upper else pair[::-1])
        expected = numpy_conv.correlate(value, w, pads, strides, dilations, 2)
        close(program(value)[0], expected + b[:, None, None])
    assert program(values[0][:0])[0].shape[:2] == (0, 6)


def test_gradients_of_images_of_any_size_are_those_of_known_sizes():
    w, value, d = arrays(18, (6, 4, 3, 3), (2, 4, 7, 6), (2, 6, 4, 3), dtype="float32")
    found = []
    for shape in ((None, 4, None, None), value.shape):
        x = pt.tensor("x", shape=shape, dtype="float32")
        filters = pt.tensor("w", shape=w.shape, dtype="float32")
        y = conv2d(x, filters, "same_upper", 2, filter_flip=False)
        gradients = pt.grad(None, [x, filters], known_grads={y: pt.as_tensor(d)})
        found.append(pytensor.function([x, filters], gradients, mode="ONNX")(value, w))
    for a, b in zip(*found, strict=True):
        close(a, b)


@pytest.mark.parametrize("mode", [PY, "ONNX"])
def test_shared_filters_must_keep_their_sizes(mode):
    (x,) = arrays(16, (1, 4, 6, 6), dtype="float32")
    w = pytensor.shared(np.ones((2, 4, 3, 3), "float32"))
    with pytensor.config.change_flags(cxx=""):
        f = pytensor.function([], conv2d(x, w, "half"), mode=mode)
        assert f().shape == (1, 2, 6, 6)
        w.set_value(np.ones((3, 4, 3, 3), "float32"))
        assert f().shape == (1, 3, 6, 6)
        w.set_value(np.ones((2, 4, 5, 5), "float32"))
        with pytest.raises(Exception, match=r"kernel_shape|reshape"):
            f()


@pytest.mark.compiled
def test_numba_runs_and_differentiates_it():
    x, w = pt.tensor("x", shape=(None, 4, None, 6)), pt.tensor("w", shape=(6, 2, 3, 2))
    options = {"strides": (2, 1), "dilations": (1, 2), "groups": 2, "pads": [(1, 1), (0, 2)]}
    values = arrays(14, (2, 4, 7, 6), (6, 2, 3, 2))
    y = conv2d(x, w, options["pads"], (2, 1), False, (1, 2), 2)
    outputs = [y, *pt.grad((y**2).sum(), [x, w])]
    found = pytensor.function([x, w], outputs, mode="NUMBA")(*values)
    geometry = options["pads"], options["strides"], options["dilations"], options["groups"]
    result = numpy_conv.correlate(*values, *geometry)
    close(found[0], result)
    close(found[1], numpy_conv.image_gradient(2 * result, values[1], (7, 6), *geometry))
    close(found[2], numpy_conv.filter_gradient(values[0], 2 * result, (3, 2), *geometry))


@pytest.mark.parametrize("shape", [(None,) * 4, (3, 3, None, None)])
def test_a_residual_that_filters_make_smaller_names_the_line(shape):
    x = pt.tensor("x", shape=(None, 3, None, None), dtype="float32")
    w = pt.tensor("w", shape=shape, dtype="float32")
    y = x + conv2d(x, w)  # the line
    images, filters = np.ones((2, 3, 8, 8), "float32"), np.ones((3, 3, 3, 3), "float32")
    program = export_onnx([x, w], y, verify=False)
    assert program(images, filters[..., :1, :1]).shape == images.shape
    for call in (program, pytensor.function([x, w], y, mode="ONNX")):
        with pytest.raises(ValueError, match="one axis has the sizes 6 and 8") as error:
            call(images, filters)
        assert re.search(r"made at:  .*test_conv.py:\d+  y = x \+ conv2d\(x, w\)", str(error.value))


@pytest.mark.parametrize("known", [True, False])
def test_gradients_of_filters_of_many_windows_are_the_adjoints(known):
    # Sums over 2,100 windows, for which there is one product for each tap.
    options = {"border_mode": (2, 1), "subsample": (2, 1), "filter_dilation": (1, 2)}
    geometry = [(2, 2), (1, 1)], (2, 1), (1, 2)
    values = arrays(17, (4, 16, 40, 27), (5, 16, 3, 2), (4, 5, 21, 27), dtype="float32")
    values[0][1, 3, 7, 5], values[2][2, 1, 8, 8] = np.nan, np.inf
    shapes = [v.shape if known else (None, 16, None, None) for v in values[:1]]
    x = pt.tensor(dtype="float32", shape=shapes[0])
    w, g = (pt.tensor(dtype="float32", shape=v.shape) for v in values[1:])
    y = conv2d(x, w, filter_flip=False, **options)
    program = compare_onnx_and_py(
        [x, w, g], pt.grad(None, w, known_grads={y: g}), values, rtol=1e-4, atol=1e-3
    )
    (found,) = program(*values)
    expected = numpy_conv.filter_gradient(values[0], values[2], (3, 2), *geometry)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], atol=2e-3)
    assert op_types(program).count("Gemm") == (6 if known else 1)
    assert not {"ReduceSum", "MatMul"} & set(op_types(program))
