"""Every option of the forms of convolution, against the loop over groups and taps."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx.nn import (
    causal_conv1d,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv3d,
    conv3d_transpose,
    depthwise_conv2d,
    separable_conv2d,
)
from tests.conftest import compare_onnx_and_py, op_types
from tests.nn import convolution as numpy_conv
from tests.nn.test_conv import arrays, close, flipped, images_and_filters

CONV = {1: conv1d, 2: conv2d, 3: conv3d}
MODES = {
    "valid": lambda span: (0, 0),
    "full": lambda span: (span - 1, span - 1),
    "half": lambda span: (span // 2, span // 2),
    "same_upper": lambda span: ((span - 1) // 2, span // 2),
    "same_lower": lambda span: (span // 2, (span - 1) // 2),
}


def variables(values, known):
    return [pt.tensor(dtype=v.dtype, shape=v.shape if known else (None,) * v.ndim) for v in values]


def biased(y, b):
    return y + b.reshape(-1, *(1,) * (y.ndim - 2))


@pytest.mark.each_value
@pytest.mark.parametrize("rank", CONV)
@pytest.mark.parametrize("flip", [True, False])
def test_paddings_by_name_and_a_bias(rank, flip):
    values = arrays(
        rank, (2, 4, 6, 5, 4)[: rank + 2], (6, 2, 3, 2, 2)[: rank + 2], (6,), dtype="float32"
    )
    x, w, b = values
    symbols = variables(values, known=flip)
    dilations, strides = (1, 2, 1)[:rank], (1,) * rank
    options = {"filter_flip": flip, "filter_dilation": dilations, "num_groups": 2}
    outputs = [CONV[rank](*symbols[:2], mode, **options, bias=symbols[2]) for mode in MODES]
    program = compare_onnx_and_py(symbols, outputs, values, atol=1e-5)
    filters = flipped(w) if flip else w
    for found, pads_of in zip(program(*values), MODES.values(), strict=True):
        spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
        pads = [pads_of(span) for span in spans]
        close(found, biased(numpy_conv.correlate(x, filters, pads, strides, dilations, 2), b))


@pytest.mark.parametrize("known", [True, False])
def test_all_options_of_depthwise_separable_and_causal_convolutions(known):
    values = arrays(
        8,
        *[(2, 3, 7, 6), (6, 1, 3, 2), (4, 6, 1, 1), (6,), (4,)],
        *[(2, 4, 7), (6, 2, 3), (6,)],
        dtype="float32",
    )
    x, w, mixing, b, c, sequence, taps, d = values
    symbols = variables(values, known)
    options = {"border_mode": ((1, 0), 2), "subsample": (2, 1), "filter_dilation": (1, 3)}
    geometry = [(1, 0), (2, 2)], (2, 1), (1, 3), 3
    expected, outputs = [], []
    for flip in (True, False):
        each = options | {"filter_flip": flip, "num_channels": 3}
        outputs += [
            depthwise_conv2d(symbols[0], symbols[1], **each, bias=symbols[3]),
            separable_conv2d(symbols[0], symbols[1], symbols[2], **each, bias=symbols[4]),
            causal_conv1d(*symbols[5:7], 2, flip, 3, 2, symbols[7]),
        ]
        turned = flipped if flip else np.asarray
        apart = numpy_conv.correlate(x, turned(w), *geometry)
        mixed = numpy_conv.correlate(apart, mixing, [(0, 0)] * 2, (1, 1), (1, 1))
        causal = numpy_conv.correlate(sequence, turned(taps), [(6, 0)], (2,), (3,), 2)
        expected += [biased(apart, b), biased(mixed, c), biased(causal, d)]
    program = compare_onnx_and_py(symbols, outputs, values, atol=1e-5)
    assert op_types(program).count("Conv") == 8
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)


@pytest.mark.parametrize(("rank", "conv"), [(1, conv1d_transpose), (3, conv3d_transpose)])
def test_transposed_convolutions_of_other_ranks_add_a_bias(rank, conv):
    values = arrays(
        9, (2, 4, 4, 3, 3)[: rank + 2], (4, 3, 3, 2, 2)[: rank + 2], (6,), dtype="float32"
    )
    symbols = variables(values, known=False)
    x, w, b = values
    y = conv(*symbols[:2], stride=2, groups=2, bias=symbols[2])
    program = compare_onnx_and_py(symbols, [y], values, atol=1e-5)
    plain = numpy_conv.transpose(x, w, [(0, 0)] * rank, (2,) * rank, (1,) * rank, 2)
    close(program(*values)[0], biased(plain, b))


def test_other_forms_are_one_or_two_convs():
    x, w = images_and_filters((None, 4, 8, 8), (8, 1, 3, 3))
    mixing = pt.tensor(dtype="float32", shape=(5, 8, 1, 1))
    sequence, taps = images_and_filters((None, 4, 8), (6, 2, 3))
    values = arrays(
        9, (2, 4, 8, 8), (8, 1, 3, 3), (5, 8, 1, 1), (2, 4, 8), (6, 2, 3), dtype="float32"
    )
    outputs = [
        depthwise_conv2d(x, w, "half", filter_flip=False),
        separable_conv2d(x, w, mixing, subsample=2, filter_flip=False),
        causal_conv1d(sequence, taps, 2, False, 2, num_groups=2),
    ]
    program = compare_onnx_and_py([x, w, mixing, sequence, taps], outputs, values, atol=1e-5)
    assert op_types(program) == ["Conv"] * 4
    images, filters, pointwise, sequences, kernel = values
    none = [(0, 0), (0, 0)]
    each = numpy_conv.correlate(images, filters, none, (2, 2), (1, 1), 4)
    expected = [
        numpy_conv.correlate(images, filters, [(1, 1), (1, 1)], (1, 1), (1, 1), 4),
        numpy_conv.correlate(each, pointwise, none, (1, 1), (1, 1)),
        numpy_conv.correlate(sequences, kernel, [(4, 0)], (2,), (2,), 2),
    ]
    for found, result in zip(program(*values), expected, strict=True):
        close(found, result)


def test_depthwise_channels_may_be_given_where_the_type_does_not_say_them():
    x, w = images_and_filters((None, None, 8, 8), (8, 1, 3, 3))
    with pytest.raises(ValueError, match="give num_channels"):
        depthwise_conv2d(x, w)
    assert depthwise_conv2d(x, w, num_channels=4).owner.op.groups == 4


def test_operands_that_do_not_fit_a_form_are_named():
    x, w = images_and_filters((None, 4, 8, 8), (8, 1, 3, 3))
    with pytest.raises(ValueError, match=r"pointwise_filters .* must have the shape \(O, C \* M"):
        separable_conv2d(x, w, pt.tensor(dtype="float32", shape=(5, 8, 3, 1)))
    with pytest.raises(ValueError, match="conv2d: the images have 8 channels and the filters 7"):
        separable_conv2d(x, w, pt.tensor(dtype="float32", shape=(5, 7, 1, 1)))
    with pytest.raises(ValueError, match="depthwise_conv2d: the images have 4 channels"):
        depthwise_conv2d(x, pt.tensor(dtype="float32", shape=(8, 2, 3, 3)))
    with pytest.raises(ValueError, match="depthwise_conv2d: 6 filters cannot be divided into"):
        depthwise_conv2d(x, pt.tensor(dtype="float32", shape=(6, 1, 3, 3)))
    with pytest.raises(ValueError, match=r"causal_conv1d: input .* must have 3 dimensions"):
        causal_conv1d(x, w)


FUNCTIONS = {
    "conv1d": (conv1d, [(2, 4, 9), (6, 2, 3)]),
    "conv2d": (conv2d, [(2, 4, 9, 8), (6, 2, 3, 2)]),
    "conv3d": (conv3d, [(2, 4, 7, 6, 5), (6, 2, 3, 2, 2)]),
    "causal_conv1d": (causal_conv1d, [(2, 4, 9), (6, 2, 3)]),
    "depthwise_conv2d": (depthwise_conv2d, [(2, 4, 9, 8), (8, 1, 3, 2)]),
    "separable_conv2d": (separable_conv2d, [(2, 4, 9, 8), (8, 1, 3, 2), (5, 8, 1, 1)]),
}
# PyTensor's name and value, the other name.
OPTIONS = {
    "stride": ("subsample", 2),
    "padding": ("border_mode", 1),
    "dilation": ("filter_dilation", 2),
    "groups": ("num_groups", 2),
}


def options_of(name):
    """Return the options that a convolution takes."""
    left_out = {
        "causal_conv1d": {"padding"},
        "depthwise_conv2d": {"groups"},
        "separable_conv2d": {"groups"},
    }
    return {k: v for k, v in OPTIONS.items() if k not in left_out.get(name, ())}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_go_by_the_names_of_pools_as_well(name):
    convolve, shapes = FUNCTIONS[name]
    values = arrays(0, *shapes, dtype="float32")
    options = options_of(name)
    groups = {} if "groups" not in options else {"groups": 2}
    pairs = []
    for other, (classic, value) in options.items():
        fixed = groups if other != "groups" else {}
        pairs.append((fixed | {other: value}, fixed | {classic: value}))
    pairs.append(({k: v for k, (_, v) in options.items()}, dict(options.values())))
    symbols = variables(values, known=True)
    outputs = [convolve(*symbols, **given) for pair in pairs for given in pair]
    results = pytensor.function(symbols, outputs, mode="ONNX")(*values)
    for found, expected in zip(results[::2], results[1::2], strict=True):
        np.testing.assert_array_equal(found, expected)
    if "padding" in options:
        same = convolve(*symbols, **groups, padding="same_upper")
        assert same.type.shape[2:] == shapes[0][2:]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_option_by_both_of_its_names_is_refused(name):
    convolve, shapes = FUNCTIONS[name]
    symbols = variables(arrays(0, *shapes), known=True)
    for other, (classic, value) in options_of(name).items():
        message = f"{classic}={value} and {other}={value} are one option: give it by one of its na"
        with pytest.raises(TypeError, match=message):
            convolve(*symbols, **{other: value, classic: value})


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("stride=0 must not be less than 1", {"stride": 0}),
        ("dilation=-1 must not be less than 1", {"dilation": -1}),
        ("4 channels cannot be divided into groups=3", {"groups": 3}),
        ("padding='same' is not known: choose one of 'valid', 'full'", {"padding": "same"}),
        (r"padding=\(1, 2, 3\) must be a number, or for each of the 2", {"padding": (1, 2, 3)}),
    ],
)
def test_messages_name_options_as_given(message, options):
    x, w = pt.tensor(shape=(1, 4, 9, 9)), pt.tensor(shape=(6, 4, 3, 3))
    with pytest.raises(ValueError, match=message):
        conv2d(x, w, **options)
