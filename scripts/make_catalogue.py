"""Write the pages of the catalogue, docs/reference/catalogue/, from its entries.

    python -m scripts.make_catalogue            # the pages
    python -m scripts.make_catalogue --measure  # first measure the errors of distributions

All errors are against mpmath; those of special functions are of docs/reference/accuracy.md.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import onnxruntime

from pytensor_onnx.catalogue.compile_entry import Compiled, compile_entry
from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE, Distribution
from pytensor_onnx.catalogue.entry import Entry
from pytensor_onnx.catalogue.library import DTYPES, FAMILIES, entries, library_of, model_of
from pytensor_onnx.catalogue.vectors import examples
from scripts.exact_densities import CONTINUOUS as EXACT, DISCRETE as DENSITIES
from scripts.exact_special import EXACT as SPECIAL

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.page_parts import write_part  # noqa: E402

FOLDER = ROOT / "docs" / "reference" / "catalogue"
ERRORS = ROOT / "src" / "pytensor_onnx" / "catalogue" / "errors.json"
UNIT = ("LogitNormal", "Beta", "Kumaraswamy")
PROBABILITIES = (1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.99, 0.9999)


def session_of(one: Compiled, ranks: list[int]) -> onnxruntime.InferenceSession:
    """Return a session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model_of(one, ranks).SerializeToString(), options)


def results_of(entry: Entry, dtype: str, operands: list[np.ndarray]) -> np.ndarray:
    """Return the result of a function in ONNX Runtime."""
    given = [np.asarray(x, a.dtype_in(dtype)) for x, a in zip(operands, entry.inputs, strict=True)]
    session = session_of(compile_entry(entry, dtype), [x.ndim for x in given])
    names = [x.name for x in session.get_inputs()]
    return session.run(None, dict(zip(names, given, strict=True)))[0]


def exact_tails(
    distribution: Distribution, points: np.ndarray, parameters: list[Any]
) -> list[tuple[Any, Any, Any]]:
    """Return the density and both tails at increasing points, in mpmath."""
    given = [mp.mpf(float(x)) for x in parameters]
    if distribution.is_discrete:
        pmf, first = DENSITIES[distribution.name]
        masses = [pmf(k, *given) for k in range(first(*given), int(points[-1]) + 1)]
        offset = first(*given)
        sums = [mp.fsum(masses[: int(k) - offset + 1]) for k in points]
        return [(masses[int(k) - offset], s, 1 - s) for k, s in zip(points, sums, strict=True)]
    pdf, support = EXACT[distribution.name]
    low, high = support(*given)
    edges = [low, *(mp.mpf(float(x)) for x in points), high]
    parts = []
    for a, b in pairwise(edges):
        inner = sorted({k for k in given if a < k < b})
        parts.append(mp.quad(lambda t: _finite(pdf, t, given), [a, *inner, b]))
    lower = [mp.fsum(parts[: i + 1]) for i in range(len(points))]
    upper = [mp.fsum(parts[i + 1 :]) for i in range(len(points))]
    whole = mp.fsum(parts)
    if abs(whole - 1) > 1e-17:
        raise ValueError(f"the density of {distribution.name} has the integral {whole}")
    return [(pdf(x, *given), low, up) for x, low, up in zip(edges[1:-1], lower, upper, strict=True)]


def _finite(pdf: Any, point: Any, parameters: list[Any]) -> Any:
    """Return a density, zero where a point is rounded to a pole."""
    try:
        return pdf(point, *parameters)
    except ZeroDivisionError:
        return mp.mpf(0)


