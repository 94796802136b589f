"""Write the pages of the catalogue, docs/reference/catalogue/, from its entries.

    python -m scripts.make_catalogue            # the pages
    python -m scripts.make_catalogue --measure  # first measure the errors beside SciPy

Errors of special functions are those of docs/reference/accuracy.md, against mpmath.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import scipy.stats as st

from pytensor_onnx.catalogue.compile_entry import Compiled, compile_entry
from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE, Distribution
from pytensor_onnx.catalogue.library import DTYPES, FAMILIES, entries, library_of, model_of
from pytensor_onnx.catalogue.vectors import examples

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.page_parts import write_part  # noqa: E402

FOLDER = ROOT / "docs" / "reference" / "catalogue"
ERRORS = ROOT / "scripts" / "catalogue_errors.json"
POINTS = 200


def in_scipy(distribution: Distribution, parameters: list[np.ndarray]) -> object:
    """Return the frozen distribution of SciPy."""
    names = {p.name: x for p, x in zip(distribution.parameters, parameters, strict=True)}
    return eval(f"st.{distribution.scipy}", {"st": st, "exp": np.exp, **names})


def session_of(one: Compiled, ranks: list[int]) -> onnxruntime.InferenceSession:
    """Return a session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model_of(one, ranks).SerializeToString(), options)


def errors_of(distribution: Distribution) -> Iterator[tuple[str, str, float]]:
    """Yield the name, the dtype and the largest error of the functions of a distribution."""
    by_name = {e.name: e for e in entries([distribution.name])}
    _, *parameters = examples(by_name[f"{distribution.name}LogProb"], "float32")
    # Numbers of float32, so that both dtypes have the same operands.
    given = [x.astype("float64") if x.dtype.kind == "f" else x for x in parameters]
    frozen = in_scipy(distribution, given)
    p = np.linspace(1e-4, 1 - 1e-4, POINTS)[:, None].astype("float32").astype("float64")
    values = frozen.ppf(p)
    if distribution.is_discrete:
        values = values.astype("int64")
    else:
        values = values.astype("float32").astype("float64")
    if distribution.name == "VonMises":
        values = np.clip(values, -3.14, 3.14)
    density = frozen.logpmf if distribution.is_discrete else frozen.logpdf
    functions = {
        "LogProb": (density, values),
        "Cdf": (frozen.cdf, values),
        "LogCdf": (frozen.logcdf, values),
        "LogSurvival": (frozen.logsf, values),
        "Icdf": (frozen.ppf, p),
    }
    for suffix, (function, points) in functions.items():
        entry = by_name.get(f"{distribution.name}{suffix}")
        if entry is None:
            continue
        exact = function(points)
        for dtype in DTYPES:
            operands = [
                np.asarray(x, a.dtype_in(dtype))
                for x, a in zip([points, *given], entry.inputs, strict=True)
            ]
            session = session_of(compile_entry(entry, dtype), [x.ndim for x in operands])
            names = [x.name for x in session.get_inputs()]
            (found,) = session.run(None, dict(zip(names, operands, strict=True)))
            with np.errstate(invalid="ignore"):
                error = np.abs(found - exact) / np.maximum(np.abs(exact), 1.0)
            yield entry.name, dtype, float(np.nanmax(error[np.isfinite(exact)], initial=0.0))


def measure(names: list[str]) -> None:
    """Measure the errors of distributions that SciPy has, of all without names."""
    found: dict[str, dict[str, float]] = {}
    if names:
        found |= json.loads(ERRORS.read_text(encoding="utf-8"))
    for distribution in (*CONTINUOUS, *DISCRETE):
        if not distribution.scipy or (names and distribution.name not in names):
            continue
        start = time.perf_counter()
        for name, dtype, error in errors_of(distribution):
            found.setdefault(name, {})[dtype] = float(f"{error:.1e}")
        print(distribution.name, f"{time.perf_counter() - start:.1f} s", flush=True)
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


def page(family: str, made: list[dict[str, Compiled]], errors: dict, in_ulp: dict) -> str:
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
        lines += ["", _facts(one, errors, in_ulp), ""]
    return "\n".join(lines)


def _facts(one: dict[str, Compiled], errors: dict, in_ulp: dict) -> str:
    entry = one["float32"].entry
    counts = [len(one[dtype].function.node) for dtype in DTYPES]
    text = f"{counts[0]} nodes" if counts[0] == counts[1] else f"{counts[0]} and {counts[1]} nodes"
    called = sorted({re.sub(r"_(float|int|uint)\d+.*", "", f.name) for f in one["float32"].called})
    if called:
        text += f", calls {', '.join(f'`{name}`' for name in called)}"
    if entry.name in errors:
        bounds = [f"{errors[entry.name][dtype]:.0e}" for dtype in DTYPES]
        text += f". Largest error: {bounds[0]} in float32, {bounds[1]} in float64"
    for name in entry.accuracy:
        if name in in_ulp:
            bounds = [f"{in_ulp[name][d]:.3g} ulp in {d}" for d in DTYPES if d in in_ulp[name]]
            text += f". Largest error: {', '.join(bounds)}"
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
    errors = json.loads(ERRORS.read_text(encoding="utf-8"))
    in_ulp = ulps()
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
        text = page(family, functions, errors, in_ulp)
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
