"""Overhead of a call in mode ONNX, beside its session and mode NUMBA."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
from pytensor.compile.executor import Function

from benchmarks.first_result import make_model
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


def measure_functions() -> Table:
    """Time calls of functions of arrays and of densities of PyMC models."""
    table = Table(
        "Calls beside the session",
        ["µs a call", "session", "mode ONNX", "above", "by PyTensor's Function", "mode NUMBA"],
        note="The session is the runtime's own, without the check of its inputs in Python; "
        "PyTensor's `Function.__call__` runs it by way of its storage. Densities of PyMC models "
        "have their gradient and take one vector. `trust_input=False`.",
    )
    for what, (make, *values) in FUNCTIONS.items():
        f, numba = make("ONNX"), make("NUMBA")
        session = f.vm.jit_fn
        stored = [storage[0] for storage in f.vm.inputs[len(values) :]]
        feed = dict(zip(session.input_names, [*values, *stored], strict=True))
        inner, names = session.runtime._sess, session.output_names
        calls = {
            "session": lambda inner=inner, names=names, feed=feed: inner.run(names, feed, None),
            "mode ONNX": _call(f, values),
            "PyTensor": _call(Function.__call__.__get__(f), values),
            "mode NUMBA": _call(numba, values),
        }
        times = {way: seconds * 1e6 for way, seconds in interleaved(calls, rounds=400).items()}
        above = times["mode ONNX"] - times["session"]
        shown = [
            times["session"],
            times["mode ONNX"],
            above,
            times["PyTensor"],
            times["mode NUMBA"],
        ]
        table.rows.append([what, *(f"{time:.1f}" for time in shown)])
        table.claim(f"{what}, µs above the session", above, 1.5)
    return table


def _call(f: Callable, values: list[np.ndarray]) -> Callable[[], Any]:
    """Return a call without unpacking, which would count."""
    match values:
        case [a]:
            return lambda: f(a)
        case [a, b, c]:
            return lambda: f(a, b, c)
    return lambda: f(*values)


def _maker(*shapes: tuple[int | None, ...]) -> Callable[[str], Function]:
    """Return a function that compiles a sum of arrays in a mode."""
    inputs = [pt.tensor(shape=shape, dtype="float64") for shape in shapes]
    return lambda mode: pytensor.function(inputs, pt.add(1.0, *inputs), mode=mode)


def _chain_of_scalars() -> Any:
    """Return a PyMC model of 25 scalars, each with the one before it as its mean."""
    import pymc as pm

    with pm.Model() as model:
        mean = 0.0
        for i in range(25):
            mean = pm.Normal(f"x{i}", mean, 1)
    return model


def _density(model: Callable[[], Any]) -> Callable[[str], Function]:
    """Return a function that compiles the log density of a model and its gradient in a mode."""
    return lambda mode: model().logp_dlogp_function(mode=mode, ravel_inputs=True)._pytensor_function


FUNCTIONS = {
    "a scalar": (_maker(()), np.array(2.0)),
    "three arrays of 3, static shape": (_maker(*[(3,)] * 3), *[np.ones(3)] * 3),
    "three arrays of 3": (_maker(*[(None,)] * 3), *[np.ones(3)] * 3),
    "eight schools, density": (_density(lambda: make_model("centred")), np.zeros(10)),
    "25 scalars, density": (_density(_chain_of_scalars), np.zeros(25)),
}

if __name__ == "__main__":
    measure().show()
    measure_functions().show()
    measure_weights().show()