def errors_of(distribution: Distribution) -> Iterator[tuple[str, str, float]]:
    """Yield the name, the dtype and the largest error of the functions of a distribution."""
    by_name = {e.name: e for e in entries([distribution.name])}
    _, *parameters = examples(by_name[f"{distribution.name}LogProb"], "float32")
    # Numbers of float32, so that both dtypes have the same operands.
    given = [x.astype("float64") if x.dtype.kind == "f" else x for x in parameters]
    p = np.array(PROBABILITIES, "float32").astype("float64")[:, None]
    icdf = by_name[f"{distribution.name}Icdf"]
    values = results_of(icdf, "float64", [p, *given])
    if not distribution.is_discrete:
        values = values.astype("float32").astype("float64")
    columns = [
        exact_tails(distribution, np.sort(values[:, i]), [x[i] for x in given])
        for i in range(values.shape[1])
    ]
    exact = {
        "LogProb": [[mp.log(d) for d, _, _ in column] for column in columns],
        "Cdf": [[low for _, low, _ in column] for column in columns],
        "LogCdf": [[mp.log(low) for _, low, _ in column] for column in columns],
        "LogSurvival": [
            [mp.log(up) if up > 1e-18 else -mp.inf for _, _, up in column] for column in columns
        ],
    }
    for suffix, wanted in exact.items():
        entry = by_name[f"{distribution.name}{suffix}"]
        reference = np.array(wanted, dtype="float64").T
        for dtype in DTYPES:
            found = results_of(entry, dtype, [values, *given])
            with np.errstate(invalid="ignore"):
                error = np.abs(found - reference) / np.maximum(np.abs(reference), 1.0)
            yield entry.name, dtype, float(np.nanmax(error[np.isfinite(reference)], initial=0.0))
    if distribution.is_discrete:
        return
    # A quantile is the value less the surplus of its probability, by the density there.
    surplus = np.array(
        [
            [float((low - mp.mpf(float(q))) / d) for (d, low, _), q in zip(c, p[:, 0], strict=True)]
            for c in columns
        ]
    ).T
    quantiles = values - surplus
    for dtype in DTYPES:
        found = results_of(icdf, dtype, [p, *given])
        error = np.abs(found - quantiles) / np.maximum(np.abs(quantiles), 1.0)
        yield icdf.name, dtype, float(error.max())


def errors_of_special() -> Iterator[tuple[str, float]]:
    """Yield the largest errors of special functions in float32 without float64."""
    by_name = {e.name: e for e in entries(["special"])}
    for name, (function, operands) in SPECIAL.items():
        given = [
            np.asarray(x, a.dtype_in("float32"))
            for x, a in zip(operands, by_name[name].inputs, strict=True)
        ]
        found = results_of(by_name[name], "float32", given)
        rows = zip(*(x.astype("float64") for x in given), strict=True)
        exact = np.array([float(function(*map(mp.mpf, row))) for row in rows])
        yield name, float((np.abs(found - exact) / np.maximum(np.abs(exact), 1.0)).max())


def measure(names: list[str]) -> None:
    """Measure the errors of named distributions; without names, of all and special functions."""
    found = read_errors() if names else measured_special()
    for distribution in (*CONTINUOUS, *DISCRETE):
        if names and distribution.name not in names:
            continue
        start = time.perf_counter()
        # Densities may grow without a bound near one, where their distance to it has few digits.
        with mp.workdps(60 if distribution.name in UNIT else 25):
            for name, dtype, error in errors_of(distribution):
                found.setdefault(name, {})[dtype] = rounded(error)
        print(distribution.name, f"{time.perf_counter() - start:.1f} s", flush=True)
    save_errors(found)


def measured_special() -> dict[str, dict[str, Any]]:
    """Return the errors of special functions, in ulp of the table and in float32 alone."""
    in_ulp = ulps()
    found: dict[str, dict[str, Any]] = {
        e.name: {"ulp": in_ulp[e.name]} for e in entries(["special"]) if e.name in in_ulp
    }
    for name, error in errors_of_special():
        # The table is of bodies that have float64.
        wide = in_ulp.get(name, {}).get("float64")
        ulp = {} if wide is None else {"ulp": {"float64": wide}}
        found[name] = {**ulp, "float32": rounded(error)}
    return found


def rounded(error: float) -> float:
    """Return an error with two digits."""
    return float(f"{error:.1e}")


def read_errors() -> dict[str, dict[str, Any]]:
    """Return the errors of functions, by dtype."""
    return json.loads(ERRORS.read_text(encoding="utf-8"))


