"""Cells that users write in loops have correct digits, small ones too, in any number of steps."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops, scan
from tests.nn.recurrence import GATES, recurrence

N_IN, N_UNITS, LENGTH = 3, 8, 20
KINDS = ["lstm", "gru"]
NAMES = ["x", "w", "u", "b", "h", "c"]

# A step adds 12 products, whose rounding errors the gates contract.
TOLERANCE: dict[str, dict[str, Any]] = {
    "float32": {"rtol": 2e-5, "atol": 1e-6},
    "float64": {"rtol": 1e-11},
}


def shapes(kind, length=LENGTH, *batch):
    width, state = GATES[kind] * N_UNITS, (*batch, N_UNITS)
    weights = [(N_IN, width), (N_UNITS, width), (width,)]
    return [(length, *batch, N_IN), *weights, state, state][: 5 + (kind == "lstm")]


def values(kind, length=LENGTH, *batch, dtype="float32"):
    """Return arrays, with weights that bring forth no chaos."""
    rng = np.random.default_rng(length)
    return [rng.normal(scale=0.5, size=s).astype(dtype) for s in shapes(kind, length, *batch)]


def arguments(kind, *batch, dtype="float32"):
    return [
        pt.tensor(name, dtype=dtype, shape=(None,) * len(shape))
        for name, shape in zip(NAMES, shapes(kind, 1, *batch), strict=False)
    ]


def lstm(e, h, c, w, u, b):
    i, f, g, o = pt.split(e @ w + h @ u + b, [N_UNITS] * 4, n_splits=4, axis=-1)
    c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
    return pt.sigmoid(o) * pt.tanh(c), c


def gru(e, h, w, u, b):
    xr, xz, xn = pt.split(e @ w + b, [N_UNITS] * 3, n_splits=3, axis=-1)
    hr, hz, hn = pt.split(h @ u, [N_UNITS] * 3, n_splits=3, axis=-1)
    r, z = pt.sigmoid(xr + hr), pt.sigmoid(xz + hz)
    return (1 - z) * pt.tanh(xn + r * hn) + z * h


def outputs(kind, inputs, **options):
    """Return the outputs of all steps."""
    x, w, u, b, *states = inputs
    found = scan({"lstm": lstm, "gru": gru}[kind], [x], states, [w, u, b], **options)
    return found[0] if kind == "lstm" else found


def expected(kind, arrays):
    """Return the outputs in float64, by NumPy."""
    x, w, u, b, *states = (array.astype("float64") for array in arrays)
    with np.errstate(over="ignore"):
        return recurrence(kind, x[None], w, u, b, 0.0, *states)[0][0]


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_serves_all_lengths(kind):
    inputs = arguments(kind)
    program = export_onnx(inputs, outputs(kind, inputs), verify=False)
    assert loops(program) == ["Scan"]
    for length in (0, 1, 2, 100):
        arrays = values(kind, length)
        found = program(*arrays)
        np.testing.assert_allclose(found, expected(kind, arrays), **TOLERANCE["float32"])


@pytest.mark.each_value
@pytest.mark.parametrize("bias", [-6, -12, -60])
@pytest.mark.parametrize("kind", KINDS)
def test_small_gates_have_correct_digits(kind, bias):
    """The operators return zeros and numbers without a correct digit."""
    inputs, arrays = arguments(kind), values(kind)
    arrays[3] += np.float32(bias)
    arrays[-1][:] = 0
    program = export_onnx(inputs, outputs(kind, inputs), verify=False)
    np.testing.assert_allclose(program(*arrays), expected(kind, arrays), rtol=2e-5, atol=1e-40)


@pytest.mark.parametrize("kind", KINDS)
def test_small_states_have_correct_digits(kind):
    inputs, arrays = arguments(kind), values(kind)
    for k in (0, *range(4, len(arrays))):
        arrays[k] *= np.float32(1e-12)
    arrays[3][:] = 0
    program = export_onnx(inputs, outputs(kind, inputs), verify=False)
    np.testing.assert_allclose(program(*arrays), expected(kind, arrays), rtol=1e-4, atol=1e-16)


@pytest.mark.each_value
@pytest.mark.parametrize("number", [np.nan, -np.inf])
@pytest.mark.parametrize("where", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_not_finite(kind, where, number):
    inputs, arrays = arguments(kind), values(kind, 4)
    arrays[where % len(arrays)].flat[-2] = number
    compare_onnx_and_py(inputs, outputs(kind, inputs), arrays, **TOLERANCE["float32"])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", KINDS)
def test_gates_that_are_zero_or_one(kind, dtype):
    """A sigmoid is zero where the exponential overflows, at -89 and -710."""
    inputs, arrays = arguments(kind, dtype=dtype), values(kind, 5, dtype=dtype)
    arrays[0][1:] *= np.array([[50], [300], [2000], [1e30]], dtype)
    tolerance = {"rtol": 1e-4 if dtype == "float32" else 1e-11}
    compare_onnx_and_py(inputs, outputs(kind, inputs), arrays, **tolerance)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_backwards(kind, batch, dtype):
    inputs, arrays = arguments(kind, *batch, dtype=dtype), values(kind, 6, *batch, dtype=dtype)
    y = outputs(kind, inputs, go_backwards=True)
    compare_onnx_and_py(inputs, y, arrays, **TOLERANCE[dtype])


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, dtype):
    inputs, arrays = arguments(kind, dtype=dtype), values(kind, 6, dtype=dtype)
    loss = (outputs(kind, inputs) ** 2).sum()
    tolerance = {"rtol": 1e-9} if dtype == "float64" else {"rtol": 1e-4, "atol": 1e-5}
    compare_onnx_and_py(inputs, [loss, *pt.grad(loss, inputs)], arrays, **tolerance)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_in_functions_and_branches(kind):
    inputs, arrays, condition = arguments(kind), values(kind), pt.bscalar("condition")
    of_graph = OpFromGraph(inputs, [outputs(kind, inputs)])(*inputs)
    chosen = ifelse(condition, of_graph, inputs[0] @ inputs[1][:, :N_UNITS])
    for which in (0, 1):
        given = [np.int8(which), *arrays]
        compare_onnx_and_py([condition, *inputs], chosen, given, **TOLERANCE["float32"])


@pytest.mark.parametrize("where", range(1, 6))
def test_arrays_of_other_sizes_are_refused(where):
    inputs, arrays = arguments("lstm"), values("lstm")
    run = pytensor.function(inputs, outputs("lstm", inputs), mode="ONNX")
    arrays[where] = arrays[where][:-1]
    with pytest.raises(ValueError, match=r"dimension|size|shape|Incompatible"):
        run(*arrays)
