"""Which functions of mathematics the densities of PyMC models spend their time in.

``python -m benchmarks.function_shares`` runs each density with its gradient in a session with
kernels of functions and without regions, whose nodes have times of their own. A node takes 0.2 to
0.6 µs beside its work, so that shares of small operators are upper bounds.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pymc as pm

from benchmarks.densities import DENSITIES
from benchmarks.long_densities import LONG
from benchmarks.sampled_models import SAMPLED
from pytensor_onnx import ONNXProgram, export_onnx, native
from pytensor_onnx.pymc import export_logp

RUNS, LEAST = 30, 0.01
ELEMENTARY = {
    "Exp",
    "Log",
    "Pow",
    "Sqrt",
    "Sin",
    "Cos",
    "Tan",
    "Atan",
    "Sinh",
    "Cosh",
    "Tanh",
    "Erf",
}
"""Operators of ONNX that are functions, beside the model-local functions with kernels."""


def program_of(build: Callable[[], object]) -> tuple[ONNXProgram, np.ndarray]:
    """Return the density of a model with its gradient, and a point."""
    built = build()
    if isinstance(built, pm.Model):
        size = sum(np.size(value) for value in built.initial_point().values())
        point = np.random.default_rng(0).uniform(0.1, 0.5, size)
        return export_logp(built, verify=False), point
    variable, results, point = built  # type: ignore[misc]  # the graphs of long_densities
    return export_onnx([variable], results, verify=False), point


def shares(program: ONNXProgram, point: np.ndarray) -> dict[str, float]:
    """Return the shares of functions in the time of all nodes, the largest first."""
    fused, plain = program.session.serialized
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_profiling = True
    native.register(options)
    seconds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(plain or fused, options)
        given = {x.name: point.astype("float64") for x in session.get_inputs()}
        for _ in range(RUNS):
            session.run(None, given)
        for event in json.loads(Path(session.end_profiling()).read_text()):
            if event.get("name", "").endswith("_kernel_time"):
                seconds[event["args"]["op_name"]] += event["dur"]
    total = sum(seconds.values())
    functions = {name for name in seconds if name in ELEMENTARY or native.has_kernel(name)}
    return {name: part / total for name, part in seconds.most_common() if name in functions}


def show() -> None:
    """Print a line for each model."""
    for name, build in {**DENSITIES, **{k: v[0] for k, v in LONG.items()}, **SAMPLED}.items():
        found = shares(*program_of(build))
        parts = [f"{function} {share:.0%}" for function, share in found.items() if share >= LEAST]
        print(f"{name}: {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    show()
