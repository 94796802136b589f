"""Recurrent layers of pytensor-ml predict and train in ONNX as their formulas say."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops import loops

recurrent = pytest.importorskip("pytensor_ml.layers.recurrent")

N_IN, N_HIDDEN = 3, 4
LENGTHS = [1, 2, 7]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gates(projection):
    return np.split(projection, projection.shape[-1] // N_HIDDEN, axis=-1)


# One step each, as torch documents RNN, LSTM and GRU; the gates stand in its order.


def rnn_step(x, h, _, w):
    new = np.tanh(x @ w["W_ih"] + w["b"] + h @ w["W_hh"])
    return new, None


def lstm_step(x, h, c, w):
    i, f, g, o = gates(x @ w["W_ih"] + w["b"] + h @ w["W_hh"])
    memory = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(memory), memory


def gru_step(x, h, _, w):
    input_r, input_z, input_n = gates(x @ w["W_ih"] + w["b"])
    state_r, state_z, state_n = gates(h @ w["W_hh"])
    r, z = sigmoid(input_r + state_r), sigmoid(input_z + state_z)
    n = np.tanh(input_n + r * (state_n + w["c"]))
    return (1 - z) * n + z * h, None


STEPS = {"RNN": rnn_step, "LSTM": lstm_step, "GRU": gru_step}


def reference(kind, x, weights, mask=None, *, reverse=False):
    """Return the outputs of a layer for a batch of sequences."""
    h = c = np.zeros((x.shape[0], N_HIDDEN))
    outputs = np.zeros((*x.shape[:2], N_HIDDEN))
    order = range(x.shape[1])
    for t in reversed(order) if reverse else order:
        new_h, new_c = STEPS[kind](x[:, t], h, c, weights)
        if mask is not None:
            keep = mask[:, t, None]
            new_h = np.where(keep, new_h, h)
            new_c = None if new_c is None else np.where(keep, new_c, c)
        h, c = new_h, new_c
        outputs[:, t] = h
    return outputs


def make_layer(kind, name="layer", **options):
    layer = getattr(recurrent, kind)(name, n_in=N_IN, n_hidden=N_HIDDEN, **options)
    rng = np.random.default_rng(len(name))
    for parameter in parameters(layer).values():
        shape = parameter.get_value().shape
        parameter.set_value(rng.normal(scale=0.5, size=shape).astype(parameter.type.dtype))
    return layer


def parameters(layer):
    return {name: value for name, value in vars(layer.cell).items() if hasattr(value, "get_value")}


def weights_of(layer):
    return {name: value.get_value() for name, value in parameters(layer).items()}


def sequences(length, batch=2):
    return np.random.default_rng(0).normal(size=(batch, length, N_IN))


@pytest.fixture
def x():
    return pt.tensor3("x", dtype="float64")


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", STEPS)
def test_prediction(x, kind, reverse, length):
    layer, values = make_layer(kind, reverse=reverse), sequences(length)
    program = compare_onnx_and_py([x], layer(x), [values], rtol=1e-10)
    expected = reference(kind, values, weights_of(layer), reverse=reverse)
    np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)
    assert loops(program) == ["Scan"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", STEPS)
def test_prediction_of_no_steps_and_of_many(x, kind, reverse):
    layer = make_layer(kind, reverse=reverse)
    run = compile_onnx([x], layer(x), verify=False)
    for length in (0, 300):
        values = sequences(length)
        expected = reference(kind, values, weights_of(layer), reverse=reverse)
        np.testing.assert_allclose(run(values), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", STEPS)
def test_prediction_from_the_last_step(x, kind):
    layer, values = make_layer(kind), sequences(7)
    program = compare_onnx_and_py([x], layer(x)[..., -1, :], [values], rtol=1e-10)
    expected = reference(kind, values, weights_of(layer))[:, -1]
    np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", STEPS)
def test_prediction_of_padded_sequences(x, kind):
    layer, values = make_layer(kind), sequences(5)
    mask, kept = pt.matrix("mask", dtype="bool"), np.arange(5) < np.array([[3], [5]])
    program = compare_onnx_and_py([x, mask], layer(x, mask=mask), [values, kept], rtol=1e-10)
    expected = reference(kind, values, weights_of(layer), kept)
    np.testing.assert_allclose(program(values, kept)[0], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", STEPS)
def test_bidirectional(x, kind, length):
    forward, backward = make_layer(kind, "forward"), make_layer(kind, "backward")
    values = sequences(length)
    y = recurrent.Bidirectional(forward, backward)(x)
    program = compare_onnx_and_py([x], y, [values], rtol=1e-10)
    expected = np.concatenate(
        [
            reference(kind, values, weights_of(forward)),
            reference(kind, values, weights_of(backward), reverse=True),
        ],
        axis=-1,
    )
    np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", STEPS)
def test_training_gradient(x, kind, length):
    layer, values, target = make_layer(kind), sequences(length), 0.25
    given = parameters(layer)
    gradients = pt.grad(((layer(x) - target) ** 2).sum(), list(given.values()))
    program = compare_onnx_and_py([x], gradients, [values], rtol=1e-9)

    weights, rng, h = weights_of(layer), np.random.default_rng(5), 1e-5
    direction = {name: rng.normal(size=w.shape) for name, w in weights.items()}

    def loss(step):
        moved = {name: w + step * direction[name] for name, w in weights.items()}
        return ((reference(kind, values, moved) - target) ** 2).sum()

    slope = sum(
        (gradient * direction[name]).sum()
        for name, gradient in zip(given, program(values), strict=True)
    )
    # The truncation error of a central difference is of the order of h squared.
    np.testing.assert_allclose(slope, (loss(h) - loss(-h)) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("kind", STEPS)
def test_one_file_serves_every_batch_and_length(x, kind):
    layer = make_layer(kind)
    program = export_onnx([x], [layer(x)], verify=False)
    for batch, length in [(1, 1), (3, 8), (2, 0)]:
        values = sequences(length, batch)
        expected = reference(kind, values, weights_of(layer))
        np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)
