"""Seconds from a PyMC model to its trace, and effective draws a second, of samplers.

``python -m benchmarks.samplers [MODEL ...]`` takes all models without names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm

from benchmarks.sampled_models import SAMPLED
from benchmarks.timing import Table

CHAINS, WARMUP, DRAWS = 2, 500, 500
Draws = dict[str, np.ndarray]


def onnx_file(model: pm.Model) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Export the model's sampler, and return a function that runs the file."""
    from pytensor_onnx.pymc import export_sampler

    names = [str(v.name) for v in model.free_RVs]
    program = export_sampler(model, variables=names, verify=False)
    outputs = [str(x.name) for x in program.model.graph.outputs]

    def sample() -> tuple[Draws, np.ndarray]:
        given = [np.arange(CHAINS), np.array(WARMUP), np.array(DRAWS)]
        results = dict(zip(outputs, program(*given), strict=True))
        return {name: results[name] for name in names}, results["n_steps"]

    return sample


def by_nutpie(compiled: Any, names: list[str]) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Return a function that samples a compiled model of nutpie."""
    import nutpie

    def sample() -> tuple[Draws, np.ndarray]:
        trace = nutpie.sample(
            compiled,
            draws=DRAWS,
            tune=WARMUP,
            chains=CHAINS,
            cores=1,
            seed=1,
            progress_bar=False,
        )
        return _draws(trace, names)

    return sample


def nutpie_onnx(model: pm.Model) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Compile the model for nutpie with densities on ONNX Runtime."""
    from pytensor_onnx.pymc import nutpie_model

    return by_nutpie(nutpie_model(model), [str(v.name) for v in model.free_RVs])


def nutpie_numba(model: pm.Model) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Compile the model for nutpie by its own function."""
    import nutpie

    return by_nutpie(nutpie.compile_pymc_model(model), [str(v.name) for v in model.free_RVs])


def by_pymc(model: pm.Model, mode: str) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Return a function that compiles and samples by `pymc.sample`."""

    def sample() -> tuple[Draws, np.ndarray]:
        with model:
            trace = pm.sample(
                draws=DRAWS,
                tune=WARMUP,
                chains=CHAINS,
                cores=1,
                nuts_sampler="pymc",
                compile_kwargs={"mode": mode},
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
        return _draws(trace, [str(v.name) for v in model.free_RVs])

    return sample


def pymc_onnx(model: pm.Model) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Sample by PyMC in mode ONNX."""
    import pytensor_onnx  # noqa: F401

    return by_pymc(model, "ONNX")


def pymc_numba(model: pm.Model) -> Callable[[], tuple[Draws, np.ndarray]]:
    """Sample by PyMC in mode NUMBA."""
    return by_pymc(model, "NUMBA")


SAMPLERS = {
    made.__name__: made for made in (onnx_file, nutpie_onnx, nutpie_numba, pymc_onnx, pymc_numba)
}
OTHERS = ("nutpie_numba", "pymc_numba")
"""Samplers without this package."""


def _draws(trace: Any, names: list[str]) -> tuple[Draws, np.ndarray]:
    posterior = {name: trace.posterior[name].values for name in names}
    return posterior, trace.sample_stats["n_steps"].values


def child(sampler: str, name: str) -> None:
    """Print the seconds of a first and a second trace, effective draws and leapfrog steps."""
    model = SAMPLED[name]()
    start = time.perf_counter()
    sample = SAMPLERS[sampler](model)
    sample()
    first = time.perf_counter()
    draws, n_steps = sample()
    last = time.perf_counter()
    print(first - start, last - first, effective_draws(draws), n_steps.mean())


def effective_draws(draws: Draws) -> float:
    """Return the least effective sample size of all variables' elements."""
    from arviz_stats.base import array_stats

    return min(
        array_stats.ess(row)
        for values in draws.values()
        for row in np.moveaxis(values.reshape(CHAINS, DRAWS, -1), -1, 0)
    )


def run_child(sampler: str, name: str) -> list[float]:
    """Run `child` in a process of its own, with empty caches of compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTENSOR_FLAGS": f"base_compiledir={folder}",
            "NUMBA_CACHE_DIR": folder,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "benchmarks.samplers", "--child", sampler, name]
        output = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    return [float(number) for number in output.splitlines()[-1].split()]


def measure(names: list[str] | None = None) -> Table:
    """Run each sampler on each model once."""
    table = Table(
        "Samplers of PyMC models",
        ["model", "sampler", "cold, s", "warm, s", "effective draws a second", "steps"],
        note=f"NUTS with {CHAINS} chains of {WARMUP} warm-up steps and {DRAWS} draws on one core. "
        "Cold is the time from the model to the trace, in a fresh process with empty caches of "
        "compiled code; warm is the time of a second trace in the same process, for which PyMC "
        "compiles its functions again. The effective draws are those of the worst variable "
        "in the warm time; steps are leapfrog steps of a draw. `onnx_file` is the exported "
        "sampler.",
    )
    for name in names or SAMPLED:
        cold, warm = {}, {}
        for sampler in SAMPLERS:
            cold[sampler], warm[sampler], effective, steps = run_child(sampler, name)
            numbers = [f"{cold[sampler]:.2f}", f"{warm[sampler]:.2f}"]
            numbers.append(f"{effective / warm[sampler]:.0f}")
            table.rows.append([name, sampler, *numbers, f"{steps:.1f}"])
        for text, seconds, bound in (("cold", cold, 1.0), ("warm", warm, 1.5)):
            ours = min(time for sampler, time in seconds.items() if sampler not in OTHERS)
            others = min(seconds[sampler] for sampler in OTHERS)
            table.claim(
                f"{name}, {text}, the best here beside the best other", ours / others, bound
            )
    return table


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        measure(sys.argv[1:]).show()
