"""Layers and estimators equal ONNX Runtime's results."""

import numpy as np
import pytensor
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of

ML = "ai.onnx.ml"


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


def test_linear_models_and_scalers():
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain=ML, offset=[0.5, 1.0], scale=[2.0, 0.5]),
        helper.make_node("Normalizer", ["s"], ["n"], domain=ML, norm="L2"),
        helper.make_node(
            "LinearClassifier",
            ["n"],
            ["label", "scores"],
            domain=ML,
            coefficients=[1.0, -1.0, 0.5, 2.0, 0.0, 1.0],
            intercepts=[0.1, 0.0, -0.2],
            classlabels_ints=[3, 5, 7],
            post_transform="SOFTMAX",
        ),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n", 2)},
        outputs={"label": ("n",), "scores": ("n", 3)},
        dtypes={"label": TensorProto.INT64},
    )
    assert_equal_to_runtime(model, normal(6, 2))


def test_trees():
    """Two trees, one of a single leaf."""
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain=ML,
        n_targets=1,
        nodes_treeids=[0, 0, 0, 0, 0, 1],
        nodes_nodeids=[0, 1, 2, 3, 4, 0],
        nodes_featureids=[0, 1, 0, 0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "LEAF"],
        nodes_values=[0.0, 0.25, 0, 0, 0, 0],
        nodes_truenodeids=[1, 3, 0, 0, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0, 0],
        target_treeids=[0, 0, 0, 1],
        target_nodeids=[2, 3, 4, 0],
        target_ids=[0, 0, 0, 0],
        target_weights=[1.0, 2.0, 3.0, 10.0],
        base_values=[0.5],
    )
    model = model_of([node], inputs={"x": ("n", 2)}, outputs={"y": ("n", 1)})
    x = np.float32([[0, 0.25], [0, 0.2], [1, 0], [-1, 5]])
    assert_equal_to_runtime(model, x)
    assert evaluated(from_onnx(model), x)[0].ravel().tolist() == [13.5, 12.5, 11.5, 13.5]
