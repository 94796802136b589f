"""Write the table of PyMC's distributions in docs/how-to/pymc.md.

Run: python scripts/make_pymc_table.py [NAME ...]

With names, only the rows of these distributions are measured again.
"""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.page_parts import read_part, write_part  # noqa: E402
from tests.pymc.distributions import (  # noqa: E402
    CASES,
    NO_DENSITY,
    PARTLY,
    UNSUPPORTED,
    Case,
)
from tests.pymc.measuring import KINDS, Graphs, largest_error, run  # noqa: E402

PAGE = ROOT / "docs" / "how-to" / "pymc.md"


def row(name: str, cases: Sequence[Case]) -> str:
    """Return the largest error of each kind over the cases of a distribution."""
    graphs = [Graphs(case) for case in cases]
    errors: dict[str, float] = {}
    for one, (found, expected) in zip(graphs, run(graphs), strict=True):
        for (kind, _), a, b in zip(one.outputs, found, expected, strict=True):
            errors[kind] = max(errors.get(kind, 0.0), largest_error(a, b))
    entries = [_text(errors[kind]) if kind in errors else "–" for kind in KINDS]
    print(name, *entries, flush=True)
    return f"| {name} | {' | '.join(entries)} |"


def _text(error: float) -> str:
    return f"{error:.0e}" if error > 1e-16 else "0"


def table(rows: dict[str, str]) -> list[str]:
    head = ["| distribution | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    reasons = {**UNSUPPORTED, **NO_DENSITY, **PARTLY}
    others = [f"| {name} | {reasons[name]} |" for name in sorted(reasons)]
    rest = ["", "| without a density here | reason |", "|---|---|", *others]
    return [*head, *(rows[name] for name in sorted(CASES)), *rest]


def main(names: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    written = read_part(PAGE, "distributions")
    rows = {line.split()[1]: line for line in written.splitlines() if line.startswith("| ")}
    rows.update({name: row(name, CASES[name]) for name in names or CASES})
    lines = "\n".join(table(rows))
    write_part(PAGE, "distributions", f"\n{lines}\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
