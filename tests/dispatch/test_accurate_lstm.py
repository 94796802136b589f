"""An LSTM over one sequence has the values of its loop, small ones too, in any number of steps."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.ops.networks.accurate_lstm import LARGEST, least_steps
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops import scan
from tests.nn.recurrence import recurrence

N_IN, N_UNITS, LENGTH = 3, 8, 40
NAMES = ["x", "w", "u", "b", "h", "c"]

# A step adds 12 products, whose rounding errors the gates contract.
SINGLE = {"rtol": 2e-5, "atol": 1e-6}


def shapes(length=LENGTH, units=N_UNITS):
    return [(length, N_IN), (N_IN, 4 * units), (units, 4 * units), (4 * units,), (units,), (units,)]


def values(length=LENGTH, units=N_UNITS):
    """Return arrays, with weights that bring forth no chaos."""
    rng = np.random.default_rng(length)
    scales = (0.5, 0.5, 1.5 / np.sqrt(units), 0.5, 0.5, 0.5)
    return [
        rng.normal(scale=scale, size=shape).astype("float32")
        for scale, shape in zip(scales, shapes(length, units), strict=True)
    ]


def step(e, h, c, w, u, b):
    i, f, g, o = pt.split(e @ w + h @ u + b, [b.type.shape[0] // 4] * 4, n_splits=4, axis=-1)
    c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
    return pt.sigmoid(o) * pt.tanh(c), c


def arguments(units=N_UNITS, length=None):
    return [
        pt.tensor(name, dtype="float32", shape=(length if name == "x" else shape[0], *shape[1:]))
        for name, shape in zip(NAMES, shapes(length, units), strict=True)
    ]


def states(inputs, **options):
    """Return outputs and memories of all steps."""
    x, w, u, b, h, c = inputs
    return scan(step, [x], [h, c], [w, u, b], **options)


def expected(arrays):
    """Return outputs and memories in float64; the memories by a network of each length."""
    x, w, u, b, h, c = (array.astype("float64") for array in arrays)
    with np.errstate(over="ignore"):
        results = [recurrence("lstm", x[None, : n + 1], w, u, b, h=h, c=c) for n in range(len(x))]
    outputs, memories = ([result[k][0] for result in results] for k in (1, 2))
    return [np.reshape(outputs, (-1, len(h))), np.reshape(memories, (-1, len(c)))]


def assert_states(program, arrays, **tolerances):
    for found, wanted in zip(program(*arrays), expected(arrays), strict=True):
        np.testing.assert_allclose(found, wanted, **tolerances)


def has_operator(program):
    return "LSTM" in [node.op_type for node in program.model.graph.all_nodes()]


def test_one_file_serves_all_lengths():
    inputs = arguments()
    program = export_onnx(inputs, states(inputs), verify=False)
    assert has_operator(program)
    least = least_steps(N_UNITS)
    for length in (0, 1, 2, least - 1, least, least + 1, 300):
        assert_states(program, values(length), **SINGLE)


@pytest.mark.parametrize("units", [1, 2, 16, LARGEST])
def test_numbers_of_units(units):
    inputs = arguments(units)
    program = compare_onnx_and_py(inputs, states(inputs), values(units=units), **SINGLE)
    assert has_operator(program) == (units > 1)


@pytest.mark.parametrize("bias", [-6, -12, -60])
def test_small_gates_have_correct_digits(bias):
    """The operator alone returns zeros and numbers without a correct digit."""
    inputs, arrays = arguments(), values()
    arrays[3] += np.float32(bias)
    arrays[5][:] = 0
    program = export_onnx(inputs, states(inputs), verify=False)
    assert_states(program, arrays, rtol=2e-5, atol=1e-40)


def test_small_states_have_correct_digits():
    inputs, arrays = arguments(), values()
    for k in (0, 4, 5):
        arrays[k] *= np.float32(1e-12)
    arrays[3][:] = 0
    program = export_onnx(inputs, states(inputs), verify=False)
    assert_states(program, arrays, rtol=1e-5, atol=1e-17)


def test_large_weights_of_small_outputs():
    """The operator's outputs have no correct digit here, and decide the gates of other units."""
    inputs, arrays = arguments(), values()
    half = N_UNITS // 2
    arrays[3][3 * N_UNITS : 3 * N_UNITS + half] -= 16
    arrays[2][:half] *= np.float32(1e6)
    arrays[2][half:] = 0
    wanted = expected(arrays)
    _, w, u, b, h, c = arrays
    operator = nn.lstm(inputs[0], w, u, b, h0=h, c0=c)[0]
    far = export_onnx(inputs[:1], operator, verify=False)(arrays[0])[0]
    assert np.abs(far - wanted[0]).max() > 1e-3
    program = export_onnx(inputs, states(inputs), verify=False)
    for found, one in zip(program(*arrays), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("where", NAMES)
def test_values_that_are_not_finite_are_those_of_the_loop(where, number):
    inputs, arrays = arguments(), values()
    arrays[NAMES.index(where)].flat[-2] = number
    program = compare_onnx_and_py(inputs, states(inputs), arrays, **SINGLE)
    assert has_operator(program)


@pytest.mark.parametrize("length", [0, 1, LENGTH])
def test_backwards(length):
    inputs = arguments()
    program = compare_onnx_and_py(
        inputs, states(inputs, go_backwards=True), values(length), **SINGLE
    )
    assert has_operator(program)


@pytest.mark.parametrize(
    "select",
    [
        lambda h, c: h,
        lambda h, c: c,
        lambda h, c: h[-1],
        lambda h, c: c[-1],
        lambda h, c: [h[-1], c[-1]],
        lambda h, c: [h, c[-1]],
        lambda h, c: [h[::2], c[3]],
    ],
)
def test_parts_of_the_results(select):
    inputs = arguments()
    compare_onnx_and_py(inputs, select(*states(inputs)), values(), **SINGLE)


def test_three_last_values_stay_a_loop():
    inputs = arguments()
    program = compare_onnx_and_py(inputs, states(inputs)[0][-3:], values(), **SINGLE)
    assert not has_operator(program)


def test_gradients():
    inputs = arguments()
    h, c = states(inputs)
    loss = (h**2).sum() + c[-1].sum()
    gradients = pt.grad(loss, inputs)
    compare_onnx_and_py(inputs, [loss, *gradients], values(), rtol=1e-4, atol=1e-5)


def test_known_numbers_of_steps():
    for length, expect in ((least_steps(N_UNITS) - 1, False), (LENGTH, True)):
        inputs = arguments(length=length)
        program = compare_onnx_and_py(inputs, states(inputs), values(length), **SINGLE)
        assert has_operator(program) == expect


def test_fewer_steps_than_elements():
    inputs, n = arguments(), pt.iscalar("n")
    outputs = states(inputs, n_steps=n)
    for steps in (0, 1, LENGTH - 1):
        compare_onnx_and_py([*inputs, n], outputs, [*values(), np.int32(steps)], **SINGLE)


def test_large_layers_and_batches_stay_loops():
    inputs = arguments(LARGEST + 1)
    program = compare_onnx_and_py(inputs, states(inputs), values(units=LARGEST + 1), **SINGLE)
    assert not has_operator(program)
    inputs, arrays = arguments(), values()
    for k in (0, 4, 5):
        axis = 1 if k == 0 else 0
        arrays[k] = np.stack([arrays[k], -arrays[k]], axis)
        inputs[k] = pt.tensor(NAMES[k], dtype="float32", shape=(None,) * arrays[k].ndim)
    program = compare_onnx_and_py(inputs, states(inputs), arrays, **SINGLE)
    assert not has_operator(program)


def test_double_precision_is_a_loop():
    inputs = [x.type.clone(dtype="float64")(x.name) for x in arguments()]
    arrays = [array.astype("float64") for array in values()]
    program = compare_onnx_and_py(inputs, states(inputs), arrays, rtol=1e-10)
    assert not has_operator(program)


def test_weights_that_are_constant():
    inputs, arrays = arguments(), values()
    given = [inputs[0], *map(pt.constant, arrays[1:])]
    compare_onnx_and_py(inputs[:1], states(given), arrays[:1], **SINGLE)


def test_shared_weights_may_change():
    inputs, arrays = arguments(), values()
    shared = [pytensor.shared(array, shape=array.shape) for array in arrays[1:]]
    run = pytensor.function(inputs[:1], states([inputs[0], *shared]), mode="ONNX")
    shared[1].set_value(-2 * arrays[2])
    arrays[2] = -2 * arrays[2]
    for found, wanted in zip(run(arrays[0]), expected(arrays), strict=True):
        np.testing.assert_allclose(found, wanted, **SINGLE)


def test_in_functions_and_branches():
    inputs, arrays, condition = arguments(), values(), pt.bscalar("condition")
    of_graph = OpFromGraph(inputs, states(inputs))(*inputs)
    compare_onnx_and_py(inputs, of_graph, arrays, **SINGLE)
    chosen = ifelse(condition, states(inputs)[0], inputs[0] @ inputs[1][:, :N_UNITS])
    for which in (0, 1):
        compare_onnx_and_py([condition, *inputs], chosen, [np.int8(which), *arrays], **SINGLE)


@pytest.mark.parametrize("target", ["standard", "web", "webgpu"])
def test_targets(target):
    inputs = arguments()
    assert has_operator(export_onnx(inputs, states(inputs), target=target, verify=False))


@pytest.mark.parametrize("where", range(1, 6))
def test_arrays_of_other_sizes_are_refused(where):
    inputs = [x.type.clone(shape=(None,) * x.ndim)(x.name) for x in arguments()]
    x, w, u, b, h, c = inputs

    def one(e, h, c, w, u, b):
        i, f, g, o = pt.split(e @ w + h @ u + b, [N_UNITS] * 4, n_splits=4)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        return pt.sigmoid(o) * pt.tanh(c), c

    run = pytensor.function(inputs, scan(one, [x], [h, c], [w, u, b]), mode="ONNX")
    arrays = values()
    arrays[where] = arrays[where][:-1]
    with pytest.raises(ValueError, match=r"dimension|size|shape|Incompatible"):
        run(*arrays)
