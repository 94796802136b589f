"""Recurrent layers of pytensor-ml predict and train in ONNX as their formulas say."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.loops.loop_cases import loops, scan
from tests.nn.recurrence import recurrence

recurrent = pytest.importorskip("pytensor_ml.layers.recurrent")
from pytensor_ml.activations import ReLU, Tanh  # noqa: E402

N_IN, N_HIDDEN = 3, 4
LENGTHS = [1, 2, 7]
KINDS = ["RNN", "LSTM", "GRU"]


def reference(kind, x, weights, mask=None, *, reverse=False):
    """Return the outputs of a layer for a batch of sequences."""
    w_ih, w_hh, b, c = (weights[name] for name in ("W_ih", "W_hh", "b", "c"))
    of_state = np.concatenate([np.zeros(2 * N_HIDDEN), c]) if kind == "GRU" else 0.0
    arrays = (x.astype("float64"), w_ih, w_hh, b, of_state)
    return recurrence(kind.lower(), *arrays, mask=mask, reverse=reverse)[0]


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
    values = {name: value.get_value() for name, value in parameters(layer).items()}
    return {"b": 0.0, "c": np.zeros(N_HIDDEN)} | values


def sequences(length, batch=2):
    return np.random.default_rng(0).normal(size=(batch, length, N_IN))


@pytest.fixture
def x():
    return pt.tensor3("x", dtype="float64")


@pytest.mark.each_value
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_prediction(x, kind, reverse, length):
    layer, values = make_layer(kind, reverse=reverse), sequences(length)
    program = compare_onnx_and_py([x], layer(x), [values], rtol=1e-10)
    expected = reference(kind, values, weights_of(layer), reverse=reverse)
    np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)
    assert loops(program) == ["Scan"]


@pytest.mark.each_value
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_prediction_of_no_steps_and_of_many(x, kind, reverse):
    layer = make_layer(kind, reverse=reverse)
    run = compile_onnx([x], layer(x), verify=False)
    for length in (0, 300):
        values = sequences(length)
        expected = reference(kind, values, weights_of(layer), reverse=reverse)
        np.testing.assert_allclose(run(values), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_from_the_last_step(x, kind):
    layer, values = make_layer(kind), sequences(7)
    program = compare_onnx_and_py([x], layer(x)[..., -1, :], [values], rtol=1e-10)
    expected = reference(kind, values, weights_of(layer))[:, -1]
    np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_of_padded_sequences(x, kind):
    layer, values = make_layer(kind), sequences(5)
    mask, kept = pt.matrix("mask", dtype="bool"), np.arange(5) < np.array([[3], [5]])
    program = compare_onnx_and_py([x, mask], layer(x, mask=mask), [values, kept], rtol=1e-10)
    expected = reference(kind, values, weights_of(layer), kept)
    np.testing.assert_allclose(program(values, kept)[0], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.each_value
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.each_value
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(1)
def test_training_gradient(x, kind, length):
    layer, values, target = make_layer(kind), sequences(length), 0.25
    given = parameters(layer)
    gradients = pt.grad(((layer(x) - target) ** 2).sum(), list(given.values()))
    program = compare_onnx_and_py([x], gradients, [values], rtol=1e-9)

    weights, rng, h = weights_of(layer), np.random.default_rng(5), 1e-5
    direction = {name: rng.normal(size=np.shape(w)) for name, w in weights.items()}

    def loss(step):
        moved = weights | {name: weights[name] + step * direction[name] for name in given}
        return ((reference(kind, values, moved) - target) ** 2).sum()

    slope = sum(
        (gradient * direction[name]).sum()
        for name, gradient in zip(given, program(values), strict=True)
    )
    # The truncation error of a central difference is of the order of h squared.
    np.testing.assert_allclose(slope, (loss(h) - loss(-h)) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_serves_every_batch_and_length(x, kind):
    layer = make_layer(kind)
    program = export_onnx([x], [layer(x)], verify=False)
    for batch, length in [(1, 1), (3, 8), (2, 0)]:
        values = sequences(length, batch)
        expected = reference(kind, values, weights_of(layer))
        np.testing.assert_allclose(program(values)[0], expected, rtol=1e-10, atol=1e-13)


# In float32 a layer is one operator, whose sigmoid and tanh have absolute errors of 2e-7.
ABSOLUTE = {"rtol": 0, "atol": 1e-6}


@pytest.fixture
def single(monkeypatch):
    """Return an input, for layers with parameters in float32."""
    monkeypatch.setattr(pytensor.config, "floatX", "float32")
    return pt.tensor("x", shape=(None, None, N_IN), dtype="float32")


def cells(program):
    """Return the recurrent operators of a model, those inside branches too."""
    names = {"LSTM", "GRU", "RNN"}
    return [node.op_type for node in program.model.graph.all_nodes() if node.op_type in names]


@pytest.mark.each_value
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"reverse": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_one_operator(single, kind, options):
    layer = make_layer(kind, **options)
    program = export_onnx([single], [layer(single)])
    assert cells(program) == [kind]
    for batch, length in [(1, 1), (3, 7), (1, 300), (2, 0), (0, 5)]:
        values = sequences(length, batch).astype("float32")
        reverse = options.get("reverse", False)
        expected = reference(kind, values, weights_of(layer), reverse=reverse)
        np.testing.assert_allclose(program(values)[0], expected, **ABSOLUTE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_of_known_sizes_has_no_loop(single, kind):
    x = pt.tensor("x", shape=(2, 7, N_IN), dtype="float32")
    layer = make_layer(kind)
    program = export_onnx([x], [layer(x)], assume_finite=True)
    assert op_types(program) == ["Transpose", kind, "Squeeze", "Transpose"]


@pytest.mark.each_value
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_from_initial_states(single, kind, reverse):
    layer, values = make_layer(kind, reverse=reverse), sequences(7).astype("float32")
    given = [pt.matrix(name, dtype="float32") for name in "hc"[: 1 + (kind == "LSTM")]]
    states = [np.full((2, N_HIDDEN), 0.5, "float32") for _ in given]
    program = compare_onnx_and_py(
        [single, *given], layer(single, given), [values, *states], **ABSOLUTE
    )
    assert cells(program) == [kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_of_nan(single, kind):
    layer, values = make_layer(kind), sequences(7).astype("float32")
    values[1, 3, 0] = np.nan
    program = compare_onnx_and_py([single], layer(single), [values], **ABSOLUTE)
    assert np.isnan(program(values)[0][1, 3:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bidirectional_in_single_precision_is_two_operators(single, kind):
    forward, backward = make_layer(kind, "forward"), make_layer(kind, "backward")
    y, values = recurrent.Bidirectional(forward, backward)(single), sequences(7).astype("float32")
    program = compare_onnx_and_py([single], y, [values], **ABSOLUTE)
    assert cells(program) == [kind, kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_step_in_single_precision(single, kind):
    layer, values = make_layer(kind), sequences(7).astype("float32")
    program = compare_onnx_and_py([single], layer(single)[..., -1, :], [values], **ABSOLUTE)
    assert cells(program) == [kind]


def masked(x):
    return make_layer("LSTM")(x, mask=pt.ones(x.shape[:-1], dtype="bool"))


def rectified(x):
    return make_layer("RNN", activation=ReLU())(x)


def with_other_gates(x):
    return make_layer("GRU", gate_activation=Tanh())(x)


@pytest.mark.parametrize("layer", [masked, rectified, with_other_gates])
def test_other_layers_stay_loops(single, layer):
    values = sequences(7).astype("float32")
    program = compare_onnx_and_py([single], layer(single), [values], rtol=1e-4, atol=1e-6)
    assert cells(program) == []
    assert loops(program) == ["Scan"]


def test_a_layer_over_one_sequence_keeps_small_results(single):
    layer, values = make_layer("LSTM"), sequences(9).astype("float32")
    layer.cell.b.set_value(layer.cell.b.get_value() - 12)
    program = export_onnx([single], [layer(single[0])], verify=False)
    assert loops(program) == ["Scan"]
    expected = reference("LSTM", values[:1], weights_of(layer))[0]
    np.testing.assert_allclose(program(values)[0], expected, rtol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_the_user_stays_a_loop(single, kind):
    cell = make_layer(kind).cell
    start = cell.initial_state(single)
    y = scan(cell.step, [single.dimshuffle(1, 0, 2)], list(start), name="mine")
    program = export_onnx([single], y if isinstance(y, list) else [y], verify=False)
    assert cells(program) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_training_in_single_precision_runs_the_loop(single, kind):
    layer, values = make_layer(kind), sequences(7).astype("float32")
    loss = ((layer(single) - np.float32(0.25)) ** 2).sum()
    gradients = pt.grad(loss, list(parameters(layer).values()))
    program = compare_onnx_and_py([single], [loss, *gradients], [values], rtol=1e-4, atol=1e-5)
    assert cells(program) == []
    assert len(loops(program)) == 2
