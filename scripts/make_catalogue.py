"""Write the pages of the catalogue, docs/reference/catalogue/, from its entries.

    python -m scripts.make_catalogue                  # the pages
    python -m scripts.make_catalogue --measure        # first measure the errors of all functions
    python -m scripts.make_catalogue --measure Gumbel # or those of `entries(["Gumbel"])`

The errors are those of `scripts.measure_catalogue`.
"""

import argparse
import re
import sys
from itertools import groupby
from pathlib import Path

from pytensor_onnx.catalogue.compile_entry import Compiled, compile_entry
from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE
from pytensor_onnx.catalogue.library import DTYPES, FAMILIES, entries, library_of
from scripts.measure_catalogue import REASONS, larger_errors, measure

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.page_parts import write_part  # noqa: E402

FOLDER = ROOT / "docs" / "reference" / "catalogue"


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
    write_part(FOLDER / "index.md", "larger errors", _larger())
    print(text)


def _larger() -> str:
    """Return a list of functions with larger errors, and of their reasons."""
    lines = []
    for (subject, dtype), pairs in groupby(larger_errors(), lambda x: (x[0].subject, x[1])):
        told = (
            f"`{entry.name}` ({entry.largest_error(dtype).split(' of ')[0].split(',')[0]})"
            for entry, _ in pairs
        )
        lines.append(f"- in {dtype} {', '.join(told)}: {REASONS[subject]}.")
    return "\n".join([*lines, ""])


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
    parser.add_argument("--measure", nargs="*", metavar="NAME")
    names = parser.parse_args().measure
    if names is not None:
        measure(names)
    write()


if __name__ == "__main__":
    main()
