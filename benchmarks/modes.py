"""PyTensor's modes side by side: time of one call, and time to the first result."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace

from benchmarks.timing import Table, interleaved

sys.path.append(str(Path(__file__).parents[1] / "examples"))
import numba_networks  # noqa: F401  (mode NUMBA's functions for convolutions and pools)

PACKAGES = {"ONNX": "onnxruntime", "NUMBA": "numba", "JAX": "jax"}
"""The modes, and what each needs."""


@dataclass
class Case:
    """A function to compile in each mode, for values of those shapes, and the values.

    Operations that have an inner graph should be made for these shapes already: PyTensor's JAX
    backend compiles few graphs whose shapes it does not know.
    """

    inputs: Sequence[Any]
    outputs: Any
    values: Sequence[np.ndarray]
    updates: Sequence[tuple[Any, Any]] = field(default_factory=list)


def installed() -> list[str]:
    """Return the modes whose packages are installed, and print which are not."""
    for mode, package in PACKAGES.items():
        if find_spec(package) is None:
            print(f"mode {mode} is left out: {package} is not installed")
    return [mode for mode, package in PACKAGES.items() if find_spec(package)]


def compare(
    title: str,
    cases: Mapping[str, Case],
    *,
    note: str,
    rounds: int,
    modes: Sequence[str] | None = None,
    others: Mapping[str, Mapping[str, Callable[[], float]]] | None = None,
) -> Table:
    """Measure each case in each mode, in turns, and claim that mode ONNX is the fastest.

    Parameters
    ----------
    title, note
        Of the table.
    cases
        For each column what to measure.
    rounds
        Number of turns; the fastest one counts.
    modes
        Those to measure; by default all whose packages are installed.
    others
        Functions outside of PyTensor that compute the cases; the first call may take longer.
    """
    columns = (f"{what}, {unit}" for what in cases for unit in ("ms", "first, s"))
    table = Table(title, ["mode", *columns], note=f"{note} The first counts the compilation.")
    rows: dict[str, list[str]] = {}
    for what, case in cases.items():
        calls, first = {}, {}
        makers = {mode: _maker(case, mode) for mode in (installed() if modes is None else modes)}
        makers |= {name: lambda c=c[what]: c for name, c in (others or {}).items()}
        for name, make in makers.items():
            gc.collect()  # The garbage of what ran before would count.
            start = perf_counter()
            try:
                call = make()
                call()
            except Exception as error:
                print(f"{what}, {name}: left out, as {_summary(error)}")
                continue
            calls[name], first[name] = call, perf_counter() - start
        best = interleaved(calls, rounds=rounds, seconds=0, uncounted=1)
        for name in makers:
            cells = [f"{1e3 * best[name]:.2f}", f"{first[name]:.2f}"] if name in best else ["–"] * 2
            rows.setdefault(name, [name]).extend(cells)
            if name in best and name != "ONNX":
                ratio = best["ONNX"] / best[name]
                table.claim(f"{what}, mode ONNX against {name}", ratio, 1)
    table.rows += rows.values()
    return table


def _maker(case: Case, mode: str) -> Callable[[], Callable[[], Any]]:
    """Return a function that compiles a case, with variables of its own."""
    outputs = case.outputs if isinstance(case.outputs, list) else [case.outputs]
    inputs = [
        pt.tensor(x.name, dtype=x.type.dtype, shape=value.shape)
        for x, value in zip(case.inputs, case.values, strict=True)
    ]
    shared = [pytensor.shared(w.get_value(), w.name, shape=w.type.shape) for w, _ in case.updates]
    replace = dict(zip([*case.inputs, *(w for w, _ in case.updates)], inputs + shared, strict=True))
    results = clone_replace(
        [*outputs, *(new for _, new in case.updates)], replace, rebuild_strict=False
    )
    updates = list(zip(shared, results[len(outputs) :], strict=True))

    def make() -> Callable[[], Any]:
        # PyTensor's JAX backend adds up float32 as float64, unless it is told that there is none.
        with pytensor.config.change_flags(floatX="float32"):
            function = pytensor.function(
                inputs, results[: len(outputs)], updates=updates, mode=mode
            )
        return lambda: [np.asarray(x) for x in function(*case.values)]

    return make


def _summary(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"
