"""The measurements of one posterior, each part in a process of `benchmarks.posteriordb`.

A part prints each step and result as a line of JSON at once, so that a stopped process leaves its
results and its last step.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar.basic as ps

from benchmarks.posteriors import Posterior, numbers_of, posteriors, variable_of
from benchmarks.timing import interleaved

CHAINS, WARMUP, DRAWS = 2, 1000, 1000
TOLERANCE = 1e-9
"""Relative difference of log-densities and gradients that agree."""
SETTLED = 1.05, 100
"""Largest R-hat and least effective draws of chains whose moments are compared."""
Results = Iterator[dict[str, Any]]
Density = Callable[[np.ndarray], Any]
Draw = Callable[[int, int], tuple[dict, dict]]
"""Function of numbers of warm-up steps and of draws, to draws and statistics by name."""


def points_of(model: pm.Model) -> list[np.ndarray]:
    """Return the initial point as a vector, and two points beside it."""
    # The default mode would compile it by NUMBA.
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        start = model.initial_point()
    joined = np.concatenate([np.ravel(start[v.name]) for v in model.value_vars]).astype("float64")
    rng = np.random.default_rng(1)
    return [joined, *(joined + rng.uniform(-half, half, joined.size) for half in (0.5, 1.0))]


def compiled(model: pm.Model, mode: str) -> Density:
    """Return the density with its gradient of a vector, as PyMC compiles it."""
    made = model.logp_dlogp_function(mode=mode, ravel_inputs=True)
    made.set_extra_values({})
    return made


@contextmanager
def wide_numbers() -> Iterator[None]:
    """Make numbers of Python constants of 64 bits; PyTensor computes log(2) in float32."""
    with ps.autocast_float_as("float64"):
        integers, ps.autocast_int.dtypes = ps.autocast_int.dtypes, ("int64",)
        try:
            yield
        finally:
            ps.autocast_int.dtypes = integers


def difference(found: list[Any], expected: list[Any]) -> list[float]:
    """Return the relative differences of log-densities and of gradients, the largest of points.

    That of a gradient is relative to its largest element. Points where both log-densities are not
    finite agree; where one is not, the difference is infinite.

    Examples
    --------
    >>> difference([(2.0, [1.0, 4.0])], [(1.0, [1.0, 2.0])])
    [1.0, 1.0]
    >>> difference([(-np.inf, [np.nan])], [(-np.inf, [0.0])])
    [0.0, 0.0]
    >>> difference([(-np.inf, [np.nan])], [(1.0, [0.0])])
    [inf, inf]
    """
    largest = [0.0, 0.0]
    for (logp, gradient), (other, other_gradient) in zip(found, expected, strict=True):
        if np.isfinite(logp) != np.isfinite(other):
            return [float("inf"), float("inf")]
        if not np.isfinite(other):
            continue
        parts = ((logp, other), (gradient, other_gradient))
        for i, (x, y) in enumerate(map(np.asarray, part) for part in parts):
            far = np.max(np.abs(x - y), initial=0.0)
            largest[i] = max(largest[i], float(far / max(1.0, np.max(np.abs(y), initial=0.0))))
            if np.isnan(far):
                is_same = np.array_equal(np.isnan(x), np.isnan(y))
                largest[i] = largest[i] if is_same else float("inf")
    return largest


def density(posterior: Posterior) -> Results:
    """Compare log-densities and gradients of the export with those of PyTensor in Python."""
    from pytensor_onnx.pymc import export_logp

    model = posterior.build()
    points = points_of(model)
    yield {"numbers": points[0].size, "step": "export"}
    start = time.process_time()
    program = export_logp(model, data="stored", verify=False)
    yield {"export_s": time.process_time() - start, "step": "first call"}
    ours = [program(point) for point in points]
    yield {"finite": [bool(np.isfinite(logp)) for logp, _ in ours], "step": "Python"}
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        function = compiled(model, "FAST_COMPILE")
        python = [function(point) for point in points]
        yield {"python": difference(ours, python)}
        if max(difference(ours, python)) > TOLERANCE:
            with wide_numbers():
                wide = compiled(posterior.build(), "FAST_COMPILE")
                yield {"wide": difference(ours, [wide(point) for point in points])}
    yield {"step": ""}


def calls(posterior: Posterior) -> Results:
    """Time the first result and calls of the density with its gradient, beside mode NUMBA's.

    The first result includes the compilation and the imports of each mode.
    """
    model = posterior.build()
    points, functions = points_of(model), {}
    results = {}
    for mode in ("ONNX", "NUMBA"):
        yield {"step": f"first result in mode {mode}"}
        start = time.perf_counter(), time.process_time()
        if mode == "ONNX":
            import pytensor_onnx  # noqa: F401
        functions[mode] = compiled(model, mode)
        functions[mode](points[0])
        taken = time.perf_counter() - start[0], time.process_time() - start[1]
        yield {f"first_{mode}": taken, "step": f"calls in mode {mode}"}
        results[mode] = [functions[mode](point) for point in points]
        if mode == "ONNX":
            session = functions[mode]._pytensor_function.vm.jit_fn
            yield {"kernels": session.kernels(), "tape": session.direct.__name__ != "no_call"}
            yield {"call_ONNX": _times(functions, points[1])[mode]}
    yield {"numba": difference(results["ONNX"], results["NUMBA"])}
    best = _times(functions, points[1])
    yield {**{f"call_{mode}": seconds for mode, seconds in best.items()}, "step": ""}


def _times(functions: Mapping[str, Density], point: np.ndarray) -> dict[str, float]:
    """Return the least time of a call of each function; short turns are seldom interrupted."""
    called = {mode: (lambda call=call: call(point)) for mode, call in functions.items()}
    return interleaved(called, seconds=0.001, rounds=100)


def sampling(posterior: Posterior, sampler: str) -> Results:
    """Compile and run a sampler, and describe its draws."""
    model = posterior.build()
    yield {"step": "compiling"}
    start = time.process_time()
    draw = SAMPLERS[sampler](model)
    yield {"compile_s": time.process_time() - start, "step": "sampling"}
    draw(10, 10)
    start = time.process_time()
    draws, statistics = draw(WARMUP, DRAWS)
    yield {"sample_s": time.process_time() - start, "step": "describing the draws"}
    free = numbers_of({str(v.name): draws[str(v.name)] for v in model.free_RVs})
    values = np.stack(list(free.values()))
    from arviz_stats.base import array_stats

    yield {
        "effective": float(np.min(array_stats.ess(values))),
        "rhat": float(np.max(array_stats.rhat(values))),
        "steps": float(statistics["n_steps"].mean()),
        "diverging": int(statistics["diverging"].sum()),
    }
    if posterior.reference_name:
        yield compared(draws, posterior.reference)
    yield {"step": ""}


def compared(draws: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]) -> dict:
    """Compare means and standard deviations with those of reference draws.

    Differences are in Monte Carlo errors, those of both sides. Numbers of the reference that the
    draws do not have are named by their variables.
    """
    from arviz_stats.base import array_stats

    found = numbers_of({name: np.asarray(x, "float64") for name, x in draws.items()})
    known = {name: x for name, x in reference.items() if name in found}
    unknown = sorted({variable_of(name) for name in reference if name not in found})
    result: dict[str, Any] = {"compared": len(known), "unknown": unknown}
    if not known:
        return result
    ours = np.stack([found[name] for name in known])
    theirs = np.stack(list(known.values()))
    moments: dict[str, Callable] = {"mean": np.mean, "sd": np.std}
    for name, moment in moments.items():
        errors = [array_stats.mcse(x, method=name) for x in (ours, theirs)]
        apart = moment(ours, axis=(1, 2)) - moment(theirs, axis=(1, 2))
        distances = np.abs(apart) / np.maximum(np.hypot(*errors), np.finfo(float).tiny)
        worst = int(np.argmax(distances))
        result[name] = {
            "errors": float(distances[worst]),
            "of": list(known)[worst],
            "ours": float(moment(ours[worst])),
            "theirs": float(moment(theirs[worst])),
        }
    return result


def file(model: pm.Model) -> Draw:
    """Return a function that runs the exported sampler."""
    from pytensor_onnx.pymc import export_sampler

    names = [str(v.name) for v in (*model.free_RVs, *model.deterministics)]
    program = export_sampler(model, variables=names, data="stored", verify=False)
    outputs = [str(x.name) for x in program.model.graph.outputs]

    def draw(warmup: int, number: int) -> tuple[dict, dict]:
        results = program(seed=np.arange(CHAINS), warmup=warmup, draws=number)
        by_name = dict(zip(outputs, results, strict=True))
        return {name: by_name[name] for name in names}, by_name

    return draw


def by_nutpie(model: Any) -> Draw:
    """Return a function that samples a compiled model of nutpie."""
    import nutpie

    def draw(warmup: int, number: int) -> tuple[dict, dict]:
        settings = {"chains": CHAINS, "cores": 1, "seed": 1, "progress_bar": False}
        trace = nutpie.sample(model, draws=number, tune=warmup, **settings)
        statistics = {name: x.values for name, x in trace.sample_stats.items()}
        return {name: x.values for name, x in trace.posterior.items()}, statistics

    return draw


def nutpie_onnx(model: pm.Model) -> Draw:
    """Compile a model for nutpie with its density on ONNX Runtime."""
    from pytensor_onnx.pymc import nutpie_model

    return by_nutpie(nutpie_model(model, data="stored"))


def nutpie_numba(model: pm.Model) -> Draw:
    """Compile a model for nutpie by its own function."""
    import nutpie

    return by_nutpie(nutpie.compile_pymc_model(model))


SAMPLERS = {made.__name__: made for made in (file, nutpie_onnx, nutpie_numba)}
PARTS: dict[str, Callable[..., Results]] = {
    made.__name__: made for made in (density, calls, sampling)
}


def run(
    checkout: str, name: str, part: str, arguments: tuple[str, ...], folder: str, seconds: int
) -> None:
    """Write the results of a part to a file, each as a line, and errors to another one.

    The process dies after so many seconds of the processor.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    warnings.simplefilter("ignore")
    sys.stderr = (Path(folder) / "errors").open("w", buffering=1)
    with (Path(folder) / "results").open("w", buffering=1) as lines:
        for result in PARTS[part](posteriors(Path(checkout))[name], *arguments):
            lines.write(f"{json.dumps(result)}\n")
