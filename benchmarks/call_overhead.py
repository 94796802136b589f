"""What a call costs beyond the work: ``x + y`` in mode ONNX, mode NUMBA and in a bare session."""

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt

from benchmarks.timing import Table, interleaved
from pytensor_onnx import export_onnx

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


if __name__ == "__main__":
    measure().show()
