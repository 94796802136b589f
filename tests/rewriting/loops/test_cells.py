"""Loops that compute a cell over one sequence are recognised however they are written."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops import scan

N_IN, N_UNITS, LENGTH = 3, 2, 20
SINGLE = {"rtol": 2e-5, "atol": 1e-7}


def gates(z, order="ifgo"):
    """Return the parts of a vector, in the order i, f, g, o."""
    parts = pt.split(z, [N_UNITS] * 4, n_splits=4, axis=-1)
    return [parts[order.index(name)] for name in "ifgo"]


def cell(i, f, g, o, c):
    c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
    return pt.sigmoid(o) * pt.tanh(c), c


def of_four_matrices(e, h, c, w, u, b):
    parts = [slice(k * N_UNITS, (k + 1) * N_UNITS) for k in range(4)]
    return cell(*(e @ w[:, p] + (h @ u[:, p] + b[p]) for p in parts), c)


def of_slices(e, h, c, w, u, b):
    z = b + pt.dot(h, u) + pt.dot(e, w)
    i, f, o = (pt.sigmoid(z[k * N_UNITS : (k + 1) * N_UNITS]) for k in range(3))
    c = i * pt.tanh(z[3 * N_UNITS :]) + c * f
    return pt.tanh(c) * o, c


STEPS = {
    "parts": lambda e, h, c, w, u, b: cell(*gates(e @ w + h @ u + b), c),
    "other order": lambda e, h, c, w, u, b: cell(*gates(h @ u + b + e @ w, "oigf"), c),
    "sums of parts": lambda e, h, c, w, u, b: cell(
        *(x + y for x, y in zip(gates(e @ w + b), gates(h @ u), strict=True)), c
    ),
    "columns": lambda e, h, c, w, u, b: cell(*gates(w.T @ e + u.T @ h + b), c),
    "memory first": lambda e, h, c, w, u, b: cell(*gates(e @ w + h @ u + b), c)[::-1],
    "four matrices": of_four_matrices,
    "slices": of_slices,
    "two biases": lambda e, h, c, w, u, b: cell(*gates(e @ w + b + h @ u + b**2), c),
    "no bias": lambda e, h, c, w, u, b: cell(*gates(e @ w + h @ u), c),
    "a forget bias": lambda e, h, c, w, u, b: cell(
        *(z + x for z, x in zip(gates(e @ w + h @ u), (0, 1, 0, 0), strict=True)), c
    ),
}
OTHER_STEPS = {
    "no product of the input": lambda e, h, c, w, u, b: cell(*gates(e.sum() + h @ u + b), c),
    "two products of the state": lambda e, h, c, w, u, b: cell(*gates(e @ w + h @ u + h @ u), c),
    "a peephole": lambda e, h, c, w, u, b: cell(*gates(e @ w + h @ u + pt.tile(c, 4)), c),
    "exchanged states": lambda e, h, c, w, u, b: cell(*gates(e @ w + c @ u + b), h),
    "an old memory": lambda e, h, c, w, u, b: (
        cell(*gates(e @ w + h @ u), c)[0],
        cell(*gates(e @ w + h @ u + b), c)[1],
    ),
    "weights of the step": lambda e, h, c, w, u, b: cell(*gates(e @ w + h @ (u * e[0])), c),
    "a relu": lambda e, h, c, w, u, b: (
        pt.maximum(cell(*gates(e @ w + h @ u), c)[0], 0),
        cell(*gates(e @ w + h @ u), c)[1],
    ),
}


def arguments(dtype="float32", shape=(None, None)):
    x, w = (pt.matrix(name, dtype=dtype) for name in ("x", "w"))
    u = pt.matrix("u", dtype=dtype, shape=shape)
    h, c, b = (pt.vector(name, dtype=dtype) for name in ("h", "c", "b"))
    return [x, h, c, w, u, b]


def values(length=LENGTH, dtype="float32"):
    rng = np.random.default_rng(length)
    sizes = (N_IN, 4 * N_UNITS), (N_UNITS, 4 * N_UNITS), (4 * N_UNITS,)
    shapes = [(length, N_IN), (N_UNITS,), (N_UNITS,), *sizes]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def states(step, inputs, **options):
    x, h, c, *weights = inputs
    start = [c, h] if step is STEPS["memory first"] else [h, c]

    def ordered(e, *rest):
        first = rest[1::-1] if step is STEPS["memory first"] else rest[:2]
        return step(e, *first, *rest[2:])

    return scan(ordered, [x], start, weights, **options)


def has_operator(program, name="LSTM"):
    return name in [node.op_type for node in program.model.graph.all_nodes()]


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_an_lstm_are_recognised(name):
    inputs = arguments(shape=(None, 4 * N_UNITS if name == "four matrices" else None))
    outputs = states(STEPS[name], inputs)
    program = compare_onnx_and_py(inputs, outputs, values(), **SINGLE)
    assert has_operator(program)


@pytest.mark.parametrize("name", OTHER_STEPS)
def test_other_steps_stay_loops(name):
    inputs = arguments()
    outputs = states(OTHER_STEPS[name], inputs)
    program = compare_onnx_and_py(inputs, outputs, values(), **SINGLE)
    assert not has_operator(program)


def thirds(z):
    """Return the parts r, z, n of a vector."""
    return pt.split(z, [N_UNITS] * 3, n_splits=3)


def unit(h, r, z, x, scaled):
    return (1 - pt.sigmoid(z)) * pt.tanh(x + scaled(pt.sigmoid(r))) + pt.sigmoid(z) * h


def of_products(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w + b), thirds(h @ u)
    return unit(h, xr + hr, xz + hz, xn, lambda r: r * hn)


def with_two_biases(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w + b), thirds(h @ u + b**2)
    return unit(h, xr + hr, hz + xz, xn, lambda r: hn * r)


def of_states(e, h, w, u, b):
    (xr, xz, xn), (ur, uz, un) = thirds(e @ w + b), (u[:, k::3][:, :N_UNITS] for k in range(3))
    return unit(h, xr + h @ ur, xz + h @ uz, xn, lambda r: (r * h) @ un)


def towards_the_state(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w + b), thirds(h @ u)
    z, r = pt.sigmoid(xz + hz), pt.sigmoid(xr + hr)
    return z * pt.tanh(xn + r * hn) + (1 - z) * h


def without_bias(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w), thirds(h @ u)
    return unit(h, xr + hr, xz + hz, xn, lambda r: r * hn)


def of_columns(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(w.T @ e + b), thirds(u.T @ h)
    return unit(h, xr + hr, xz + hz, xn, lambda r: r * hn)


def with_another_gate(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w + b), thirds(h @ u)
    r, z = pt.sigmoid(xr + hr), pt.sigmoid(xz + hz)
    return (1 - r) * pt.tanh(xn + r * hn) + z * h


def with_another_state(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w + b), thirds(h @ u)
    return unit(h**2, xr + hr, xz + hz, xn, lambda r: r * hn)


def with_two_resets(e, h, w, u, b):
    (xr, xz, xn), (hr, hz, hn) = thirds(e @ w + b), thirds(h @ u)
    return unit(h, xr + hr, xz + hz, xn, lambda r: r * hn + r * hn**2)


UNITS = (of_products, with_two_biases, of_states, towards_the_state, without_bias, of_columns)
OTHER_UNITS = (with_another_gate, with_another_state, with_two_resets)


def unit_values(length=LENGTH):
    rng = np.random.default_rng(length)
    shapes = (length, N_IN), (N_UNITS,), (N_IN, 3 * N_UNITS), (N_UNITS, 3 * N_UNITS), (3 * N_UNITS,)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("step", [*UNITS, *OTHER_UNITS])
def test_steps_of_a_gru_are_recognised(step):
    x, h, _, w, u, b = arguments(shape=(N_UNITS, 3 * N_UNITS))
    y = scan(step, [x], [h], [w, u, b])
    program = compare_onnx_and_py([x, h, w, u, b], y, unit_values(), **SINGLE)
    assert has_operator(program, "GRU") == (step in UNITS)
