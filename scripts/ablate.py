"""Switch off one rule after the other, and print which models of users change.

python scripts/ablate.py [--rule NAME ...] [--model NAME ...] [--no-time] [--write]

A rule that never fires on a model cannot change it; such pairs are not exported again, except for
exclusions. Of each pair: whether results change, the nodes, and the time of a call, with the rule
switched off over with it.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import pytensor_onnx.running.linker  # noqa: E402, F401  (declares the rewrites)
from benchmarks.timing import environment, interleaved  # noqa: E402
from benchmarks.user_models import MODELS, UserModel  # noqa: E402
from pytensor_onnx import ONNXProgram, pipeline  # noqa: E402, F401  (declares the passes)
from pytensor_onnx.graph.traversal import nodes_of_model  # noqa: E402
from pytensor_onnx.rules import Rule, ledger, recorded, without  # noqa: E402

TARGET = ROOT / "benchmarks/ablation.md"
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


@dataclass(frozen=True)
class Effect:
    """Results, nodes and time of a model with a rule switched off."""

    rule: str
    model: str
    results: str
    nodes: int
    nodes_before: int
    time: float | None = None

    @property
    def counts(self) -> bool:
        """Whether something changes."""
        return bool(self.results) or self.nodes != self.nodes_before or self.time is not None


@dataclass
class Base:
    """A model with all rules."""

    model: UserModel
    program: ONNXProgram
    file: bytes
    results: list[np.ndarray]
    nodes: int
    fired: set[str]


def base_of(model: UserModel) -> Base:
    """Export a model with all rules, and note which of them change it."""
    model.export()
    with recorded() as fired:
        program = model.export()
    results, file = results_of(program, model), program.proto.SerializeToString()
    return Base(model, program, file, results, nodes_of(program), set(fired))


def results_of(program: ONNXProgram, model: UserModel) -> list[np.ndarray]:
    """Return the results of a model, as arrays."""
    found = program(*model.values)
    results = found if isinstance(found, list | tuple) else [found]
    return [np.asarray(getattr(result, "data", result)) for result in results]


def nodes_of(program: ONNXProgram) -> int:
    """Return the number of nodes of a model, its functions and its bodies."""
    return sum(1 for _ in nodes_of_model(program.model))


def effect(rule: Rule, name: str, base: Base, timed: bool) -> Effect:
    """Export and run a model with a rule switched off, and return the effect."""
    try:
        with without(rule.name):
            program = base.model.export()
        if program.proto.SerializeToString() == base.file:
            return Effect(rule.name, name, "", base.nodes, base.nodes)
        results = difference(results_of(program, base.model), base.results)
    except Exception as error:
        return Effect(rule.name, name, f"fails: {type(error).__name__}", 0, base.nodes)
    ratio = time_ratio(program, base) if timed else None
    return Effect(rule.name, name, results, nodes_of(program), base.nodes, ratio)


def difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """Describe the largest difference of results, empty within rounding."""
    worst, finite = 0.0, [b[np.isfinite(b)] for b in expected if b.dtype.kind == "f"]
    # Gradients that are zero but for rounding, as those of biases of keys, have no digits.
    least = max((1e-4 * float(np.abs(b).max(initial=0)) for b in finite), default=0.0)
    for a, b in zip(found, expected, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return "other types"
        if a.dtype.kind != "f":
            if a.dtype.kind in "iub" and not np.array_equal(a, b):
                return "other values"
            continue
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return "not finite"
        scale = np.max(np.abs(b), where=np.isfinite(b), initial=max(least, 1e-300))
        error = np.max(np.abs(a - b), where=np.isfinite(b), initial=0.0) / scale
        worst = max(worst, error if error > TOLERANCE.get(str(a.dtype), 1e-2) else 0.0)
    return f"differ by {worst:.0e}" if worst else ""


def time_ratio(program: ONNXProgram, base: Base) -> float:
    """Return the time of a call without the rule over the time with it."""
    values = base.model.values
    calls = {"off": lambda: program(*values), "on": lambda: base.program(*values)}
    best = interleaved(calls, rounds=15, seconds=0.003)
    return best["off"] / best["on"]


def table(effects: Iterable[Effect], silent: Iterable[str], unused: Iterable[str]) -> str:
    """Return the page of an ablation."""
    rules = ledger()
    lines = ["# Ablation", "", "Each rule switched off in turn, on the models of users in"]
    lines += ["`benchmarks/user_models.py`: which results change, the nodes and the time of a call"]
    lines += ["without the rule over those with it. Made by `scripts/ablate.py`.", ""]
    lines += [environment(), "", "| rule | purpose | model | results | nodes | time |"]
    lines += ["|---|---|---|---|---:|---:|"]
    for e in effects:
        ratio = "" if e.time is None else f"{e.time:.2f}"
        nodes = f"{e.nodes / e.nodes_before:.2f}" if e.nodes else ""
        purpose = rules[e.rule].purpose
        lines.append(f"| `{e.rule}` | {purpose} | {e.model} | {e.results} | {nodes} | {ratio} |")
    for title, names in (
        ("Rules that fire without a change of any result or number of nodes", silent),
        ("Rules that never fire on these models", unused),
    ):
        lines += ["", f"## {title}", ""]
        lines += [f"- `{n}` ({rules[n].kind}, {rules[n].purpose})" for n in names]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the effects of the rules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rule", action="append", help="a rule to switch off; default: all")
    parser.add_argument("--model", action="append", help="a model of users; default: all")
    parser.add_argument("--no-time", action="store_true", help="measure no times")
    parser.add_argument("--write", action="store_true", help="write benchmarks/ablation.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    started = time.perf_counter()
    bases = {name: base_of(MODELS[name]()) for name in arguments.model or MODELS}
    print(f"{len(bases)} models, {time.perf_counter() - started:.0f} s", flush=True)
    rules = ledger()
    effects: list[Effect] = []
    silent, unused = [], []
    for name in arguments.rule or rules:
        rule = rules[name]
        concerned = [m for m, b in bases.items() if name in b.fired or rule.kind == "exclusion"]
        found = [effect(rule, m, bases[m], not arguments.no_time) for m in concerned]
        changed = [e for e in found if e.counts]
        for e in changed:
            print(_line(e), flush=True)
        effects += changed
        if not changed:
            (silent if concerned and rule.kind != "exclusion" else unused).append(name)
    print("fire without effect:", ", ".join(silent))
    print("no effect:", ", ".join(unused))
    print(f"{time.perf_counter() - started:.0f} s")
    if arguments.write:
        TARGET.write_text(table(effects, silent, unused), encoding="utf-8")


def _line(e: Any) -> str:
    ratio = "" if e.time is None else f" time {e.time:.2f}"
    return f"{e.rule:36} {e.model:36} nodes {e.nodes_before} -> {e.nodes}{ratio} {e.results}"


if __name__ == "__main__":
    main()
