"""Time of a step of a loop: mode ONNX against mode NUMBA and against ONNX written by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.scan.utils import until

from benchmarks.timing import Table, interleaved
from pytensor_onnx import export_onnx, nn

N_STEPS, LENGTH, WIDTH, N_IN = 1000, 100, 64, 32

AR1 = """
<ir_version: 10, opset_import: ["": 21]>
main (double[n] x, double x0) => (double[n] y)
<double rate = {0.9}, int64[1] zero = {0}> {
   shape = Shape(x)
   count = Squeeze(shape, zero)
   last, y = Loop(count, , x0) <body = step (int64 i, bool go, double before)
      => (bool next, double after, double row) {
      element = Gather <axis = 0> (x, i)
      decayed = Mul(rate, before)
      after = Add(decayed, element)
      row = Identity(after)
      next = Identity(go)
   }>
}
"""
LSTM = """
<ir_version: 10, opset_import: ["": 21, "pytensor.standard": 1]>
main (double[n, k] x, double[h] h0, double[h] c0, double[k, g] w, double[h, g] u, double[g] b)
   => (double[n, h] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[4] sizes = {64, 64, 64, 64}> {
   count_1 = Shape <start = 0, end = 1> (x)
   count = Squeeze(count_1, zero)
   wt = Transpose <perm = [1, 0]> (w)
   ut = Transpose <perm = [1, 0]> (u)
   columns = Unsqueeze(x, two)
   last_h, last_c, y = Loop(count, , h0, c0) <body = step
      (int64 i, bool go, double[h] h, double[h] c) =>
      (bool next, double[h] h_new, double[h] c_new, double[h] row) {
      element = Gather <axis = 0> (columns, i)
      column = Unsqueeze(h, one)
      from_state_2 = MatMul(ut, column)
      from_state = Squeeze(from_state_2, one)
      from_input_2 = MatMul(wt, element)
      from_input = Squeeze(from_input_2, one)
      both = Add(from_input, from_state)
      gates = Add(both, b)
      i_in, f_in, g_in, o_in = Split <axis = 0> (gates, sizes)
      g = pytensor.standard.Tanh_float64 (g_in)
      i_gate = pytensor.standard.Sigmoid_float64 (i_in)
      new = Mul(i_gate, g)
      f_gate = pytensor.standard.Sigmoid_float64 (f_in)
      kept = Mul(f_gate, c)
      c_new = Add(kept, new)
      squashed = pytensor.standard.Tanh_float64 (c_new)
      o_gate = pytensor.standard.Sigmoid_float64 (o_in)
      h_new = Mul(o_gate, squashed)
      row = Identity(h_new)
      next = Identity(go)
   }>
}
""".replace("int64[1] one = {1}", "int64[1] one = {1}, int64[1] two = {2}")
LAYER = f"`nn.lstm` of {LENGTH} steps, {WIDTH} units, float32"

LSTM_32 = (
    LSTM.replace("double", "float")
    .replace("pytensor.standard.Tanh_float64", "Tanh")
    .replace("Sigmoid_float64", "Sigmoid_float32")
)
NEWTON = """
<ir_version: 10, opset_import: ["": 21]>
main (double a) => (double y)
<double half = {0.5}, double tolerance = {1e-12}, double start = {1.0}, int64 most = {100}> {
   y = Loop(most, , start) <body = step (int64 i, bool go, double before)
      => (bool next, double after) {
      quotient = Div(a, before)
      sum = Add(before, quotient)
      after = Mul(half, sum)
      moved = Sub(after, before)
      distance = Abs(moved)
      done = Less(distance, tolerance)
      next = Not(done)
   }>
}
"""

ROWS = """
<ir_version: 10, opset_import: ["": 21, "pytensor.standard": 1]>
main (double[m, n] x, double[m] start, double a) => (double[m, n] y) {
   columns = Transpose <perm = [1, 0]> (x)
   count = Shape <start = 0, end = 1> (columns)
   last, rows = Loop(count, , start) <body = step (int64 i, bool go, double[m] before)
      => (bool next, double[m] after, double[m] row) {
      element = Gather <axis = 0> (columns, i)
      decayed = Mul(a, before)
      sum = Add(decayed, element)
      after = pytensor.standard.Tanh_float64 (sum)
      row = Identity(after)
      next = Identity(go)
   }>
   y = Transpose <perm = [1, 0]> (rows)
}
"""


@dataclass(frozen=True)
class Case:
    """A loop, values of its inputs, and the same in ONNX by hand, if it is written."""

    label: str
    inputs: Sequence[Variable]
    output: Variable
    values: Sequence[np.ndarray]
    by_hand: str | None = None


def _scan(*args: Any, **kwargs: Any) -> Any:
    return pytensor.scan(*args, return_updates=False, **kwargs)


def autoregression() -> Case:
    """Return an AR(1) process."""
    x, x0 = pt.vector("x", dtype="float64"), pt.scalar("x0", dtype="float64")
    y = _scan(lambda e, y: 0.9 * y + e, sequences=[x], outputs_info=[x0])
    values = [np.random.default_rng(0).normal(size=N_STEPS), np.array(0.5)]
    return Case(f"AR(1) of {N_STEPS} steps", [x, x0], y, values, AR1)


def lstm(dtype: str) -> Case:
    """Return a long short-term memory for one sequence, with the states of all steps."""
    x, w, u = (pt.matrix(name, dtype=dtype) for name in ("x", "w", "u"))
    h0, c0, b = (pt.vector(name, dtype=dtype) for name in ("h0", "c0", "b"))

    def step(e: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> tuple[Any, Any]:
        i, f, g, o = pt.split(e @ w + h @ u + b, [WIDTH] * 4, n_splits=4)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        return pt.sigmoid(o) * pt.tanh(c), c

    h, _ = _scan(step, sequences=[x], outputs_info=[h0, c0], non_sequences=[w, u, b])
    shapes = [(LENGTH, N_IN), (WIDTH,), (WIDTH,), (N_IN, 4 * WIDTH), (WIDTH, 4 * WIDTH)]
    values = _small([*shapes, (4 * WIDTH,)], dtype)
    label = f"LSTM of {LENGTH} steps, {WIDTH} units, {dtype}"
    by_hand = LSTM if dtype == "float64" else LSTM_32
    return Case(label, [x, h0, c0, w, u, b], h, values, by_hand)


def gru() -> Case:
    """Return a gated recurrent unit for one sequence, in float32, with the states of all steps."""
    x, w, u = (pt.matrix(name, dtype="float32") for name in ("x", "w", "u"))
    h0, b, b_n = (pt.vector(name, dtype="float32") for name in ("h0", "b", "b_n"))

    def step(e: Any, h: Any, w: Any, u: Any, b: Any, b_n: Any) -> Any:
        x_r, x_z, x_n = pt.split(e @ w + b, [WIDTH] * 3, n_splits=3)
        h_r, h_z, h_n = pt.split(h @ u, [WIDTH] * 3, n_splits=3)
        r, z = pt.sigmoid(x_r + h_r), pt.sigmoid(x_z + h_z)
        return (1 - z) * pt.tanh(x_n + r * (h_n + b_n)) + z * h

    h = _scan(step, sequences=[x], outputs_info=[h0], non_sequences=[w, u, b, b_n])
    shapes = [(LENGTH, N_IN), (WIDTH,), (N_IN, 3 * WIDTH), (WIDTH, 3 * WIDTH)]
    values = _small([*shapes, (3 * WIDTH,), (WIDTH,)])
    label = f"GRU of {LENGTH} steps, {WIDTH} units, float32"
    return Case(label, [x, h0, w, u, b, b_n], h, values)


def simple_rnn() -> Case:
    """Return a recurrence of tanh for one sequence, in float32, with the states of all steps."""
    x, w, u = (pt.matrix(name, dtype="float32") for name in ("x", "w", "u"))
    h0, b = (pt.vector(name, dtype="float32") for name in ("h0", "b"))
    h = _scan(
        lambda e, h, w, u, b: pt.tanh(e @ w + h @ u + b),
        sequences=[x],
        outputs_info=[h0],
        non_sequences=[w, u, b],
    )
    values = _small([(LENGTH, N_IN), (WIDTH,), (N_IN, WIDTH), (WIDTH, WIDTH), (WIDTH,)])
    label = f"simple RNN of {LENGTH} steps, {WIDTH} units, float32"
    return Case(label, [x, h0, w, u, b], h, values)


def _small(shapes: Sequence[tuple[int, ...]], dtype: str = "float32") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(scale=0.1, size=shape).astype(dtype) for shape in shapes]


def lstm_layer() -> Case:
    """Return the layer `nn.lstm` for one sequence, in float32."""
    shapes = {"x": (None, N_IN), "h0": (WIDTH,), "c0": (WIDTH,)}
    shapes |= {"w": (N_IN, 4 * WIDTH), "u": (WIDTH, 4 * WIDTH), "b": (4 * WIDTH,)}
    inputs = [pt.tensor(name, shape=shape, dtype="float32") for name, shape in shapes.items()]
    x, h0, c0, w, u, b = inputs
    y, _, _ = nn.lstm(x, w, u, b, h0=h0, c0=c0)
    values = _small([(LENGTH, N_IN), *list(shapes.values())[1:]])
    return Case(LAYER, inputs, y, values)


def newton() -> Case:
    """Return a square root by iteration until it no longer moves."""
    a = pt.scalar("a", dtype="float64")

    def step(y: Any, a: Any) -> tuple[Any, Any]:
        new = 0.5 * (y + a / y)
        return new, until(pt.abs(new - y) < 1e-12)

    steps = _scan(step, outputs_info=[pt.ones(())], non_sequences=[a], n_steps=100)
    return Case("Newton iteration of 10 steps", [a], steps[-1], [np.array(1000.0)], NEWTON)


def rows() -> Case:
    """Return a recurrence along each row of a matrix, mapped over the rows."""
    x, start, a = pt.dmatrix("x"), pt.dvector("start"), pt.dscalar("a")

    def row(row: Any, start: Any, a: Any) -> Any:
        return _scan(lambda e, y, a: pt.tanh(a * y + e), [row], [start], [a])

    y = _scan(row, [x, start], None, [a])
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(LENGTH, LENGTH)), rng.normal(size=LENGTH), np.array(0.5)]
    return Case(f"{LENGTH} rows of {LENGTH} steps", [x, start, a], y, values, ROWS)


def kalman() -> Case:
    """Return a Kalman filter of two states and one observation."""
    transition, observe = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    ys = pt.matrix("ys", dtype="float64", shape=(None, 1))

    def step(y: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
        mean, cov = transition @ mean, transition @ cov @ transition.T + 0.1 * np.eye(2)
        total = observe @ cov @ observe.T + 1.0
        gain = pt.linalg.solve(total, observe @ cov, assume_a="pos").T
        return mean + gain @ (y - observe @ mean), cov - gain @ observe @ cov

    means, _ = _scan(step, [ys], [pt.zeros(2, "float64"), pt.eye(2, dtype="float64")])
    values = [np.random.default_rng(0).normal(size=(LENGTH, 1))]
    return Case(f"Kalman filter of {LENGTH} steps", [ys], means, values)


def runge_kutta() -> Case:
    """Return Lorenz's equations by the Runge-Kutta method of fourth order."""
    start, h = pt.vector("start", dtype="float64", shape=(3,)), pt.scalar("h", dtype="float64")

    def slope(s: Any) -> Any:
        x, y, z = s[0], s[1], s[2]
        return pt.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.5 * z])

    def step(s: Any, h: Any) -> Any:
        a = slope(s)
        b = slope(s + h / 2 * a)
        c = slope(s + h / 2 * b)
        return s + h / 6 * (a + 2 * b + 2 * c + slope(s + h * c))

    states = _scan(step, [], [start], [h], n_steps=LENGTH)
    return Case(f"Runge-Kutta of {LENGTH} steps", [start, h], states, [np.ones(3), np.array(0.01)])


