"""Recurrent layers of ONNX in tapes, compared with ONNX Runtime's."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import native
from pytensor_onnx.kernels.regions import fuse, whole_region

SIZE, INPUTS, STEPS, BATCH = 3, 4, 6, 2
RNG = np.random.default_rng(0)


def layer(operator, optional, attributes=None, directions=1):
    """Return the model of a layer with some optional operands, and its feeds."""
    gates = 4 if operator == "LSTM" else 3
    shapes = {
        "x": (STEPS, BATCH, INPUTS),
        "w": (directions, gates * SIZE, INPUTS),
        "r": (directions, gates * SIZE, SIZE),
        "b": (directions, 2 * gates * SIZE),
        "h": (directions, BATCH, SIZE),
        "c": (directions, BATCH, SIZE),
    }
    states = ["h", "c"] if operator == "LSTM" else ["h"]
    places = ["x", "w", "r", "b", "", *states]
    names = [x if x in ("x", "w", "r", *optional) else "" for x in places]
    outputs = ["y", *(f"last_{x}" for x in states)]
    node = helper.make_node(operator, names, outputs, hidden_size=SIZE, **attributes or {})
    used = [x for x in names if x]
    inputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, shapes[x]) for x in used]
    results = [helper.make_tensor_value_info(x, TensorProto.FLOAT, None) for x in outputs]
    graph = helper.make_graph([node], "layer", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, {x: RNG.normal(size=shapes[x]).astype("float32") for x in used}


def run(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    native.register_with_regions(options)
    return onnxruntime.InferenceSession(model, options)


@pytest.mark.parametrize("optional", ["", "b", "bhc", "hc"])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})],
)
def test_a_layer_is_a_scan(operator, attributes, optional):
    model, feed = layer(operator, optional, attributes)
    feed["x"][1, 0], feed["x"][2, 1] = 40.0, -40.0
    source = model.SerializeToString()
    written = fuse(source, every_size=True).model
    assert whole_region(onnx.load_model_from_string(written).graph) is not None
    expected = onnxruntime.InferenceSession(source).run(None, feed)
    for found, right in zip(run(written).run(None, feed), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_sessions_leave_layers_to_the_runtime():
    model, _ = layer("LSTM", "b")
    assert fuse(model.SerializeToString()).model is None


@pytest.mark.parametrize(
    "attributes",
    [{"direction": "reverse"}, {"activations": ["Relu", "Tanh", "Tanh"]}, {"clip": 1.0}],
)
def test_other_layers_stay(attributes):
    model, _ = layer("LSTM", "b", attributes)
    fusion = fuse(model.SerializeToString(), every_size=True)
    assert any("LSTM" in line for line in fusion.lines())
