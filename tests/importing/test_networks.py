"""Layers equal ONNX Runtime's results."""

from typing import Any

import numpy as np
import pytensor
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def assert_equal_to_runtime(model, *arrays, rtol=1e-5):
    for found, expected in zip(
        evaluated(from_onnx(model), *arrays), by_runtime(model, *arrays), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool"])
def test_same_padding_of_images_of_unknown_size(operator, auto_pad):
    names = ["x", "w"] if operator == "Conv" else ["x"]
    node = helper.make_node(
        operator, names, ["y"], auto_pad=auto_pad, kernel_shape=[3, 3], strides=[2, 2]
    )
    model = model_of(
        [node],
        inputs={"x": ("n", 2, "h", "w")},
        outputs={"y": ("n", None, None, None)},
        constants={"w": normal(4, 2, 3, 3)} if operator == "Conv" else {},
    )
    assert_equal_to_runtime(model, normal(1, 2, 6, 7))


def test_resize_to_the_size_of_another_image():
    nodes = [
        helper.make_node("Shape", ["other"], ["size"], start=2),
        helper.make_node("Shape", ["x"], ["batch"], end=2),
        helper.make_node("Concat", ["batch", "size"], ["target"], axis=0),
        helper.make_node(
            "Resize",
            ["x", "", "", "target"],
            ["y"],
            mode="linear",
            coordinate_transformation_mode="half_pixel",
        ),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n", 2, "h", "w"), "other": ("n", 3, "a", "b")},
        outputs={"y": ("n", 2, "a", "b")},
    )
    assert_equal_to_runtime(model, normal(1, 2, 3, 4), normal(1, 3, 6, 5))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_recurrent_layers_with_lengths_of_sequences(operator, direction):
    gates, hidden = {"LSTM": 4, "GRU": 3}[operator], 3
    ways = 2 if direction == "bidirectional" else 1
    model = model_of(
        [
            helper.make_node(
                operator,
                ["x", "w", "r", "b", "lengths"],
                ["y", "h"],
                hidden_size=hidden,
                direction=direction,
            )
        ],
        inputs={"x": ("time", "n", 2), "lengths": ("n",)},
        outputs={"y": (None,) * 4, "h": (None,) * 3},
        dtypes={"lengths": TensorProto.INT32},
        constants={
            "w": normal(ways, gates * hidden, 2),
            "r": normal(ways, gates * hidden, hidden),
            "b": normal(ways, 2 * gates * hidden),
        },
    )
    assert_equal_to_runtime(model, normal(4, 2, 2), np.int32([4, 4]))


def test_activations_of_both_directions_take_their_parameters_in_order():
    node = helper.make_node(
        "RNN",
        ["x", "w", "r"],
        ["y", "h"],
        hidden_size=3,
        direction="bidirectional",
        activations=["LeakyRelu", "Affine"],
        activation_alpha=[0.5, 0.25],
        activation_beta=[0.125],
    )
    model = model_of(
        [node],
        inputs={"x": ("time", "n", 2)},
        outputs={"y": (None,) * 4, "h": (None,) * 3},
        constants={"w": normal(2, 3, 2), "r": normal(2, 3, 3)},
    )
    assert_equal_to_runtime(model, normal(4, 2, 2))


def test_a_recurrent_layer_comes_back_as_one_operator():
    model = model_of(
        [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3)],
        inputs={"x": ("time", "n", 2)},
        outputs={"y": (None,) * 4},
        constants={"w": normal(1, 12, 2), "r": normal(1, 12, 3)},
    )
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert [node.op_type for node in program.model.graph.all_nodes()].count("LSTM") == 1


def test_the_gradient_of_an_imported_network_equals_differences():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["y"], keepdims=0),
    ]
    model = model_of(
        nodes,
        inputs={"x": (1, 2, 5, 5)},
        outputs={"y": ()},
        constants={"w": normal(3, 2, 3, 3)},
    )
    graph = from_onnx(model)
    (x,), (y,) = graph.inputs, graph.outputs
    value, step = normal(1, 2, 5, 5), 1e-2 * normal(1, 2, 5, 5)[:, ::-1]
    with pytensor.config.change_flags(cxx=""):
        function = pytensor.function([x], [y, pytensor.grad(y, x)], mode=PYTHON)
    high, low = function(value + step)[0], function(value - step)[0]
    np.testing.assert_allclose(high - low, 2 * (function(value)[1] * step).sum(), rtol=1e-2)