def calls_of(case: Case) -> dict[str, Callable[[], Any]]:
    """Return the ways to run a loop, after checking that all agree."""
    calls: dict[str, Callable[[], Any]] = {}
    for mode in ("ONNX", "NUMBA"):
        f = pytensor.function(list(case.inputs), case.output, mode=mode, trust_input=True)
        calls[f"mode {mode}"] = partial(f, *case.values)
    program = export_onnx(list(case.inputs), case.output)
    sessions = {"session, exported": program.session.runtime}
    if case.by_hand is not None:
        model = onnx.parser.parse_model(case.by_hand)
        x = pt.vector("x", dtype=case.inputs[0].type.dtype)
        sigmoid_and_tanh = export_onnx([x], [pt.sigmoid(x), pt.tanh(x)])
        model.functions.extend(sigmoid_and_tanh.proto.functions)
        options = program.session.runtime.get_session_options()
        by_hand = onnxruntime.InferenceSession(model.SerializeToString(), options)
        sessions["session, by hand"] = by_hand
    for name, session in sessions.items():
        names = [x.name for x in session.get_inputs()]
        feed = dict(zip(names, case.values, strict=True))
        calls[name] = partial(session.run, [session.get_outputs()[0].name], feed)
    expected = np.asarray(calls["mode NUMBA"]())
    for name, call in calls.items():
        found = np.reshape(call(), expected.shape)
        rtol, atol = (1e-9, 0) if expected.dtype == "float64" else (1e-5, 1e-6)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=name)
    return calls


