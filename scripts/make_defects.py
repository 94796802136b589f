"""Make the page of the docs on the defects of runtimes, from the table in `passes/defects/`.

python scripts/make_defects.py
"""

from pathlib import Path

import onnx_ir as ir

from pytensor_onnx.passes.defects import DEFECTS, ByDefinition, Decomposition, Defect, Guard
from pytensor_onnx.passes.defects.record import EVERY, FLOATS, INTEGERS, ORT

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs/reference/defects.md"
INTRODUCTION = """# Defects of runtimes

Lowerings emit ONNX as the standard defines it. Each defect of a runtime is a record in
`passes/defects/`: the operators, the dtypes, the condition, the replacement of a node, and the
tests that show the defect in the installed runtime. If a newer runtime repairs it, its test fails,
and the record gets the version; models keep the treatment as long as older versions are supported.
This page is made by `scripts/make_defects.py`.

Operators without a kernel in a dtype are not listed: tables of kernels are in `targets/`.
"""
SECTIONS = (
    (
        "Kernels",
        "The legaliser replaces a node by its decomposition. Those marked with * are left out "
        "with `assume_finite=True`.",
        (Decomposition, ByDefinition),
    ),
    (
        "Optimizer",
        "The last pass, `keep_apart`, replaces a node by a form that ONNX Runtime's optimizer "
        "leaves alone.",
        (Guard,),
    ),
    ("Not treated", "Exported models do not meet these, or keep them.", (str,)),
)
GROUPS = {FLOATS: "floats", INTEGERS: "integers"}


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    for title, text, kinds in SECTIONS:
        lines += [f"## {title}", "", text, ""]
        lines += ["| defect | operators | dtypes | targets | what goes wrong | instead | tests |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [row(d) for d in DEFECTS if isinstance(d.treatment, kinds)]
        lines.append("")
    off = [f"- `{d.switched_off}`: {d.name}" for d in DEFECTS if d.switched_off]
    lines += ["## Left out in sessions", "", "Sessions of this package run without these parts of"]
    lines += ["ONNX Runtime's optimizer. Models do not depend on it.", "", *off]
    return "\n".join(lines) + "\n"


def row(defect: Defect) -> str:
    """Return the row of a record."""
    cells = (
        defect.name,
        ", ".join(defect.operators),
        dtypes_of(defect),
        targets_of(defect),
        defect.reason,
        instead_of(defect),
        "<br>".join(f"`{test}`" for test in defect.tests),
    )
    return f"| {' | '.join(cells)} |".replace("^", r"\^")


def dtypes_of(defect: Defect) -> str:
    """Return the dtypes of a record by name."""
    if defect.dtypes is None:
        return "all"
    known = GROUPS.get(defect.dtypes)
    return known or ", ".join(str(d.numpy()) for d in sorted(defect.dtypes, key=_order))


def targets_of(defect: Defect) -> str:
    """Return the targets of a record by name, and the version that repaired it."""
    targets = {EVERY: "all", ORT: "ONNX Runtime"}.get(defect.targets, ", ".join(defect.targets))
    return f"{targets} before {defect.repaired}" if defect.repaired else targets


def instead_of(defect: Defect) -> str:
    """Return the treatment of a defect, as the table shows it."""
    treatment = defect.treatment
    if isinstance(treatment, str):
        return treatment
    if isinstance(treatment, ByDefinition):
        return "its definition"
    form = treatment.form if isinstance(treatment, Decomposition) else treatment.rule
    form = getattr(form, "func", form)
    mark = "*" if isinstance(treatment, Decomposition) and treatment.of_non_finite else ""
    module = form.__module__.removeprefix("pytensor_onnx.passes.")
    return f"`{module}.{form.__name__}`{mark}"


def _order(dtype: ir.DataType) -> tuple[str, int]:
    return dtype.numpy().kind, dtype.itemsize


def main() -> None:
    """Write the page."""
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(DEFECTS)} defects")


if __name__ == "__main__":
    main()
