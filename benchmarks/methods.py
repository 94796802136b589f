"""Seconds from a PyMC model to draws of its approximations, and how near these are.

``python -m benchmarks.methods [MODEL ...]`` takes all models without names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm

from benchmarks.densities import eight_schools, logistic, radon
from benchmarks.timing import Table

MODELS: dict[str, Callable[[], pm.Model]] = {
    made.__name__: made for made in (eight_schools, radon, logistic)
}
PATHS, DRAWS = 4, 1000
Draws = dict[str, np.ndarray]
Run = Callable[[], tuple[Draws, float]]
"""Function that returns draws, and Pareto k or NaN."""


def file(export: Callable, model: pm.Model, **inputs: Any) -> Run:
    """Export a file, and return a function that runs it."""
    names = [str(v.name) for v in model.free_RVs]
    program = export(model, variables=names, verify=False)
    outputs = [str(x.name) for x in program.model.graph.outputs]
    data = {str(v.name): v.get_value() for v in model.data_vars}

    def run() -> tuple[Draws, float]:
        known = {str(v.name) for v in program.model.graph.inputs}
        given = {name: x for name, x in data.items() if name in known}
        results = dict(zip(outputs, program(**inputs, **given), strict=True))
        return {name: results[name] for name in names}, float(results.get("pareto_k", np.nan))

    return run


def nuts_file(model: pm.Model) -> Run:
    """The sampler, the reference of all."""
    from pytensor_onnx.pymc import export_sampler

    return file(export_sampler, model, seed=np.arange(4), warmup=1000, draws=4 * DRAWS)


def laplace_file(model: pm.Model) -> Run:
    """The Laplace approximation."""
    from pytensor_onnx.pymc import export_laplace

    return file(export_laplace, model, seed=[1], draws=DRAWS)


def pathfinder_file(model: pm.Model) -> Run:
    """Pathfinder."""
    from pytensor_onnx.pymc import export_pathfinder

    return file(export_pathfinder, model, seed=np.arange(PATHS), draws=DRAWS)


def advi_file(model: pm.Model) -> Run:
    """Variational inference."""
    from pytensor_onnx.pymc import export_advi

    return file(export_advi, model, seed=[1], draws=DRAWS)


def full_rank_file(model: pm.Model) -> Run:
    """Variational inference with correlations."""
    from pytensor_onnx.pymc import export_advi

    return file(partial(export_advi, approximation="full_rank"), model, seed=[1], draws=DRAWS)


def smc_file(model: pm.Model) -> Run:
    """Sequential Monte Carlo."""
    from pytensor_onnx.pymc import export_smc

    return file(export_smc, model, seed=[1], draws=DRAWS)


def extras(fit: Callable[[], Any], model: pm.Model) -> Run:
    """Return a function that calls one of pymc-extras."""
    names = [str(v.name) for v in model.free_RVs]

    def run() -> tuple[Draws, float]:
        with model:
            tree = fit()
        found = tree["pathfinder"] if "pathfinder" in tree.children else {}
        k = float(found["pareto_k"]) if "pareto_k" in found else np.nan
        return {name: tree.posterior[name].values for name in names}, k

    return run


def laplace_extras(model: pm.Model) -> Run:
    """The Laplace approximation of pymc-extras."""
    import pymc_extras

    settings = {"draws": DRAWS, "random_seed": 1, "progressbar": False}
    return extras(lambda: pymc_extras.fit_laplace(**settings), model)


def pathfinder_extras(model: pm.Model) -> Run:
    """Pathfinder of pymc-extras."""
    import pymc_extras

    settings = {"num_paths": PATHS, "num_draws": DRAWS, "random_seed": 1, "cores": 1}
    return extras(lambda: pymc_extras.fit_pathfinder(progressbar=False, **settings), model)


def full_rank_pymc(model: pm.Model) -> Run:
    """Variational inference with correlations of PyMC, 10,000 steps as by default."""

    def run() -> tuple[Draws, float]:
        settings = {"random_seed": 1, "progressbar": False}
        with model:
            found = pm.fit(method="fullrank_advi", **settings)
        tree = found.sample(DRAWS, random_seed=1)
        return {str(v.name): tree.posterior[str(v.name)].values for v in model.free_RVs}, np.nan

    return run


METHODS: Mapping[str, Callable[[pm.Model], Run]] = {
    made.__name__: made
    for made in (
        *(nuts_file, laplace_file, laplace_extras, pathfinder_file, pathfinder_extras),
        *(advi_file, full_rank_file, full_rank_pymc, smc_file),
    )
}


def child(method: str, name: str, path: str) -> None:
    """Print the seconds of a first and a second result, and write its draws."""
    model = MODELS[name]()
    start = time.perf_counter()
    run = METHODS[method](model)
    draws, k = run()
    first = time.perf_counter()
    run()
    last = time.perf_counter()
    flat = [x.reshape((x.shape[0] * x.shape[1], -1)) for x in draws.values()]
    np.save(path, np.concatenate(flat, axis=1))
    print(first - start, last - first, k)


def run_child(method: str, name: str) -> tuple[list[float], np.ndarray]:
    """Run `child` in a process of its own, with empty caches of compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.npy"
        environment = {
            **os.environ,
            "PYTENSOR_FLAGS": f"base_compiledir={folder}",
            "NUMBA_CACHE_DIR": folder,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "benchmarks.methods", "--child", method, name, str(path)]
        output = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        return [float(number) for number in output.splitlines()[-1].split()], np.load(path)


def measure(names: list[str] | None = None) -> Table:
    """Run each method on each model once."""
    table = Table(
        "Approximations of PyMC models",
        ["model", "method", "cold, s", "warm, s", "error of means", "deviations", "Pareto k"],
        note=f"{DRAWS} draws of each method, of {PATHS} paths in Pathfinder, on one core. Cold is "
        "the time from the model to the draws, in a fresh process with empty caches of compiled "
        "code; warm is the time of a second result in the same process, for which pymc-extras "
        "compiles its functions again. Errors of means are in standard deviations of the "
        "reference, the root of the mean square over the elements of all free variables; "
        "deviations are relative to those of the reference, the median. The reference is NUTS with "
        "4 chains of 4,000 draws. Names that end in `file` are files of this package, in `extras` "
        "functions of pymc-extras, in `pymc` of PyMC.",
    )
    for name in names or MODELS:
        cold, warm = {}, {}
        reference: np.ndarray | None = None
        for method in METHODS:
            (cold[method], warm[method], k), draws = run_child(method, name)
            reference = draws if reference is None else reference
            mean, sd = reference.mean(axis=0), reference.std(axis=0)
            with np.errstate(all="ignore"):
                error = np.sqrt(np.mean(((draws.mean(axis=0) - mean) / sd) ** 2))
                spread = np.median(draws.std(axis=0) / sd)
            numbers = [
                f"{cold[method]:.2f}",
                f"{warm[method]:.3f}",
                f"{error:.2f}",
                f"{spread:.2f}",
            ]
            table.rows.append([name, method, *numbers, "" if np.isnan(k) else f"{k:.2f}"])
        for method in ("laplace", "pathfinder"):
            ours, other = f"{method}_file", f"{method}_extras"
            table.claim(
                f"{name}, {method}, cold, beside pymc-extras", cold[ours] / cold[other], 1.0
            )
            table.claim(
                f"{name}, {method}, warm, beside pymc-extras", warm[ours] / warm[other], 0.1
            )
    return table


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        measure(sys.argv[1:]).show()