def measure() -> Table:
    """Time the loops."""
    bounds = [
        (autoregression(), 0.6),
        (lstm("float64"), None),
        (lstm("float32"), None),
        (lstm_layer(), 1.0),
        (gru(), None),
        (simple_rnn(), 1.0),
        (newton(), None),
        (rows(), 1.0),
        (kalman(), None),
        (runge_kutta(), None),
    ]
    times = {case.label: interleaved(calls_of(case), rounds=60) for case, _ in bounds}
    ways = list(next(iter(times.values())))
    table = Table(
        "Loops",
        ["µs a call", *ways, "mode ONNX / mode NUMBA"],
        note="By hand is an ONNX Loop with the same operators in its body, run with the same "
        "options by `InferenceSession.run`, and so is the exported model. Numba compiles the "
        "step to machine code; a runtime of operators pays for each of them in each step.",
    )
    for (label, of_ways), (_, bound) in zip(times.items(), bounds, strict=True):
        ratio = of_ways["mode ONNX"] / of_ways["mode NUMBA"]
        cells = [f"{of_ways[way] * 1e6:.1f}" if way in of_ways else "" for way in ways]
        table.rows.append([label, *cells, f"{ratio:.2f}"])
        if bound is not None:
            table.claim(f"{label}, mode ONNX against mode NUMBA", ratio, bound)
    for label, of_ways in times.items():
        if "session, by hand" in of_ways:
            ratio = of_ways["session, exported"] / of_ways["session, by hand"]
            table.claim(f"{label}, exported against by hand", ratio, 1.5)
    return table


if __name__ == "__main__":
    measure().show()
