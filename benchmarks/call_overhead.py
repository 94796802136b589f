"""Overhead of a call: ``x + y`` in mode ONNX, mode NUMBA and in a bare session."""

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt

from benchmarks.timing import Table, interleaved
from pytensor_onnx import export_onnx

N_WEIGHTS = 200
SHAPES = {"scalars": (), "vectors of 10": (10,), "vectors of 1000": (1000,)}


def time_calls(shape: tuple[int, ...]) -> dict[str, float]:
    """Return the seconds of one call of ``x + y`` by each way of calling."""
    x, y = (pt.tensor(name, shape=(None,) * len(shape), dtype="float64") for name in "xy")
    a, b = np.ones(shape), np.ones(shape)
    feed = {"x": a, "y": b}
    calls = {}
    for trusted in (False, True):
        for mode in ("ONNX", "NUMBA"):
            f = pytensor.function([x, y], x + y, mode=mode, trust_input=trusted)
            name = f"mode {mode}, trust_input" if trusted else f"mode {mode}"
            calls[name] = lambda f=f: f(a, b)
    program = export_onnx([x, y], x + y)
    bare = onnxruntime.InferenceSession(program.proto.SerializeToString())
    ours = program.session.runtime
    calls["exported file"] = lambda: program(a, b)
    calls["bare session"] = lambda: bare.run(None, feed)
    calls["bare session, our options"] = lambda: ours.run(None, feed)
    return interleaved(calls)


def measure() -> Table:
    """Time calls of one-node functions."""
    table = Table(
        "Call overhead",
        ["x + y in float64, µs a call", *SHAPES],
        note="Bare is `InferenceSession.run(None, feed)` of the same model, with the runtime's "
        "default options unless it says otherwise. The claims are for `trust_input=False`.",
    )
    times = {label: time_calls(shape) for label, shape in SHAPES.items()}
    for way in times["scalars"]:
        table.rows.append([way, *(f"{times[label][way] * 1e6:.1f}" for label in SHAPES)])
    for alternative, bound in (("mode NUMBA", 2.0), ("bare session", 1.5)):
        for label in SHAPES:
            ratio = times[label]["mode ONNX"] / times[label][alternative]
            table.claim(f"{label}, mode ONNX against {alternative}", ratio, bound)
    return table


def measure_weights() -> Table:
    """Time calls of a function of many shared variables."""
    weights = [pytensor.shared(np.ones(4), f"w{i}") for i in range(N_WEIGHTS)]
    y = x = pt.vector("x", dtype="float64")
    for w in weights:
        y = y * w + w
    value = np.ones(4)
    f = pytensor.function([x], y, mode="ONNX")
    runtime = f.vm.jit_fn.runtime
    names = [v.name for v in runtime.get_inputs()]
    arrays = [value, *(w.get_value(borrow=True) for w in weights)]
    feed = dict(zip(names, arrays, strict=True))
    outputs = [v.name for v in runtime.get_outputs()]
    seconds = interleaved(
        {
            "mode ONNX": lambda: f(value),
            "bare session": lambda: runtime.run(None, feed),
            "bare inner session": lambda: runtime._sess.run(outputs, feed, None),
        },
        seconds=0.001,
    )
    table = Table(
        f"Calls with {N_WEIGHTS} weights",
        ["y = y * w + w for each weight of 4 numbers", "µs a call"],
        note="The inner session is the runtime's without the check of its inputs in Python, which "
        "searches a list for each input.",
    )
    table.rows += [[way, f"{time * 1e6:.0f}"] for way, time in seconds.items()]
    ratio = seconds["mode ONNX"] / seconds["bare inner session"]
    table.claim("mode ONNX against bare inner session", ratio, 1.3)
    return table


if __name__ == "__main__":
    measure().show()
    measure_weights().show()
