"""Layers of pytensor-ml that slide windows become their operators, with few transpositions."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

layers = pytest.importorskip("pytensor_ml.layers")
from pytensor_ml.activations import ReLU  # noqa: E402
from pytensor_ml.model import Model  # noqa: E402

RNG = np.random.default_rng(0)
# Sums of some dozen products, in another order.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(autouse=True)
def float32():
    with pytensor.config.change_flags(floatX="float32"):
        yield


def images(*shape):
    return RNG.normal(size=shape).astype("float32")


def build(layer, shape):
    """Return the input and the result of a layer with random weights."""
    x = layers.Input("x", shape=(None, *shape))
    y = layer(x)
    initialize(y)
    return x, y


def initialize(y):
    """Draw all weights; a bias of zeros would be optimised away."""
    for weight in Model(y).initialize(seed=0).weights:
        if weight.type.ndim == 1:
            weight.set_value(images(*weight.get_value().shape))


ONE_OPERATOR = {
    "Conv2D": (
        lambda: layers.Conv2D("c", in_channels=3, out_channels=4, kernel_size=(3, 2)),
        "Conv",
    ),
    "Conv2D same": (
        lambda: layers.Conv2D(
            "c", in_channels=3, out_channels=4, kernel_size=(3, 2), padding="same"
        ),
        "Conv",
    ),
    "Conv2D all options": (
        lambda: layers.Conv2D(
            "c",
            in_channels=3,
            out_channels=4,
            kernel_size=(2, 3),
            stride=(2, 1),
            dilation=(1, 2),
            padding=(0, 3),
            bias=False,
        ),
        "Conv",
    ),
    "ZeroPad2D before Conv2D": (
        lambda: layers.Sequential(
            layers.ZeroPad2D(padding=((0, 1), (2, 1))),
            layers.Conv2D("c", in_channels=3, out_channels=2, kernel_size=3, stride=2),
        ),
        "Conv",
    ),
    "MaxPool2D": (lambda: layers.MaxPool2D(kernel_size=2), "MaxPool"),
    "MaxPool2D all options": (
        lambda: layers.MaxPool2D(kernel_size=(3, 2), stride=1, padding=1),
        "MaxPool",
    ),
    "AvgPool2D": (lambda: layers.AvgPool2D(kernel_size=(2, 3)), "AveragePool"),
    "AvgPool2D padded": (
        lambda: layers.AvgPool2D(kernel_size=3, stride=2, padding=1),
        "AveragePool",
    ),
}
TRANSPOSED = {
    "whole": {"kernel_size": 3},
    "cropped": {"kernel_size": 4, "stride": 2, "padding": 1},
    "longer": {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "bias": False},
    "all options": {
        "kernel_size": (2, 3),
        "stride": (3, 2),
        "dilation": (2, 1),
        "output_padding": (2, 0),
        "padding": (0, 1),
    },
}
ONE_OPERATOR_1D = {
    "Conv1D": (
        lambda: layers.Conv1D(
            "c", in_channels=3, out_channels=4, kernel_size=3, stride=2, padding="same"
        ),
        "Conv",
    ),
    "MaxPool1D": (lambda: layers.MaxPool1D(kernel_size=3, stride=2, padding=1), "MaxPool"),
    "AvgPool1D": (lambda: layers.AvgPool1D(kernel_size=2), "AveragePool"),
}
MAY_BE_SHORT = ("MaxPool2D", "AvgPool2D", "AvgPool1D")
SHAPES = dict.fromkeys(ONE_OPERATOR, (7, 8, 3)) | dict.fromkeys(ONE_OPERATOR_1D, (9, 3))


@pytest.mark.few(3)
@pytest.mark.each_value
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("is_static", [True, False])
def test_layer_is_one_operator_between_two_transposes(name, is_static):
    layer, operator = (ONE_OPERATOR | ONE_OPERATOR_1D)[name]
    shape = SHAPES[name]
    x, y = build(layer(), shape if is_static else (*[None] * (len(shape) - 1), shape[-1]))
    program = compare_onnx_and_py([x], y, [images(2, *shape)], assume_finite=True, **TOLERANCE)
    is_checked = name in MAY_BE_SHORT and not is_static
    checks = ["Shape", "Max", "Reshape"] if is_checked else []
    assert op_types(program) == ["Transpose", *checks, operator, "Transpose"]


@pytest.mark.each_value
@pytest.mark.parametrize("options", TRANSPOSED.values(), ids=TRANSPOSED)
@pytest.mark.parametrize("shape", [(4, 5, 3), (None, None, 3)])
def test_transposed_convolution_is_one_operator(options, shape):
    x, y = build(layers.ConvTranspose2D("c", in_channels=3, out_channels=2, **options), shape)
    program = compare_onnx_and_py([x], y, [images(2, 4, 5, 3)], **TOLERANCE)
    assert op_types(program) == ["Transpose", "ConvTranspose", "Transpose"]
    assert program.model.graph.initializers["c_W"].shape[:2] == (3, 2)


def test_transposed_convolution_of_sequences():
    layer = layers.ConvTranspose1D("c", in_channels=3, out_channels=2, kernel_size=4, stride=2)
    x, y = build(layer, (None, 3))
    program = compare_onnx_and_py([x], y, [images(2, 4, 3)], **TOLERANCE)
    assert op_types(program) == ["Transpose", "ConvTranspose", "Transpose"]


def test_crop_that_is_not_the_layers_own_is_kept():
    layer = layers.ConvTranspose2D("c", in_channels=3, out_channels=2, kernel_size=3, bias=False)
    x, y = build(layer, (None, None, 3))
    cut = y[:, 1 : y.shape[2] - 1, 2:5]
    compare_onnx_and_py([x], [cut, y[:, 1:-1]], [images(2, 4, 5, 3)], **TOLERANCE)


def test_windows_are_gathered_and_added_up():
    from pytensor_ml.layers.conv import Col2Im, Im2Col

    geometry = ((2, 3), (2, 1), (1, 2))
    x = pt.tensor("x", shape=(None, None, None, 2), dtype="float32")
    windows = Im2Col(*geometry)(x)
    total = Col2Im(*geometry)(windows * 2, x.shape[1], x.shape[2])
    compare_onnx_and_py([x], [windows, total], [images(2, 5, 7, 2)])


def test_weights_keep_their_names_channels_first():
    x, y = build(layers.Conv2D("c", in_channels=3, out_channels=4, kernel_size=2), (5, 5, 3))
    program = compare_onnx_and_py([x], y, [images(1, 5, 5, 3)], **TOLERANCE)
    shapes = {k: list(v.shape) for k, v in program.model.graph.initializers.items()}
    assert shapes == {"c_W": [4, 3, 2, 2], "c_b": [4]}


def test_other_paddings_stay_operators_of_their_own():
    network = layers.Sequential(
        layers.ConstantPad2D(padding=1, value=2.0),
        layers.Conv2D("c", in_channels=2, out_channels=2, kernel_size=3),
        layers.ReflectionPad2D(padding=1),
        layers.MaxPool2D(kernel_size=2),
        layers.ReplicationPad2D(padding=((0, 1), (1, 0))),
        layers.Conv2D("d", in_channels=2, out_channels=2, kernel_size=2),
    )
    x, y = build(network, (5, 6, 2))
    program = compare_onnx_and_py([x], y, [images(2, 5, 6, 2)], assume_finite=True, **TOLERANCE)
    assert sorted(op_types(program)) == sorted(
        ["Transpose", "Pad", "Conv", "Pad", "MaxPool", "Pad", "Conv", "Transpose"]
    )


def test_padding_of_maxima_by_zeros_is_kept_apart_from_the_layer():
    network = layers.Sequential(layers.ZeroPad2D(padding=1), layers.MaxPool2D(kernel_size=2))
    x, y = build(network, (4, 4, 2))
    compare_onnx_and_py([x], y, [-np.abs(images(1, 4, 4, 2))])


def classifier():
    return layers.Sequential(
        layers.Conv2D("first", in_channels=1, out_channels=4, kernel_size=3, padding="same"),
        ReLU(),
        layers.MaxPool2D(kernel_size=2),
        layers.Conv2D("second", in_channels=4, out_channels=6, kernel_size=3, padding="same"),
        ReLU(),
        layers.MaxPool2D(kernel_size=2),
    )


@pytest.mark.slow
def test_classifier_equals_one_written_by_hand():
    x = layers.Input("x", shape=(None, 8, 8, 1))
    features = classifier()(x)
    logits = layers.Linear("logits", n_in=24, n_out=3)(features.reshape((-1, 24)))
    initialize(logits)
    program = compare_onnx_and_py(
        [x], logits, [images(3, 8, 8, 1)], assume_finite=True, **TOLERANCE
    )
    block = ["Conv", "Relu", "MaxPool"]
    assert op_types(program) == ["Transpose", *block, *block, "Reshape", "Gemm"]
    assert "logits_W" in program.model.graph.initializers


@pytest.mark.slow
def test_mean_over_space_needs_no_second_transpose():
    x, y = build(classifier(), (8, 8, 1))
    program = compare_onnx_and_py(
        [x], y.mean(axis=(1, 2)), [images(3, 8, 8, 1)], assume_finite=True, **TOLERANCE
    )
    assert op_types(program).count("Transpose") == 1


@pytest.mark.slow
def test_residual_network_has_a_transpose_at_each_end():
    def block(name):
        conv = layers.Conv2D(name, in_channels=2, out_channels=2, kernel_size=3, padding="same")
        return lambda x: ReLU()(conv(x) + x)

    x, y = build(lambda x: block("c")(block("b")(block("a")(x))), (4, 5, 2))
    program = compare_onnx_and_py([x], y, [images(2, 4, 5, 2)], **TOLERANCE)
    assert op_types(program) == ["Transpose", *["Conv", "Add", "Relu"] * 3, "Transpose"]


GRADIENTS = {
    "same": lambda: layers.Conv2D(
        "c", in_channels=2, out_channels=3, kernel_size=3, padding="same"
    ),
    "strides": lambda: layers.Conv2D(
        "c", in_channels=2, out_channels=3, kernel_size=(3, 2), stride=2, dilation=(1, 2), padding=1
    ),
    "transposed": lambda: layers.ConvTranspose2D(
        "c", in_channels=2, out_channels=3, kernel_size=3, stride=2, padding=1
    ),
    "maxima": lambda: layers.MaxPool2D(kernel_size=2),
    "overlapping maxima": lambda: layers.MaxPool2D(kernel_size=3, stride=2, padding=1),
    "means": lambda: layers.AvgPool2D(kernel_size=2),
    "overlapping means": lambda: layers.AvgPool2D(kernel_size=3, stride=2, padding=1),
    "sequence": lambda: layers.Conv1D(
        "c", in_channels=2, out_channels=3, kernel_size=3, padding="same"
    ),
}


@pytest.mark.few(5)
@pytest.mark.each_value
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_layers(name):
    x, y = build(GRADIENTS[name](), (6, 2) if name == "sequence" else (6, 6, 2))
    gradients = pt.grad((y**2).sum(), [x, *Model(y).weights])
    value = images(2, *x.type.shape[1:])
    program = compare_onnx_and_py([x], gradients, [value], rtol=1e-4, atol=1e-5)
    assert not any(f.name.startswith("Im2Col") for f in program.model.functions.values())


def test_gradient_of_ties_goes_to_the_first():
    x, y = build(layers.MaxPool2D(kernel_size=2), (4, 4, 1))
    gradient = pt.grad((y * 3).sum(), x)
    compare_onnx_and_py([x], gradient, [np.zeros((1, 4, 4, 1), "float32")])


def test_gradients_of_a_classifier_gather_windows_by_their_positions():
    x, y = build(classifier(), (8, 8, 1))
    gradients = pt.grad((y**2).sum(), Model(y).weights)
    program = compare_onnx_and_py([x], gradients, [images(2, 8, 8, 1)], rtol=1e-4, atol=1e-4)
    operators = op_types(program)
    assert not {"GatherND", "ScatterND"} & set(operators)
    assert operators.count("ConvTranspose") == 1


def test_dilated_maxima_of_known_sizes_are_one_operator():
    x, y = build(layers.MaxPool2D(kernel_size=(3, 2), stride=1, dilation=2, padding=1), (6, 7, 3))
    # Windows of shorter arrays may lie in the padding alone.
    program = compare_onnx_and_py([x], y, [images(2, 6, 7, 3)], assume_finite=True, **TOLERANCE)
    assert op_types(program) == ["Transpose", "MaxPool", "Transpose"]
