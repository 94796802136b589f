"""A call of a density with its gradient: kernels on and off, beside mode NUMBA.

``python -m benchmarks.pymc_calls [NAME ...]`` takes all densities without names.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pymc as pm
from pytensor import function
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable

from benchmarks.densities import DENSITIES
from benchmarks.long_densities import LONG
from benchmarks.timing import Table, interleaved
from pytensor_onnx import ONNXLinker, SessionOptions
from pytensor_onnx.rewriting import ONNX_QUERY

ROUNDS = 40
MEAN, WORST = 0.65, 1.0
"""Bounds of the ratio to NUMBA's call: of the geometric mean, and of each model."""


def onnx_mode(kernels: bool) -> Mode:
    """Return the mode ONNX on one thread, with kernels or without."""
    options = SessionOptions(threads=1, kernels=kernels)
    return Mode(ONNXLinker(session_options=options), ONNX_QUERY)


def density_of(model: pm.Model, mode: Mode) -> tuple[Any, Callable[[np.ndarray], Any]]:
    """Return the compiled function and the density with its gradient of a vector."""
    made = model.logp_dlogp_function(mode=mode, ravel_inputs=True)
    made.set_extra_values({})
    return made._pytensor_function, made


def graph_of(
    variable: Variable, results: list[Variable], mode: Mode
) -> tuple[Any, Callable[[np.ndarray], Any]]:
    """Return the compiled function of a vector, twice."""
    made = function([variable], results, mode=mode, trust_input=True)
    return made, made


def measure(name: str) -> tuple[list[str], float]:
    """Return a row of times in µs, and the ratio of a call to NUMBA's."""
    built = DENSITIES[name]() if name in DENSITIES else LONG[name][0]()
    modes = {"off": onnx_mode(False), "on": onnx_mode(True), "numba": get_mode("NUMBA")}
    if isinstance(built, pm.Model):
        functions = {key: density_of(built, mode) for key, mode in modes.items()}
        size = sum(np.size(value) for value in built.initial_point().values())
        point = np.random.default_rng(0).uniform(0.1, 0.5, size)
    else:
        variable, graph, point = built
        functions = {key: graph_of(variable, graph, mode) for key, mode in modes.items()}
    results = {key: call(point) for key, (_, call) in functions.items()}
    # PyTensor keeps some constants of NUMBA's graph in float32.
    for key, rtol in {"on": 1e-11, "numba": 1e-6}.items():
        for found, expected in zip(results[key], results["off"], strict=True):
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=key)
    calls: dict[str, Callable[[], object]] = {
        key: (lambda call=call: call(point)) for key, (_, call) in functions.items()
    }
    for key in ("off", "on"):
        session = functions[key][0].vm.jit_fn
        feed = {session.input_names[0]: point}
        calls[f"session {key}"] = lambda s=session, f=feed: s._run(s.output_names, f, None)
    best = interleaved(calls, rounds=ROUNDS)
    order = ("session off", "session on", "off", "on", "numba")
    ratio = best["on"] / best["numba"]
    return [name, *(f"{best[key] * 1e6:.1f}" for key in order), f"{ratio:.2f}"], ratio


def run(names: list[str]) -> Table:
    """Measure models, in turns in one process."""
    table = Table(
        "Calls of densities with gradients",
        ["model", "session", "session, kernels", "call", "call, kernels", "NUMBA", "ratio"],
        note="µs, the least of many rounds on one thread; the ratio is of calls with kernels.",
    )
    ratios = {}
    for name in names:
        row, ratios[name] = measure(name)
        table.rows.append(row)
    if models := [ratio for name, ratio in ratios.items() if name in DENSITIES]:
        mean = prod(models) ** (1 / len(models))
        table.claim("geometric mean of the models' ratios to NUMBA's call", mean, MEAN)
        table.claim("largest ratio of a model", max(models), WORST)
    for name in ratios.keys() & LONG.keys():
        table.claim(f"ratio of {name}", ratios[name], LONG[name][1])
    return table


def measure_all() -> Table:
    """Measure all densities, and the long loops."""
    warnings.simplefilter("ignore")
    return run([*DENSITIES, *LONG])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    (run(sys.argv[1:]) if sys.argv[1:] else measure_all()).show()
