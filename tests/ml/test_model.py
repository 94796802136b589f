"""A Model of pytensor-ml is exported as it predicts."""

import sys
import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError, export_onnx
from tests.conftest import op_types

layers = pytest.importorskip("pytensor_ml.layers")
from pytensor_ml.activations import ReLU  # noqa: E402
from pytensor_ml.model import Model  # noqa: E402

RNG = np.random.default_rng(0)
INTERPRETED = {"mode": "FAST_COMPILE"}


def network(x):
    return layers.Sequential(
        layers.Linear("fc1", n_in=4, n_out=8),
        layers.BatchNorm("bn", n_in=8),
        ReLU(),
        layers.Dropout("drop", p=0.5),
        layers.Linear("fc2", n_in=8, n_out=2),
    )(x)


@pytest.fixture
def model():
    x = layers.Input("X", shape=(None, 4))
    made = Model(network(x), INTERPRETED).initialize(seed=0)
    for variable in pytensor.graph.traversal.graph_inputs([made.y]):
        if isinstance(variable, pt.sharedvar.TensorSharedVariable):
            variable.set_value(RNG.uniform(0.5, 2, size=variable.get_value().shape))
    return made


def expected(model, x):
    """Predictions by the definition of the layers, from the values of their parameters."""
    w = {
        v.name: v.get_value()
        for v in pytensor.graph.traversal.graph_inputs([model.y])
        if isinstance(v, pt.sharedvar.TensorSharedVariable)
    }
    hidden = x @ w["fc1_W"] + w["fc1_b"]
    scale = w["bn_scale"] / np.sqrt(w["bn_running_var"] + 1e-5)
    hidden = (hidden - w["bn_running_mean"]) * scale + w["bn_loc"]
    return np.maximum(hidden, 0) @ w["fc2_W"] + w["fc2_b"]


def test_model_is_exported_as_it_predicts(model):
    x = RNG.normal(size=(5, 4))
    program = export_onnx(model)
    np.testing.assert_allclose(program(x), expected(model, x), rtol=1e-12)
    np.testing.assert_allclose(program(x), model.predict(x), rtol=1e-12)


def test_input_and_output_of_a_model_have_a_named_batch_and_its_weights_their_names(model):
    graph = export_onnx(model).model.graph
    assert [(v.name, [str(d) for d in v.shape]) for v in graph.inputs] == [("X", ["batch", "4"])]
    assert [(v.name, [str(d) for d in v.shape]) for v in graph.outputs] == [
        ("fc2_output", ["batch", "2"])
    ]
    assert {"fc2_W", "fc2_b"} <= set(graph.initializers)
    assert "Dropout" not in {node.op_type for node in graph}


def test_output_of_a_network_is_exported_like_its_model(model):
    assert op_types(export_onnx(model.y)) == op_types(export_onnx(model))


def test_path_may_follow_a_model(model, tmp_path):
    export_onnx(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 0


def test_names_of_axes_may_be_chosen(model):
    program = export_onnx(model, dynamic_axes={"X": {0: "rows"}})
    assert str(program.model.graph.inputs[0].shape[0]) == "rows"


def test_several_inputs_stand_in_the_order_given_and_share_the_batch():
    a, b = layers.Input("a", shape=(None, 2)), layers.Input("b", shape=(None, 3))
    joined = layers.Concatenate([layers.Linear("fa", n_in=2, n_out=3)(a), b], axis=-1)
    model = Model(joined, INTERPRETED)
    program = export_onnx([b, a], model)
    assert [v.name for v in program.model.graph.inputs] == ["b", "a"]
    assert [str(v.shape[0]) for v in program.model.graph.inputs] == ["batch", "batch"]
    values = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 3))
    np.testing.assert_allclose(
        program(values[1], values[0]), model.predict(a=values[0], b=values[1]), rtol=1e-12
    )


@pytest.mark.slow
def test_inputs_that_are_found_stand_in_the_order_of_arguments():
    a, b, c = (layers.Input(name, shape=(None, 5, 8)) for name in ("c", "a", "b"))
    attention = layers.MultiheadAttention("attention", n_embd=8, n_head=2)
    for y in (attention(a, b, c[:, None, :, :5]), pt.concatenate([a, b, c], axis=1), a - b * c):
        program = export_onnx(Model(y), verify=False)
        assert [v.name for v in program.inputs] == ["c", "a", "b"]


def test_several_outputs_come_in_order():
    x = layers.Input("X", shape=(None, 4))
    hidden = layers.Dropout("drop", p=0.5)(layers.Linear("fc1", n_in=4, n_out=3)(x))
    y = layers.Linear("fc2", n_in=3, n_out=2)(hidden)
    program = export_onnx(Model([y, hidden]))
    first, second = program(np.ones((1, 4)))
    assert (first.shape, second.shape) == ((1, 2), (1, 3))


def test_training_layers_of_an_explicit_graph_are_warned_of(model):
    x = layers.Input("X", shape=(None, 4))
    y = layers.BatchNorm("bn", n_in=4)(x)
    with pytest.warns(UserWarning, match="bn.*exported as in training"):
        export_onnx([x], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_onnx(y)


def test_missing_outputs_are_named():
    with pytest.raises(PyTensorONNXError, match="the outputs are missing"):
        export_onnx([pt.vector("x")])


def test_pytensor_ml_is_not_imported_for_other_graphs(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pytensor_ml"]:
        monkeypatch.delitem(sys.modules, name)
    x = pt.vector("x")
    export_onnx(pt.exp(x))
    assert "pytensor_ml" not in sys.modules
