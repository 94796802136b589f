"""A GRU over one sequence has the values of its loop, small ones too, in any number of steps."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.ops.networks.accurate_lstm import LARGEST, least_steps
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops import scan

N_IN, N_UNITS, LENGTH = 3, 8, 40
NAMES = ["x", "w", "u", "b", "b_n", "h"]

# A step adds 12 products, whose rounding errors the gates contract.
SINGLE = {"rtol": 2e-5, "atol": 1e-6}


def values(length=LENGTH, units=N_UNITS):
    """Return arrays, with weights that bring forth no chaos."""
    rng = np.random.default_rng(length)
    shapes = [(length, N_IN), (N_IN, 3 * units), (units, 3 * units), (3 * units,), (units,)]
    scales = (0.5, 0.5, 1.5 / np.sqrt(units), 0.5, 0.5, 0.5)
    return [
        rng.normal(scale=scale, size=shape).astype("float32")
        for scale, shape in zip(scales, [*shapes, (units,)], strict=True)
    ]


def arguments(units=N_UNITS):
    arrays = [
        pt.tensor(name, dtype="float32", shape=array.shape)
        for name, array in zip(NAMES, values(units=units), strict=True)
    ]
    return [pt.tensor("x", dtype="float32", shape=(None, N_IN)), *arrays[1:]]


def resetting_products(e, h, w, u, b, b_n):
    units = b_n.type.shape[0]
    xr, xz, xn = pt.split(e @ w + b, [units] * 3, n_splits=3)
    hr, hz, hn = pt.split(h @ u, [units] * 3, n_splits=3)
    r, z = pt.sigmoid(xr + hr), pt.sigmoid(xz + hz)
    return (1 - z) * pt.tanh(xn + r * (hn + b_n)) + z * h


def resetting_states(e, h, w, u, b, b_n):
    units = b_n.type.shape[0]
    xr, xz, xn = pt.split(e @ w + b, [units] * 3, n_splits=3)
    hr, hz = pt.split(h @ u[:, : 2 * units], [units] * 2, n_splits=2)
    r, z = pt.sigmoid(xr + hr), pt.sigmoid(xz + hz)
    return (1 - z) * pt.tanh(xn + (r * h) @ u[:, 2 * units :] + b_n) + z * h


STEPS = [resetting_products, resetting_states]


def states(step, inputs, **options):
    x, *weights, h = inputs
    return scan(step, [x], [h], weights, **options)


def expected(step, arrays):
    """Return the states in float64, by NumPy."""
    x, w, u, b, b_n, h = (array.astype("float64") for array in arrays)
    units, found = len(h), []
    for e in x:
        xr, xz, xn = np.split(e @ w + b, 3)
        hr, hz, hn = np.split(h @ u, 3)
        with np.errstate(over="ignore"):
            r, z = 1 / (1 + np.exp(-xr - hr)), 1 / (1 + np.exp(-xz - hz))
        scaled = r * (hn + b_n)
        if step is resetting_states:
            scaled = (r * h) @ u[:, 2 * units :] + b_n
        h = (1 - z) * np.tanh(xn + scaled) + z * h
        found.append(h)
    return np.reshape(found, (-1, units))


def has_operator(program):
    return "GRU" in [node.op_type for node in program.model.graph.all_nodes()]


@pytest.mark.parametrize("step", STEPS)
def test_one_file_serves_all_lengths(step):
    inputs = arguments()
    program = export_onnx(inputs, [states(step, inputs)], verify=False)
    assert has_operator(program)
    least = least_steps(N_UNITS)
    for length in (0, 1, 2, least - 1, least, least + 1, 300):
        arrays = values(length)
        np.testing.assert_allclose(program(*arrays)[0], expected(step, arrays), **SINGLE)


@pytest.mark.parametrize("units", [2, LARGEST, LARGEST + 1])
@pytest.mark.parametrize("step", STEPS)
def test_numbers_of_units(step, units):
    inputs = arguments(units)
    program = compare_onnx_and_py(inputs, states(step, inputs), values(units=units), **SINGLE)
    assert has_operator(program) == (units <= LARGEST)


@pytest.mark.parametrize("bias", [-8, -14])
@pytest.mark.parametrize("step", STEPS)
def test_small_gates_have_correct_digits(step, bias):
    """Closed gates leave candidates without the state, whose reset gate is small too."""
    inputs, arrays = arguments(), values()
    arrays[3][: 2 * N_UNITS] += np.float32(bias)
    arrays[3][2 * N_UNITS :] = 0
    arrays[4][:] = 0
    arrays[0] *= np.float32(1e-9)
    arrays[5] *= np.float32(1e-3)
    program = export_onnx(inputs, [states(step, inputs)], verify=False)
    wanted = expected(step, arrays)
    found = program(*arrays)[0]
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-15)


@pytest.mark.parametrize("step", STEPS)
def test_large_weights_of_small_states(step):
    """The operator's states have no correct digit here, and decide the gates of other units."""
    inputs, arrays = arguments(), values()
    half = N_UNITS // 2
    x, w, u, b, b_n, h = arrays
    # The first units forget their state, and have candidates of zero.
    b[N_UNITS : N_UNITS + half] -= 16
    for array in (w, u, b):
        array[..., 2 * N_UNITS : 2 * N_UNITS + half] = 0
    b_n[:half], h[:half] = 0, 1
    u[:half] *= np.float32(1e6)
    u.reshape(N_UNITS, 3, N_UNITS)[:, :, :half] = 0
    wanted = expected(step, arrays)
    if step is resetting_products:
        b_hh = np.concatenate([0 * b[: 2 * N_UNITS], b_n])
        operator = nn.gru(inputs[0], w, u, b, b_hh, h0=h)[0]
        far = export_onnx(inputs[:1], operator, verify=False)(x)[0]
        assert np.abs(far - wanted).max() > 1e-3
    program = export_onnx(inputs, [states(step, inputs)], verify=False)
    np.testing.assert_allclose(program(*arrays)[0], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("where", NAMES)
@pytest.mark.parametrize("step", STEPS)
def test_values_that_are_not_finite_are_those_of_the_loop(step, where, number):
    inputs, arrays = arguments(), values()
    arrays[NAMES.index(where)].flat[-2] = number
    compare_onnx_and_py(inputs, states(step, inputs), arrays, **SINGLE)


@pytest.mark.parametrize("step", STEPS)
def test_the_last_state_backwards(step):
    inputs = arguments()
    y = states(step, inputs, go_backwards=True)
    program = compare_onnx_and_py(inputs, y[-1], values(), **SINGLE)
    assert has_operator(program)


@pytest.mark.parametrize("step", STEPS)
def test_gradients(step):
    inputs = arguments()
    loss = (states(step, inputs) ** 2).sum()
    gradients = pt.grad(loss, inputs)
    compare_onnx_and_py(inputs, [loss, *gradients], values(), rtol=1e-4, atol=1e-5)
