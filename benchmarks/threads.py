"""Regions in several threads: a logistic regression of 500,000 rows."""

import os

import numpy as np
from pytensor.compile.mode import Mode, get_mode

from benchmarks.densities import grouped
from benchmarks.pymc_calls import density_of
from benchmarks.timing import Table, interleaved
from pytensor_onnx import ONNXLinker, SessionOptions
from pytensor_onnx.rewriting import ONNX_QUERY

ROWS = 500_000
GAIN = 1 / 1.7
"""Time of two threads in that of one."""


def measure(rounds: int = 40) -> Table:
    """Return the times of the density with its gradient."""
    model = grouped(ROWS)
    modes = {
        f"{threads} threads" if threads > 1 else "1 thread": Mode(
            ONNXLinker(session_options=SessionOptions(threads=threads)), ONNX_QUERY
        )
        for threads in sorted({1, 2, os.cpu_count() or 1})
    }
    without = SessionOptions(threads=2, kernels=False)
    modes["2 threads, without kernels"] = Mode(ONNXLinker(session_options=without), ONNX_QUERY)
    modes["NUMBA"] = get_mode("NUMBA")
    size = sum(np.size(value) for value in model.initial_point().values())
    point = np.random.default_rng(0).uniform(0.1, 0.5, size)
    calls = {name: density_of(model, mode)[1] for name, mode in modes.items()}
    best = interleaved(
        {name: lambda call=call: call(point) for name, call in calls.items()},
        rounds=rounds,
        seconds=0,
    )
    table = Table(
        "Threads: a logistic regression of 500,000 rows",
        ["way", "ms a call", "in that of one thread"],
        note="Density and gradient; 8 predictors and 40 groups in float64.",
    )
    for name, seconds in best.items():
        ratio = seconds / best["1 thread"]
        table.rows.append([name, f"{1e3 * seconds:.1f}", f"{ratio:.2f}"])
    table.claim("two threads in one", best["2 threads"] / best["1 thread"], GAIN)
    table.claim("one thread in NUMBA's time", best["1 thread"] / best["NUMBA"], 1.0)
    return table


if __name__ == "__main__":
    measure().show()
