"""Make the page of the docs on the rules of the conversion, from the ledger in `rules.py`.

python scripts/make_rules.py
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytensor_onnx.pipeline  # declares the passes
import pytensor_onnx.running.linker  # noqa: F401  (declares the rewrites)
from pytensor_onnx.rules import Family, Rule, ledger

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs/reference/rules.md"
INTRODUCTION = """# Rules

Between PyTensor's graph and the model that runs, rules change the graph: rewrites of PyTensor
graphs, passes over ONNX models, conditions on rewrites of PyTensor (guards), and rewrites of
PyTensor that are left out (exclusions). Each is declared where it is implemented, with its family
of operations, its purpose and the equation that it applies. `scripts/ablate.py` switches off one
after the other, and `benchmarks/ablation.md` shows which models of users change. This page is
made by `scripts/make_rules.py`.

A rule for `speed` or `size` stays as long as it gains a factor of 1.25 in time or nodes on one of
the models, or keeps node counts of models from growing by more than 3 %: `benchmarks/NOTES.md`
names the gain of each. Rules for correctness stay until PyTensor or the runtime is repaired.
"""
SECTIONS = {
    "rewrite": ("Rewrites of PyTensor graphs", "needs"),
    "pass": ("Passes over ONNX models", "needs"),
    "guard": ("Guards: rewrites of PyTensor under a condition", "condition"),
    "exclusion": ("Exclusions: rewrites of PyTensor that are left out", "reason"),
}


def page() -> str:
    """Return the page."""
    rules = list(ledger().values())
    kinds, purposes = Counter(r.kind for r in rules), Counter(r.purpose for r in rules)
    lines = [INTRODUCTION, _counts("kind", kinds), _counts("purpose", purposes)]
    for kind, (title, condition) in SECTIONS.items():
        lines += [f"## {title}", ""]
        lines += [f"| rule | family | purpose | equation | {condition} | ensures | begins at |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [_row(rule) for rule in _ordered(r for r in rules if r.kind == kind)]
        lines.append("")
    return "\n".join(lines)


def _ordered(rules: Iterable[Rule]) -> list[Rule]:
    families = get_args(Family)
    return sorted(rules, key=lambda rule: (families.index(rule.family), rule.name))


def _counts(field: str, counts: Counter[str]) -> str:
    rows = "\n".join(f"| {name} | {count} |" for name, count in sorted(counts.items()))
    return f"| {field} | rules |\n|---|---:|\n{rows}\n"


def _row(rule: Rule) -> str:
    measured = re.sub(
        r"docs/(project/upstream\.md#[\w-]+)", r"[defect of PyTensor](../\1)", rule.measured
    )
    ensures = "; ".join(filter(None, [rule.ensures, measured]))
    cells = (
        f"`{rule.name}`",
        rule.family,
        rule.purpose,
        f"`{rule.identity}`",
        rule.requires,
        ensures,
        ", ".join(rule.begins_at),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    """Write the page."""
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(ledger())} rules")


if __name__ == "__main__":
    main()
