"""Recurrent layers, compared with the formulas that PyTorch documents, in float64."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.scan.op import Scan

from pytensor_onnx import compile_onnx, export_onnx, nn
from pytensor_onnx.ops.networks.recurrent_ops import RecurrentOp
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.loops.loop_cases import loops
from tests.nn.recurrence import GATES, recurrence

N_IN, N_HIDDEN = 3, 4

# ONNX Runtime's sigmoid and tanh have absolute errors of 2e-7, and the products of a step those of
# float32. States are below 1, and gates contract the errors of earlier steps.
ABSOLUTE = {"rtol": 0, "atol": 1e-6}


def draw(rng, *shape):
    return rng.normal(scale=0.5, size=shape).astype("float32")


def weights(kind):
    rng, width = np.random.default_rng(len(kind)), GATES[kind] * N_HIDDEN
    return [draw(rng, *shape) for shape in ((N_IN, width), (N_HIDDEN, width), (width,), (width,))]


def states(kind, batch):
    rng = np.random.default_rng(7)
    return [draw(rng, batch, N_HIDDEN) for _ in range(2 if kind == "lstm" else 1)]


def names(kind):
    """Return the names of the arrays that a layer takes."""
    return ["x", "w_ih", "w_hh", "b_ih", "b_hh", "h0", *(["c0"] if kind == "lstm" else [])]


def sequences(length, batch=2):
    return draw(np.random.default_rng(length), batch, length, N_IN)


def layer(kind, *arguments, **options):
    return list(getattr(nn, kind)(*arguments, **options))


def wide(arrays):
    return [array.astype("float64") for array in arrays]


@pytest.fixture
def x():
    return pt.tensor("x", shape=(None, None, N_IN), dtype="float32")


@pytest.mark.each_value
@pytest.mark.parametrize("assume_finite", [False, True])
@pytest.mark.parametrize("has_states", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_one_file_serves_all_sizes(x, kind, reverse, has_states, assume_finite):
    given = [pt.matrix(name, dtype="float32") for name in ("h0", "c0")]
    given = given[: len(states(kind, 1))] if has_states else []
    outputs = layer(kind, x, *weights(kind), *given, reverse=reverse)
    program = export_onnx([x, *given], outputs, verify=False, assume_finite=assume_finite)
    for batch, length in [(1, 1), (3, 7), (1, 300), (2, 0), (0, 5), (0, 0)]:
        values = [sequences(length, batch), *(states(kind, batch) if has_states else [])]
        x64, *states64 = wide(values)
        expected = recurrence(kind, x64, *wide(weights(kind)), *states64, reverse=reverse)
        for found, wanted in zip(program(*values), expected, strict=True):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, wanted, **ABSOLUTE)


@pytest.mark.parametrize("kind", GATES)
def test_known_sizes_and_finite_values_are_one_operator(kind):
    x = pt.tensor("x", shape=(2, 7, N_IN), dtype="float32")
    program = export_onnx([x], layer(kind, x, *weights(kind))[0], assume_finite=True)
    assert op_types(program) == ["Transpose", kind.upper(), "Squeeze", "Transpose"]


@pytest.mark.parametrize(("batch", "n_hidden"), [(16, 4), (17, 4), (1, 64), (1, 65)])
def test_elman_networks_of_many_units_are_loops(batch, n_hidden):
    rng, shape = np.random.default_rng(0), (batch, 9, N_IN)
    arrays = [draw(rng, *shape), draw(rng, N_IN, n_hidden), draw(rng, n_hidden, n_hidden) / 8]
    x = pt.tensor("x", shape=shape, dtype="float32")
    program = compare_onnx_and_py([x], nn.rnn(x, *arrays[1:])[0], arrays[:1], **ABSOLUTE)
    is_operator = batch * n_hidden <= 64
    assert ("RNN" in op_types(program), "Scan" in op_types(program)) == (
        is_operator,
        not is_operator,
    )


def test_the_number_of_sequences_selects_the_operator_at_run_time(x):
    values = weights("rnn")
    program = export_onnx([x], layer("rnn", x, *values), verify=False)
    assert {"RNN", "Scan"} <= {node.op_type for node in program.model.graph.all_nodes()}
    for batch in (0, 1, 16, 17):
        arrays = sequences(5, batch)
        expected = recurrence("rnn", *wide([arrays, *values]))
        for found, wanted in zip(program(arrays), expected, strict=True):
            np.testing.assert_allclose(found, wanted, **ABSOLUTE)


@pytest.mark.parametrize("kind", GATES)
def test_layers_on_layers_transpose_at_the_ends(kind):
    x = pt.tensor("x", shape=(2, 7, N_HIDDEN), dtype="float32")
    _, w_hh, *biases = weights(kind)
    y = x
    for reverse in (False, True):
        y = layer(kind, y, w_hh, w_hh, *biases, reverse=reverse)[0]
    program = export_onnx([x], y, assume_finite=True)
    assert op_types(program).count("Transpose") == 2


@pytest.mark.each_value
@pytest.mark.parametrize("number", [np.nan, -np.inf, 3e38])
@pytest.mark.parametrize(("kind", "where"), [(k, n) for k in GATES for n in names(k)])
@pytest.mark.few(3)
def test_values_that_are_not_finite_are_those_of_the_loop(kind, where, number):
    values = [sequences(5), *weights(kind), *states(kind, 2)]
    values[names(kind).index(where)].flat[-2] = number
    inputs = [
        pt.tensor(name, dtype="float32", shape=value.shape)
        for name, value in zip(names(kind), values, strict=True)
    ]
    program = compare_onnx_and_py(inputs, layer(kind, *inputs), values, rtol=1e-6, atol=1e-6)
    assert kind.upper() in [node.op_type for node in program.model.graph.all_nodes()]


@pytest.mark.parametrize("kind", GATES)
def test_a_state_of_zeros_times_infinity_is_nan(x, kind):
    values = weights(kind)[:2]
    values[1][0, 0] = np.inf
    inputs = [pt.tensor(dtype="float32", shape=value.shape) for value in values]
    outputs = layer(kind, x, *inputs, reverse=True)
    compare_onnx_and_py([x, *inputs], outputs, [sequences(5), *values], **ABSOLUTE)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_constants_that_are_not_finite_are_guarded(x, kind):
    values = weights(kind)
    values[0][0, 1] = np.nan
    compare_onnx_and_py([x], layer(kind, x, *values), [sequences(5)], **ABSOLUTE)


@pytest.mark.each_value
@pytest.mark.parametrize("present", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("kind", GATES)
def test_biases_are_optional(x, kind, present):
    w_ih, w_hh, *biases = weights(kind)
    given = [b if is_there else None for b, is_there in zip(biases, present, strict=True)]
    program = compare_onnx_and_py(
        [x], layer(kind, x, w_ih, w_hh, *given), [sequences(5)], **ABSOLUTE
    )
    zeros = [0.0 if b is None else b for b in given]
    expected = recurrence(kind, *wide([sequences(5), w_ih, w_hh]), *zeros)
    for found, wanted in zip(program(sequences(5)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, **ABSOLUTE)


@pytest.mark.parametrize("kind", GATES)
def test_one_sequence(kind):
    x = pt.matrix("x", dtype="float32")
    h0 = pt.vector("h0", dtype="float32")
    values = [sequences(5)[0], states(kind, 1)[0][0]]
    outputs = layer(kind, x, *weights(kind), h0=h0)
    program = compare_onnx_and_py([x, h0], outputs, values, **ABSOLUTE)
    expected = recurrence(kind, values[0][None], *wide(weights(kind)), h=values[1])
    for found, wanted in zip(program(*values), expected, strict=True):
        np.testing.assert_allclose(found, wanted[0], **ABSOLUTE)


@pytest.mark.parametrize("kind", GATES)
def test_shared_weights_may_change(x, kind):
    parameters = [pytensor.shared(w) for w in weights(kind)]
    run = pytensor.function([x], layer(kind, x, *parameters), mode="ONNX")
    parameters[0].set_value(2 * parameters[0].get_value())
    own = [p.get_value().astype("float64") for p in parameters]
    expected = recurrence(kind, sequences(5).astype("float64"), *own)
    for found, wanted in zip(run(sequences(5)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, **ABSOLUTE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GATES)
def test_double_precision_is_a_loop(kind):
    x, values = pt.tensor3("x", dtype="float64"), wide(weights(kind))
    outputs = layer(kind, x, *values)
    program = compare_onnx_and_py([x], outputs, wide([sequences(7)]), rtol=1e-10)
    expected = recurrence(kind, sequences(7).astype("float64"), *values)
    for found, wanted in zip(program(*wide([sequences(7)])), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)
    assert loops(program) == ["Scan"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", GATES)
def test_half_precision_is_a_loop(kind):
    x = pt.tensor3("x", dtype="float16")
    values = [v.astype("float16") for v in (sequences(5), *weights(kind))]
    program = compare_onnx_and_py([x], layer(kind, x, *values[1:]), values[:1], rtol=0, atol=4e-3)
    assert loops(program) == ["Scan"]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.few(1)
def test_a_training_step_runs_one_loop_forwards(kind, dtype):
    x = pt.tensor("x", shape=(None, None, N_IN), dtype=dtype)
    parameters = [pytensor.shared(w.astype(dtype)) for w in weights(kind)]
    y, *last = layer(kind, x, *parameters)
    loss = (y**2).sum() + sum(state.sum() for state in last)
    gradients = pt.grad(loss, [x, *parameters])
    values = sequences(7).astype(dtype)
    tolerance = {"rtol": 1e-9} if dtype == "float64" else {"rtol": 1e-4, "atol": 1e-5}
    compare_onnx_and_py([x], [loss, *gradients], [values], **tolerance)
    run = pytensor.function([x], [loss, *gradients], mode="ONNX")
    ops = [node.op for node in run.maker.fgraph.toposort()]
    assert not any(isinstance(op, RecurrentOp) for op in ops)
    forward, backward = (op for op in ops if isinstance(op, Scan))
    # Two loops that PyTensor joins would have twice as many states.
    assert (forward.info.n_sit_sot, backward.info.n_mit_mot > 0) == (len(last), True)


@pytest.mark.parametrize("kind", GATES)
def test_a_layer_in_a_function(x, kind):
    w, r = (pt.constant(v) for v in weights(kind)[:2])
    h = pt.matrix("h", dtype="float32")
    layers = OpFromGraph([x, h], layer(kind, x, w, r, h0=h))
    values = [sequences(5), states(kind, 2)[0]]
    program = compare_onnx_and_py([x, h], layers(2 * x, h), values, **ABSOLUTE)
    for changed in (
        [v[:0] for v in values],
        [np.where(values[0] > 0.5, np.nan, values[0]), values[1]],
    ):
        expected = recurrence(
            kind, 2 * changed[0].astype("float64"), *wide(weights(kind)[:2]), h=changed[1]
        )
        for found, wanted in zip(program(*changed), expected, strict=True):
            np.testing.assert_allclose(found, wanted, **ABSOLUTE)


@pytest.mark.slow
def test_layers_in_branches(x):
    w, r = weights("lstm")[:2]
    condition = pt.bscalar("condition")
    gru = nn.gru(x, w[:, : 3 * N_HIDDEN], r[:, : 3 * N_HIDDEN])[0]
    y = ifelse(condition, nn.lstm(x, w, r)[0], gru)
    for chosen in (0, 1):
        for values in (sequences(5), sequences(0), sequences(5, 0)):
            compare_onnx_and_py([condition, x], y, [np.int8(chosen), values], **ABSOLUTE)


@pytest.mark.parametrize("kind", GATES)
def test_verification_accepts_the_errors_of_the_operator(x, kind):
    compile_onnx([x], layer(kind, x, *weights(kind)))


def test_an_unknown_number_of_units_is_a_loop(x):
    w, r = pt.matrix("w", dtype="float32"), pt.matrix("r", dtype="float32")
    values = [sequences(5), *weights("gru")[:2]]
    program = compare_onnx_and_py([x, w, r], list(nn.gru(x, w, r)), values, **ABSOLUTE)
    assert loops(program) == ["Scan"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((2, 5, 2), "float32")}, "w_ih has the shape .3, 16.; it must be .inputs"),
        ({"x": np.zeros(3, "float32")}, "x must have the axes"),
        ({"w_hh": np.zeros((4, 15), "float32")}, "w_hh has the shape .4, 15."),
        ({"b_hh": np.zeros(12, "float32")}, "b_hh has the shape .12,."),
        ({"h0": np.zeros((3, 4), "float32")}, "h0 has the shape .3, 4."),
        ({"c0": np.zeros(4, "float32")}, "c0 must have the axes .batch, hidden."),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change, message):
    values = [sequences(5), *weights("lstm"), *states("lstm", 2)]
    with pytest.raises(ValueError, match=f"lstm: {message}"):
        nn.lstm(**(dict(zip(names("lstm"), values, strict=True)) | change))


def test_integers_are_refused():
    w_ih, w_hh, *_ = weights("rnn")
    with pytest.raises(TypeError, match="rnn: x must be an array of floats"):
        nn.rnn(np.zeros((2, 5, 3), "int64"), w_ih, w_hh)
