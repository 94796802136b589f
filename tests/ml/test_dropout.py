"""Dropout of pytensor-ml in training: its generators are state of the step."""

import json

import numpy as np
import pytensor
import pytest

from pytensor_onnx import export_training_step
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.random import state_of

layers = pytest.importorskip("pytensor_ml.layers")
from pytensor_ml.checkpoint import generator_from_state, jsonable_rng_state  # noqa: E402
from pytensor_ml.model import Model  # noqa: E402
from pytensor_ml.optim import sgd  # noqa: E402

X = np.array([[1, -2, 3, 0.5], [0, 1, -1, 2], [2, 2, 2, 2]], "float32")
P = 0.25


@pytest.fixture
def network():
    with pytensor.config.change_flags(floatX="float32"):
        x = layers.Input("X", shape=(None, 4))
        dropped = layers.Dropout("drop", p=P, random_state=3)(x)
        model = Model(layers.Linear("fc", n_in=4, n_out=1)(dropped), {"mode": "FAST_COMPILE"})
        yield model.initialize(seed=0)


def steps(state, w, b, n, rate):
    """Yield the losses of gradient descent with masks drawn by the reference, and its state."""
    for _ in range(n):
        state, numbers = reference.uniform(state, X.size, "float32")
        dropped = X * (numbers < 1 - P).reshape(X.shape) / (1 - P)
        y = dropped @ w + b
        yield (y**2).mean(), state
        slope = 2 * y / y.size
        w, b = w - rate * dropped.T @ slope, b - rate * slope.sum(axis=0)


def test_a_training_step_drops_others_in_every_call(network):
    loss = (network.y**2).mean()
    weights = {v.name: v.get_value().astype("float64") for v in network.weights}
    generator = next(
        v for v in pytensor.graph.traversal.graph_inputs([loss]) if v.name == "drop/rng_0"
    )
    program = export_training_step(loss, network.weights, sgd(0.05))
    assert "equal to PyTensor" in str(program.verification)
    start = state_of(generator.get_value())
    np.testing.assert_array_equal(program.state["drop/rng_0"], start)
    for expected, state in steps(start, weights["fc_W"], weights["fc_b"], 4, 0.05):
        np.testing.assert_allclose(program(X), expected, rtol=1e-5)
        np.testing.assert_array_equal(program.state["drop/rng_0"], state)


@pytest.mark.slow
def test_training_in_mode_onnx_draws_the_same_as_the_exported_step(network):
    loss = (network.y**2).mean()
    program = export_training_step(loss, network.weights, sgd(0.05), verify=False)
    step = network.compile_train(sgd(0.05), loss=loss, compile_kwargs={"mode": "ONNX"})
    for _ in range(3):
        np.testing.assert_allclose(step(X), program(X), rtol=1e-5)


def test_a_checkpoint_of_mode_onnx_goes_on_where_it_was(network):
    loss = (network.y**2).mean()
    step = network.compile_train(sgd(0.0), loss=loss, compile_kwargs={"mode": "ONNX"})
    generator = next(
        v for v in pytensor.graph.traversal.graph_inputs([loss]) if v.name == "drop/rng_0"
    )
    fresh = generator.get_value()
    step(X)
    stored = json.dumps(jsonable_rng_state(generator.get_value().bit_generator.state))
    expected = step(X), step(X)
    restored = generator_from_state(json.loads(stored))
    assert type(restored.bit_generator) is type(fresh.bit_generator)
    generator.set_value(restored)
    assert (step(X), step(X)) == expected
    assert expected[0] != expected[1]
