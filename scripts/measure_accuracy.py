"""Measure the special functions in ONNX Runtime: ``python -m scripts.measure_accuracy Log1mexp``.

Prints the table of errors by function, region and dtype as markdown, and writes it to
``docs/reference/accuracy.md``. The regions are those of the tests, with many more points.
"""

import argparse
import re
from pathlib import Path

import onnxruntime

from tests.functions.special.accuracy import DTYPES, cases, compile_definition, errors_of

TARGET = Path(__file__).parents[1] / "docs/reference/accuracy.md"
HEADER = "|---|---|---|---|---|---|\n"
"""The line of the page before the rows; the text above the table is written by hand."""


def rows_of(name: str, size: int) -> list[str]:
    """Measure a function, and the one of SciPy."""
    case = cases()[name]
    rows = []
    for region in case.regions:
        cells = []
        for reference in (False, True):
            for dtype in DTYPES:
                run = case.scipy if reference else compile_definition(name, dtype)
                if dtype not in region.dtypes or run is None:
                    cells.append("")
                    continue
                errors = errors_of(name, region, size, dtype, run)
                cells.append(f"{errors.max():.3g} / {errors.mean():.2g}")
        rows.append(f"| {name} | {region.label} | {' | '.join(cells)} |")
    return rows


def rows_before() -> dict[str, list[str]]:
    """Return the rows of the table as it is, by function."""
    found: dict[str, list[str]] = {}
    for line in TARGET.read_text().splitlines() if TARGET.exists() else []:
        if line.startswith("| "):
            found.setdefault(line.split("|")[1].strip(), []).append(line)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions to measure again (default: all)")
    parser.add_argument("--size", type=int, default=2_000, help="points for each row and dtype")
    arguments = parser.parse_args()
    names, size, before = arguments.names or list(cases()), arguments.size, rows_before()
    # The rows of new functions are the last ones.
    order = [x for x in before if x in cases()] + [x for x in cases() if x not in before]
    text = TARGET.read_text(encoding="utf-8").partition(HEADER)[0] + HEADER
    text = re.sub(r"at least \d+ random points", f"at least {size} random points", text)
    text = re.sub(r"Runtime [\d.]+, x86", f"Runtime {onnxruntime.__version__}, x86", text)
    for name in order:
        rows = rows_of(name, size) if name in names else before.get(name, [])
        print("\n".join(rows), flush=True)
        text += "".join(f"{row}\n" for row in rows)
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
