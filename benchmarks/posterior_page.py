"""The page of results of posteriordb, and its summary for the page of benchmarks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from textwrap import fill
from typing import Any

from benchmarks.posterior_parts import CHAINS, DRAWS, SETTLED, TOLERANCE, WARMUP
from benchmarks.posteriors import COMMIT, RESULTS, measured
from benchmarks.timing import Table, environment

PAGE = Path(__file__).parent.parent / "docs" / "project" / "posteriordb.md"
SAMPLERS = {"file": "file", "nutpie_onnx": "nutpie, ONNX", "nutpie_numba": "nutpie, NUMBA"}
"""Names of the samplers in results, and in tables."""
MOST_ERRORS = 4
"""Monte Carlo errors by which moments that agree may differ."""
Results = dict[str, dict[str, Any]]

INTRODUCTION = """\
# All of posteriordb

[posteriordb](https://github.com/stan-dev/posteriordb) is a public collection of posteriors with
data; 47 of them have reference draws. [A fork](https://github.com/twiecki/posteriordb) has PyMC
models for most of them (commit {commit}). In a clone with the extra `pymc`, nutpie and Numba
installed, `python -m benchmarks.posteriordb` fetches the fork, measures each posterior in processes
of their own with bounded time, and writes this page. `--part density`, `calls` and `sampling` run
apart, `--only` names posteriors, and a run that was stopped goes on. Here is one posterior of each
model, and all with reference draws.

Other projects state for the same collection, on machines of their own: stanli, an interpreter of
Stan programs without a compiler, has 118 of 120 models verified against CmdStan, with gradients at
2.07 times CmdStan's time in the median; nutpie compiles 101 of 109 PyMC models.

{environment}
"""
REASONS = {
    "arma-arma11": "PyMC 6.4 refuses the model of the collection, in all modes.",
    "one_comp_mm_elim_abs-one_comp_mm_elim_abs": "The model of the collection solves its "
    "differential equation by SciPy in an Op without a gradient: no sampler with gradients runs.",
    "hudson_lynx_hare-lotka_volterra": "`pm.ode.DifferentialEquation` calls SciPy, and no file "
    "can; `pytensor_onnx.pymc.sample` takes the step methods of PyMC for it.",
    "gp_pois_regr-gp_pois_regr": "The covariance has a condition number of 1e11: at the three "
    "points the log-density is up to 2e-8 off the exact one (mpmath), PyTensor's 1e-7.",
    "Mth_data-Mth_model": "A graph of 387 potentials, most of whose export is PyTensor's rewriting "
    "(linear in their number, 0.2 s each): above a minute. PyTensor's Python takes no sum of more "
    "than 32 terms.",
    "Survey_data-Survey_model": "A graph of 500 sums that are written out, most of whose export is "
    "PyTensor's rewriting: above a minute.",
    "mesquite-logmesquite_logvash": "The model of the collection has a flat prior of "
    "log(sigma), the reference draws have one of sigma: in all samplers, its mean is 0.005 "
    "below them.",
    "bball_drive_event_0-hmm_drive_0": "The density is not finite at the initial point nor beside "
    "it, in any mode.",
}
"""Why posteriors cannot be measured or compared, where the reason is known."""


def found_results(checkout: Path) -> Results:
    """Return the results that are there, of each posterior by the name of the measurement."""
    return {
        name: {
            key: value
            for path in RESULTS.glob(f"*/{name}.json")
            for key, value in json.loads(path.read_text()).items()
        }
        for name in measured(checkout)
    }


def write_page(checkout: Path, remark: str = "") -> None:
    """Write the page of the results that are there."""
    results = found_results(checkout)
    tables = (summary(results), densities(results), samplers(results), moments(results))
    measured = fill(f"Measured: {environment()}. {remark}".strip(), 100)
    text = [INTRODUCTION.format(commit=COMMIT[:7], environment=measured)]
    text += [f"{table.markdown().rstrip()}\n" for table in tables]
    PAGE.write_text("\n".join([*text, named(results)]))


def apart(density: dict[str, Any]) -> float | None:
    """Return the relative difference of a density from PyTensor's, with constants in float64."""
    found = density.get("wide", density.get("python"))
    return None if found is None else max(found)


def is_settled(draws: dict[str, Any]) -> bool:
    """Return whether chains have come together."""
    largest, least = SETTLED
    return "rhat" in draws and draws["rhat"] <= largest and draws["effective"] >= least


def densities(results: Results) -> Table:
    """Return the table of densities, first results and calls."""
    table = Table(
        "Densities with gradients",
        [
            "posterior",
            "numbers",
            "difference from Python",
            "from NUMBA",
            "first result, s",
            "NUMBA, s",
            "call, µs",
            "NUMBA, µs",
            "ratio",
            "regions",
        ],
        note="Differences are relative, the largest of log-density and gradient at three points; "
        "PyTensor runs them in Python with numbers as constants in float64. NUMBA has some of "
        "them in float32, such as log(2), which makes differences of up to 1e-7. A first result "
        "has the compilation and the imports of the mode, in seconds of the processor and in a "
        "process without cached code; "
        "calls take turns on one thread. Regions: the tapes of the native library that a call "
        "runs; alone means without ONNX Runtime.",
    )
    for name, found in results.items():
        density, calls = found.get("density", {}), found.get("calls", {})
        if "numbers" not in density:
            continue
        numba = calls.get("numba")
        firsts = [calls.get(f"first_{mode}", [None])[-1] for mode in ("ONNX", "NUMBA")]
        times = [calls.get(f"call_{mode}") for mode in ("ONNX", "NUMBA")]
        table.rows.append(
            [
                name,
                str(density["numbers"]),
                _text(apart(density), "{:.0e}"),
                _text(None if numba is None else max(numba), "{:.0e}"),
                *(_text(x, "{:.1f}") for x in firsts),
                *(_text(None if x is None else x * 1e6, "{:.1f}") for x in times),
                _text(_ratio(*times), "{:.2f}"),
                _regions(calls),
            ]
        )
    return table


def samplers(results: Results) -> Table:
    """Return the table of samplers."""
    measures: dict[str, Callable[[dict], str]] = {
        "compilation, s": lambda x: _text(x.get("compile_s"), "{:.1f}"),
        "effective draws a second": lambda x: _text(rate(x), "{:.0f}") + _mark(x),
        "steps": lambda x: _text(x.get("steps"), "{:.1f}"),
    }
    table = Table(
        "Samplers",
        ["posterior", *(f"{sampler}: {x}" for x in measures for sampler in SAMPLERS.values())],
        note=f"NUTS with {CHAINS} chains of {WARMUP} warm-up steps and {DRAWS} draws on one core, "
        "in seconds of the processor without imports. File is the exported sampler; nutpie runs "
        "with densities by `nutpie_model` and by its own compilation. Effective draws are those "
        "of the worst free variable; † has chains that have not come together (R-hat above "
        f"{SETTLED[0]}, or fewer than {SETTLED[1]} effective draws). Steps are leapfrog steps a "
        "draw.",
    )
    for name, found in results.items():
        runs = [found.get(sampler, {}) for sampler in SAMPLERS]
        if any(runs):
            cells = (tell(run) for tell in measures.values() for run in runs)
            table.rows.append([name, *cells])
    return table


def moments(results: Results) -> Table:
    """Return the table of means and standard deviations beside reference draws."""
    table = Table(
        "Moments beside reference draws",
        ["posterior", "numbers", *(f"{x}: mean, sd" for x in SAMPLERS.values())],
        note="The largest differences of means and of standard deviations from those of the "
        "reference draws, in Monte Carlo errors of both sides. † as above.",
    )
    for name, found in results.items():
        runs = [found.get(sampler, {}) for sampler in SAMPLERS]
        if any(run.get("compared") for run in runs):
            number = max(run.get("compared", 0) for run in runs)
            table.rows.append([name, str(number), *map(_errors, runs)])
    return table


def agrees(draws: dict[str, Any]) -> bool:
    """Return whether means and standard deviations are those of the reference draws.

    Examples
    --------
    >>> agrees({"mean": {"errors": 3.9}, "sd": {"errors": 4.1}})
    False
    """
    return all(draws[moment]["errors"] <= MOST_ERRORS for moment in ("mean", "sd"))


def rate(draws: dict[str, Any]) -> float | None:
    """Return effective draws a second."""
    return _ratio(draws.get("effective"), draws.get("sample_s"))


def named(results: Results) -> str:
    """Return the list of posteriors that are not measured, differ or have not settled."""
    lines = []
    for name, found in results.items():
        told = [_failure(key, x["error"]) for key, x in found.items() if "error" in x]
        if (apart(found.get("density", {})) or 0) > TOLERANCE:
            told.append("The density differs from PyTensor's")
        for key, sampler in SAMPLERS.items():
            run = found.get(key, {})
            if "mean" in run and is_settled(run) and not agrees(run):
                worst = max(run["mean"], run["sd"], key=lambda x: x["errors"])
                told.append(
                    f"{sampler}: {worst['of']} is {worst['ours']:.4g} and {worst['theirs']:.4g} "
                    f"in the reference, {worst['errors']:.1f} errors apart"
                )
        if told or name in REASONS:
            told.append(REASONS.get(name, ""))
            lines.append(f"- {name}: {'. '.join(filter(None, told))}")
    return "\n".join(["## Posteriors with a remark", "", *lines, ""])


def summary(results: Results) -> Table:
    """Return the summary for the page of benchmarks."""
    table = Table(
        "Public posteriors",
        ["of posteriordb", "result"],
        note="One posterior of each of the PyMC models, and all with reference draws: "
        "[table](posteriordb.md). Ratios are to nutpie with NUMBA and to calls in mode NUMBA; "
        f"moments agree within {MOST_ERRORS} Monte Carlo errors. Samplers count where the chains "
        "of both have come together.",
    )
    every = results.values()
    differences = [x for x in (apart(found.get("density", {})) for found in every) if x is not None]
    calls = [found.get("calls", {}) for found in every]
    modes = ("ONNX", "NUMBA")
    firsts = _ratios([call.get(f"first_{mode}", [None])[-1] for mode in modes] for call in calls)
    times = _ratios([call.get(f"call_{mode}") for mode in modes] for call in calls)
    whole = [call["tape"] for call in calls if "tape" in call]
    exported = sum("export_s" in found.get("density", {}) for found in every)
    exact = sum(x <= TOLERANCE for x in differences)
    table.rows += [
        ["posteriors whose density is exported", f"{exported} of {len(results)}"],
        [f"agree with PyTensor in Python to {TOLERANCE:g}", f"{exact} of {len(differences)}"],
        ["calls without ONNX Runtime", f"{sum(whole)} of {len(whole)}"],
        ["first result, median ratio to NUMBA", _text(_middle(firsts), "{:.2f}")],
        ["call, geometric mean of ratios to NUMBA", _text(_mean(times), "{:.2f}")],
        ["call, largest ratio", _text(max(times, default=None), "{:.2f}")],
    ]
    for key in ("file", "nutpie_onnx"):
        pairs = [(found.get(key, {}), found.get("nutpie_numba", {})) for found in every]
        settled = [pair for pair in pairs if all(map(is_settled, pair))]
        rates = _ratios(tuple(map(rate, pair)) for pair in settled)
        steps = _ratios((a["steps"], b["steps"]) for a, b in settled)
        title = f"{SAMPLERS[key]}, of {len(settled)} posteriors"
        table.rows += [
            [f"effective draws a second, {title}", _text(_middle(rates), "{:.2f}")],
            [f"leapfrog steps a draw, {title}", _text(_middle(steps), "{:.2f}")],
        ]
    for key, sampler in SAMPLERS.items():
        runs = [found[key] for found in every if "mean" in found.get(key, {})]
        settled = [run for run in runs if is_settled(run)]
        told = f"{sum(map(agrees, settled))} of {len(settled)}"
        table.rows.append([f"moments of the reference draws, {sampler}", told])
    return table


def _failure(measurement: str, error: str) -> str:
    return f"{SAMPLERS.get(measurement, measurement)}: {error.strip().rstrip('.')[:200]}"


def _text(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _errors(draws: dict[str, Any]) -> str:
    if "mean" not in draws:
        return "–"
    return f"{draws['mean']['errors']:.1f}, {draws['sd']['errors']:.1f}{_mark(draws)}"


def _mark(draws: dict[str, Any]) -> str:
    return " †" if "rhat" in draws and not is_settled(draws) else ""


def _regions(calls: dict[str, Any]) -> str:
    if "kernels" not in calls:
        return "–"
    regions = sum(line.startswith("region_") for line in calls["kernels"])
    return f"{regions}, alone" if calls["tape"] else str(regions)


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def _ratios(pairs: Iterable[Any]) -> list[float]:
    return [x for x in (_ratio(*pair) for pair in pairs) if x is not None]


def _middle(ratios: list[float]) -> float | None:
    return median(ratios) if ratios else None


def _mean(ratios: list[float]) -> float | None:
    return exp(fmean(map(log, ratios))) if ratios else None