@pytest.mark.parametrize("name", ["is_nan", "by_rows"])
def test_rows_of_attention_without_scores_have_no_gradient(name):
    """The second row has no finite score; its softmax is replaced by zeros."""
    dead = {
        "is_nan": [helper.make_node("IsNaN", ["s"], ["dead"])],
        "by_rows": [
            helper.make_node("ReduceMax", ["x", "axes"], ["top"]),
            helper.make_node("Equal", ["top", "low"], ["dead"]),
        ],
    }[name]
    model = model_of(
        [
            helper.make_node("Softmax", ["x"], ["s"]),
            *dead,
            helper.make_node("Where", ["dead", "zero", "s"], ["y"]),
        ],
        inputs={"x": ("n", 3)},
        outputs={"y": ("n", 3)},
        constants={
            "zero": np.float32(0),
            "low": np.float32(-np.inf),
            "axes": np.int64([1]),
        },
    )
    graph = from_onnx(model)
    x = np.float32([[0, 1, -np.inf], [-np.inf] * 3])
    np.testing.assert_allclose(evaluated(graph, x)[0], by_runtime(model, x)[0], rtol=1e-6)
    if name == "is_nan":
        program = export_onnx(graph.inputs, graph.outputs)
        assert [n.op_type for n in program.model.graph] == ["Softmax", "IsNaN", "Where"]
    slope = pytensor.grad(graph.outputs[0][:, 0].sum(), graph.inputs[0])
    found = pytensor.function(graph.inputs, slope, mode="ONNX")(x)
    p = 1 / (1 + np.e)
    np.testing.assert_allclose(found, [[p * (1 - p), p * (p - 1), 0], [0, 0, 0]], rtol=1e-5)


@pytest.mark.parametrize("mode", [PYTHON, "FAST_COMPILE", "ONNX"], ids=["as written", "py", "onnx"])
def test_a_quotient_is_rounded_once_before_it_is_quantised(mode):
    """A product with a rounded reciprocal would take halves to other integers."""
    names = ["q", "s", "z"]
    dynamic = model_of(
        [helper.make_node("DynamicQuantizeLinear", ["x"], names)],
        inputs={"x": ("n",)},
        outputs={"q": ("n",), "s": (), "z": ()},
        dtypes={"q": TensorProto.UINT8, "z": TensorProto.UINT8},
    )
    fixed = model_of(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])],
        inputs={"x": ("n",)},
        outputs={"q": ("n",)},
        constants={"s": np.float32(0.1), "z": np.uint8(3)},
        dtypes={"q": TensorProto.UINT8},
    )
    for model, step in ((dynamic, 1.0), (fixed, 0.05)):
        graph = from_onnx(model)
        with pytensor.config.change_flags(cxx=""):
            function = pytensor.function(graph.inputs, graph.outputs, mode=mode)
        for low, high in ((-20, 20), (1, 99), (-9, -2), (0, 1)):
            x = (step * np.arange(low, high)).astype("float32")
            for found, expected in zip(function(x), by_runtime(model, x), strict=True):
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 3)])
def test_old_files_have_slopes_of_channels(shape):
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    slope = np.float32([0.1, 0.2, 0.3])
    sizes = {"inputs": {"x": shape}, "outputs": {"y": shape}}
    model = model_of([node], **sizes, constants={"slope": slope}, opset=6)
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    slopes = slope.reshape(-1, *[1] * (len(shape) - 2))
    (found,) = evaluated(from_onnx(model), x)
    np.testing.assert_array_equal(found, np.where(x < 0, slopes * x, x))


EXPERIMENTAL: dict[str, dict[str, Any]] = {
    "Affine": {"alpha": 2.0, "beta": 0.5},
    "ScaledTanh": {"alpha": 2.0, "beta": 0.5},
    "ParametricSoftplus": {"alpha": 2.0, "beta": 0.5},
    "ImageScaler": {"bias": [1.0, 2.0, 3.0], "scale": 0.5},
    "Crop": {"border": [1, 2, 0, 1]},
}


@pytest.mark.parametrize("operator", EXPERIMENTAL)
def test_experimental_operators_of_old_files(operator):
    node = helper.make_node(operator, ["x"], ["y"], **EXPERIMENTAL[operator])
    model = model_of([node], inputs={"x": (None, 3, None, None)}, outputs={"y": None}, opset=9)
    assert_equal_to_runtime(model, normal(2, 3, 6, 7))


def test_the_maxima_of_regions():
    rois = [[0, 0, 0, 14, 15], [1, 2, 3, 11, 9.5], [0, 16, 14, 16, 14], [1, 12, 12, 60, 60]]
    node = helper.make_node(
        "MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[2, 3], spatial_scale=0.5
    )
    inputs = {"x": (None, 3, None, None), "rois": (None, 5)}
    model = model_of([node], inputs=inputs, outputs={"y": None})
    assert_equal_to_runtime(model, normal(2, 3, 8, 9), np.array(rois, "float32"))