def save_errors(found: dict[str, dict[str, Any]]) -> None:
    """Write the errors of functions into the package, for their documentation."""
    lines = [f"{json.dumps(name)}: {json.dumps(errors)}" for name, errors in sorted(found.items())]
    ERRORS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def ulps() -> dict[str, dict[str, float]]:
    """Return the largest errors of special functions in the table of errors."""
    found: dict[str, dict[str, float]] = {}
    text = (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")
    for name, wide, narrow in re.findall(
        r"^\| (\w+) \| [^|]* \| ([^|]*) \| ([^|]*) \|", text, re.M
    ):
        for dtype, cell in (("float64", wide), ("float32", narrow)):
            try:
                error = float(cell.split("/")[0])
            except ValueError:
                continue
            best = found.setdefault(name, {})
            best[dtype] = max(best.get(dtype, 0.0), error)
    return found


def page(family: str, made: list[dict[str, Compiled]]) -> str:
    """Return the page of a family."""
    lines = [f"# {FAMILIES[family]}", ""]
    lines += [
        "Made by `scripts/make_catalogue.py` from the definitions ([decisions](index.md)).",
        "",
    ]
    subject = ""
    for one in made:
        entry = one["float32"].entry
        if entry.subject not in (subject, entry.name):
            subject = entry.subject
            lines += [f"## {subject}", ""]
        level = "###" if entry.subject != entry.name else "##"
        lines += [f"{level} {entry.name}", "", entry.about, ""]
        lines += ["| | name | dtype | shape | |", "|---|---|---|---|---|"]
        for kind, arguments in (("in", entry.inputs), ("out", entry.outputs)):
            lines += [
                f"| {kind} | `{x.name}` | {x.dtype} | `{x.shape}` | {x.about} |" for x in arguments
            ]
        lines += ["", _facts(one), ""]
    return "\n".join(lines)


def _facts(one: dict[str, Compiled]) -> str:
    entry = one["float32"].entry
    counts = [len(one[dtype].function.node) for dtype in DTYPES]
    text = f"{counts[0]} nodes" if counts[0] == counts[1] else f"{counts[0]} and {counts[1]} nodes"
    called = sorted({re.sub(r"_(float|int|uint)\d+.*", "", f.name) for f in one["float32"].called})
    if called:
        text += f", calls {', '.join(f'`{name}`' for name in called)}"
    bounds = {dtype: entry.largest_error(dtype) for dtype in DTYPES}
    if any(bounds.values()):
        told = [f"{bound.split(', ')[0]} in {dtype}" for dtype, bound in bounds.items() if bound]
        text += f". Largest error: {', '.join(told)}"
    return f"{text}."


def parameterisations() -> str:
    """Return the page of parameterisations."""
    lines = [
        "# Parameterisations",
        "",
        "The operands of functions of distributions are PyMC's parameters. Stan and SciPy",
        "(`scipy.stats`) have others for some distributions; `tests/catalogue` checks SciPy's.",
        "",
        "| catalogue and PyMC | Stan | SciPy |",
        "|---|---|---|",
    ]
    for x in (*CONTINUOUS, *DISCRETE):
        names = ", ".join(p.name for p in x.parameters)
        lines.append(f"| {x.name}({names}) | {_code(x.stan)} | {_code(x.scipy)} |")
    lines += ["", "## Names and signatures", "", "In both domains:", "", "```text"]
    lines += [entry.signature for entry in entries()]
    return "\n".join([*lines, "```", ""])


def _code(text: str) -> str:
    return f"`{text}`" if text else "–"


def write() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    made: dict[str, list[dict[str, Compiled]]] = {}
    every: list[Compiled] = []
    by_name: dict[str, dict[str, Compiled]] = {}
    for entry in entries():
        one = {dtype: compile_entry(entry, dtype) for dtype in DTYPES}
        made.setdefault(entry.family, []).append(one)
        every += one.values()
        by_name[entry.name] = one
    for family, functions in made.items():
        text = page(family, functions)
        (FOLDER / f"{family}.md").write_text(text, encoding="utf-8")
    (FOLDER / "parameterisations.md").write_text(parameterisations(), encoding="utf-8")
    library = library_of(every)
    rows = [f"| [{FAMILIES[family]}]({family}.md) | {len(x)} |" for family, x in made.items()]
    nodes = sum(len(f.node) for f in library.functions)
    text = (
        f"{len(library.functions)} functions with the functions that they call, {nodes:,} nodes, "
        f"{library.ByteSize() / 1e6:.1f} MB"
    )
    rows += [f"| both dtypes: {text} | {len(every)} |", ""]
    table = "\n".join(["| page | functions |", "|---|---:|", *rows])
    write_part(FOLDER / "index.md", "families", table)
    write_part(FOLDER / "index.md", "figures", _figures(by_name))
    print(text)


def _figures(by_name: dict[str, dict[str, Compiled]]) -> str:
    """Return a table of nodes in bodies by dtype, and of constants among them."""
    lines = ["| | float32 | float64 | constants in float64 |", "|---|---:|---:|---:|"]
    for name in ("NormalLogProb", "GammaLn", "Erfc", "GammaInc"):
        bodies = [by_name[name][dtype] for dtype in DTYPES]
        functions = [one.called[0] if one.called else one.function for one in bodies]
        constants = sum(node.op_type == "Constant" for node in functions[1].node)
        counts = " | ".join(str(len(f.node)) for f in functions)
        lines.append(f"| `{name}` | {counts} | {constants} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure if asked to, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", nargs="*", metavar="DISTRIBUTION")
    names = parser.parse_args().measure
    if names is not None:
        measure(names)
    write()


if __name__ == "__main__":
    main()
