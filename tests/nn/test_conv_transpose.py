"""Transposed convolution: values, gradients, structure, and refused arguments."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.nn import conv1d_transpose, conv2d_transpose, conv3d_transpose
from tests.conftest import PY, compare_onnx_and_py, op_types, sweep_rest
from tests.nn import convolution as numpy_conv
from tests.nn.test_conv import arrays, close

CONV = {1: conv1d_transpose, 2: conv2d_transpose, 3: conv3d_transpose}
DEFAULTS = {
    "pads": [(0, 0), (0, 0)],
    "strides": (1, 1),
    "dilations": (1, 1),
    "groups": 1,
    "output_padding": (0, 0),
}
OPTIONS = {
    "plain": {},
    "strided": {"strides": (2, 3)},
    "dilated": {"dilations": (2, 1), "strides": (1, 2)},
    "cropped": {"pads": [(1, 0), (1, 2)], "strides": (2, 1)},
    "grouped": {"groups": 2, "strides": (2, 2)},
    "output padding": {"strides": (2, 3), "output_padding": (1, 2), "pads": [(0, 1), (1, 1)]},
    "output padding beyond the stride": {
        "strides": (1, 2),
        "dilations": (3, 3),
        "output_padding": (2, 2),
        "pads": [(0, 1), (2, 3)],
    },
}


def graph(rank, known, dtype, **options):
    """Return inputs, result and gradients; values; and what results and gradients are."""
    options = DEFAULTS | options
    shape, kernel = (2, 4, 4, 3, 3)[: rank + 2], (4, 3, 3, 2, 2)[: rank + 2]
    x, w = arrays(0, shape, kernel, dtype=dtype)
    pads, strides, dilations = (options[name][:rank] for name in ("pads", "strides", "dilations"))
    geometry = pads, strides, dilations, options["groups"]
    more = options["output_padding"][:rank]
    y = numpy_conv.transpose(x, w, *geometry, more)
    (g,) = arrays(1, y.shape, dtype=dtype)
    symbols = [
        pt.tensor(dtype=dtype, shape=v.shape if known else (None,) * v.ndim) for v in (x, w, g)
    ]
    result = CONV[rank](*symbols[:2], strides, pads, more, dilations, options["groups"])
    if known:
        assert result.type.shape == y.shape
    slopes = pt.grad(None, symbols[:2], known_grads={result: symbols[2]})
    # The adjoint sees nothing of what output padding adds after the end of the padding.
    after = [(before, end - extra) for (before, end), extra in zip(pads, more, strict=True)]
    seen = [slice(None), slice(None), *(slice(None, min(end, 0) or None) for _, end in after)]
    adjoint = [(before, max(end, 0)) for before, end in after], *geometry[1:]
    expected = [
        y,
        numpy_conv.correlate(g[tuple(seen)], w, *adjoint),
        numpy_conv.filter_gradient(g[tuple(seen)], x, w.shape[2:], *adjoint),
    ]
    return symbols, [result, *slopes], [x, w, g], expected


@pytest.mark.parametrize(
    "option", sweep_rest(OPTIONS, ("cropped", "grouped", "output padding beyond the stride"))
)
def test_values_and_gradients_are_those_of_the_definition(option):
    inputs, outputs, values, expected = [], [], [], []
    for known, dtype in ((True, "float32"), (False, "float32"), (True, "float64")):
        for total, part in zip(
            (inputs, outputs, values, expected),
            graph(2, known, dtype, **OPTIONS[option]),
            strict=True,
        ):
            total.extend(part)
    program = compare_onnx_and_py(inputs, outputs, values, atol=1e-5)
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks_are_their_definition(rank):
    options = {
        "pads": [(1, 0), (0, 1), (1, 1)],
        "strides": (2, 1, 2),
        "dilations": (1, 2, 1),
        "output_padding": (1, 0, 1),
        "groups": 2,
    }
    inputs, outputs, values, expected = [], [], [], []
    for known, dtype in ((False, "float32"), (True, "float64")):
        for total, part in zip(
            (inputs, outputs, values, expected), graph(rank, known, dtype, **options), strict=True
        ):
            total.extend(part)
    program = compare_onnx_and_py(inputs, outputs, values, atol=1e-5)
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)


def test_it_is_one_node_with_its_bias():
    x, w = (pt.tensor(dtype="float32", shape=s) for s in ((None, 4, 5, 5), (4, 3, 3, 3)))
    b = pt.vector("b", dtype="float32")
    y = [conv2d_transpose(x, w, 2, 1, 1, bias=b)]
    values = arrays(2, (2, 4, 5, 5), (4, 3, 3, 3), (3,), dtype="float32")
    program = compare_onnx_and_py([x, w, b], y, values, atol=1e-5)
    (node,) = program.model.graph
    assert node.op_type == "ConvTranspose"
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    assert attributes == {
        "kernel_shape": (3, 3),
        "pads": (1, 1, 1, 1),
        "strides": (2, 2),
        "output_padding": (1, 1),
    }
    plain = numpy_conv.transpose(*values[:2], [(1, 1)] * 2, (2, 2), (1, 1), 1, (1, 1))
    (found,) = program(*values)
    close(found, plain + values[2][:, None, None])


def test_its_gradient_is_a_convolution():
    x, w = (pt.tensor(dtype="float32", shape=s) for s in ((None, 4, 5, 5), (4, 3, 3, 3)))
    g = pt.tensor(dtype="float32", shape=(None, 3, 11, 11))
    y = conv2d_transpose(x, w, 2)
    slope = pt.grad(None, x, known_grads={y: g})
    assert op_types(export_onnx([w, g], slope, verify=False)) == ["Conv"]


def test_gradients_of_the_bias_are_those_of_finite_differences():
    def slope(x, w, b):
        return (conv2d_transpose(x, w, 2, ((0, 1), 1), 1, bias=b) ** 2).sum()

    with pytensor.config.change_flags(cxx=""):
        pytensor.gradient.verify_grad(
            slope,
            arrays(3, (1, 2, 3, 2), (2, 2, 2, 2), (2,)),
            rng=np.random.default_rng(4),
            mode=PY,
        )


@pytest.mark.parametrize(
    ("error", "message", "kwargs"),
    [
        (ValueError, "output_padding=2 must be less than the stride 2", {"output_padding": 2}),
        (ValueError, "padding=6 leaves nothing of spatial axis 0", {"padding": 6}),
        (ValueError, "4 channels cannot be divided into groups=3", {"groups": 3}),
        (ValueError, "stride=0 must not be less than 1", {"stride": 0}),
        (ValueError, "bias .* has 4 elements, the result 3", {"bias": np.zeros(4, "float32")}),
        (ValueError, "the images have 4 channels, the filters take 5", {"filters": (5, 3, 3, 3)}),
        (ValueError, "filters .* must have 4 dimensions", {"filters": (4, 3, 3)}),
        (TypeError, "must be made of ints", {"dilation": (1.5, 1)}),
    ],
)
def test_operands_that_do_not_fit_are_named_when_the_graph_is_built(error, message, kwargs):
    x = pt.tensor(dtype="float32", shape=(None, 4, 5, 5))
    w = pt.tensor(dtype="float32", shape=kwargs.pop("filters", (4, 3, 3, 3)))
    with pytest.raises(error, match=message):
        conv2d_transpose(x, w, **({"stride": 2} | kwargs))
