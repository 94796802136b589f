"""Make the coverage table from the registry and from recorded tests.

    python scripts/make_coverage.py

Runs the tests of the lowerings and of the functions with recording on, then writes the table that
`pytensor-onnx ops` prints and the page in the docs. Fails, and writes nothing, where an Op that a
lowering is registered for has no test that compares it with PyTensor.
"""

import argparse
import ast
import importlib
import inspect
import json
import math
import os
import pkgutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = tuple(
    f"tests/{name}"
    for name in (
        "dispatch",
        "encodings",
        "functions",
        "rewriting",
        "nn",
        "ops",
        "ml",
        "test_xtensor.py",
    )
)
PACKAGES = ("pytensor", "pytensor_onnx")
RECORDING = "PYTENSOR_ONNX_COVERAGE"

# Why Ops are not in the table of those covered or not: by class, then by the start of its module.
BASE = "base class of the Ops below it"
INTERNAL = "made by another backend's rewrites, after those for ONNX"
PART = "a part of definitions, which their tests compare"
EXCLUDED = {
    **dict.fromkeys(
        (
            *("ScalarOp", "UnaryScalarOp", "BinaryScalarOp", "ScalarInnerGraphOp"),
            *("LogicalComparison", "FixedLogicalComparison", "UnaryBitOp", "BinaryBitOp"),
            *("FixedOpCAReduce", "NonZeroDimsCAReduce", "MaxAndMinCAReduce", "TypeCastingOp"),
            *("SymbolicOp", "TensorSymbolicOp", "FusibleSymbolicOp", "FinalizedOpFromGraph"),
            *("RNGConsumerOp", "AbstractRNGConstructor", "ScipyRandomVariable", "SolveBase"),
            *("BaseBlockDiagonal", "BaseBLAS", "GemmRelated", "XOp", "XTypeCastOp", "COp"),
            *("ExternalCOp", "OpenMPOp", "_NoPythonOp", "_NoPythonCOp", "Stack"),
            *("ScipyWrapperOp", "ScipyScalarWrapperOp", "ScipyVectorWrapperOp", "NetworkOp"),
            *("Pool", "GlobalPool", "Convolution", "KeepsShape", "Draw", "Sampler", "_Between"),
            "RecurrentOp",
            *("__ComparisonOpSparseDense", "__ComparisonOpSparseSparse", "RandomVariable"),
        ),
        BASE,
    ),
    **dict.fromkeys(
        (
            *("FusedElemwise", "BlockwiseWithCoreShape", "OpWithCoreShape", "CGemv", "JAXOp"),
            *("RandomVariableWithCoreShape", "ScalarCAReduce", "ScalarSubtensor"),
            *("ScalarizedElemwise", "ScalarizedJoin"),
        ),
        INTERNAL,
    ),
    "FusibleSymbolicOpDerivative": "a gradient, which its inner graph replaces",
    "Spawn": "splits generators, whose draws are compared",
    "OutputGuard": "of PyTensor's DebugMode",
    "RoundAtRandom": "rounds in the verification of exports",
    "ElemwiseOfMany": "computes in the verification of exports",
    "Output": "a mark of graphs, not an operation",
    "PdbBreakpoint": "stops in the debugger",
    "StandardGraph": PART,
}
EXCLUDED_MODULES = {
    "pytensor.sparse.rewriting": INTERNAL,
    "pytensor_onnx.ops.encoded": "between a value and its tensors, before an Op that is refused",
    "pytensor_onnx.functions": PART,
    "pytensor_onnx.ops.linalg.complex_matrices": PART,
    "pytensor_onnx.ops.complex": PART,
    "pytensor_onnx.ops.signal": PART,
    "pytensor_onnx.ops.linalg.matrix_parts": PART,
    "pytensor_onnx.ops.special.precise": PART,
    "pytensor_onnx.ops.sparse": PART,
    "pytensor_onnx.pymc": "a part of composed steps, which are compared with whole ones",
    "pytensor_onnx.ops.random.draws": "a part of distributions, compared with SciPy's",
}
MADE = ("pytensor_onnx.functions", "pytensor_onnx.ops.linalg.complex_matrices")
"""Modules of Ops that no graph of a user has."""

UNCOVERED_MODULES = {
    "pytensor.typed_list": "typed lists: no counterpart among tensors",
    "pytensor.xtensor": "named dimensions: PyTensor makes them operations on arrays first",
    "pytensor.tensor.random": "random: generators are no tensors, and made before the graph runs",
    "pytensor.tensor.blas": "C only",
}
# Scalar Ops and those of linear algebra have a reason each, so that none is left out unnoticed.
UNCOVERED = {
    "Complex": "made a pair of real parts before the conversion",
    "FromFunctionOp": "a Python function: it cannot be converted",
    "MakeSlice": "slices are no tensors: lowered with what they index",
    "UndefinedGrad": "stands for a gradient that does not exist",
    "SpecifyAssumptions": "removed by PyTensor's rewrites",
}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, help="folder of recorded tests, to run none")
    parser.add_argument("pytest", nargs="*", help="further arguments for pytest")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = arguments.records or run_tests(Path(folder), arguments.pytest)
        recorded = merge(json.loads(path.read_text()) for path in sorted(records.glob("*.json")))
    content, missing = make_table(recorded)
    if missing:
        print("registered, but compared with PyTensor by no test:")
        print("\n".join(f"- {name}" for name in missing))
        return 1
    write_json(content, ROOT / "src/pytensor_onnx/coverage.json")
    (ROOT / "docs/reference/coverage.md").write_text(page(content), encoding="utf-8")
    counts = ", ".join(f"{len(content[part])} {part}" for part in content)
    print(f"wrote src/pytensor_onnx/coverage.json and docs/reference/coverage.md: {counts}")
    return 0


def run_tests(folder: Path, further: Iterable[str]) -> Path:
    """Run the tests with recording on; they must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", *TESTS, *further]
    environment = os.environ | {RECORDING: str(folder)}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
        sys.exit("the tests do not pass: nothing is written")
    return folder


def merge(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Unite what several processes recorded."""
    merged: dict[str, dict[str, Any]] = {}
    for record in records:
        for name, entry in record.items():
            known = merged.setdefault(name, entry)
            for key, values in entry.items():
                if isinstance(values, list):
                    known[key] = sorted({*known[key], *values})
                else:
                    known[key] = {
                        d: max(values.get(d, 0), known[key].get(d, 0))
                        for d in {*values, *known[key]}
                    }
    return merged


def make_table(recorded: dict[str, dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return the table, and the registered classes that no test compares."""
    from pytensor_onnx.cli.coverage import REWRITTEN, name_of
    from pytensor_onnx.cli.lowered_ops import is_lowered, registered_ops

    classes = {name_of(c): c for c in op_classes()}
    missing = sorted(
        name_of(c)
        for c in registered_ops()
        if _by_module(EXCLUDED_MODULES, name_of(c)) is None
        and not any(name in classes and issubclass(classes[name], c) for name in recorded)
    )
    covered, uncovered, excluded = {}, {}, {}
    for name, op_type in sorted(classes.items()):
        reason = EXCLUDED.get(op_type.__qualname__) or _by_module(EXCLUDED_MODULES, name)
        entry = recorded.get(name)
        if entry is not None and (is_lowered(op_type) or REWRITTEN in entry["lowering"]):
            covered[name] = finished(op_type, entry)
        elif reason:
            excluded[name] = reason
        elif is_lowered(op_type):
            uncovered[name] = "no test compares it with PyTensor"
        else:
            by_class = UNCOVERED.get(op_type.__qualname__)
            uncovered[name] = by_class or _by_module(UNCOVERED_MODULES, name) or "not yet"
    return {"covered": covered, "uncovered": uncovered, "excluded": excluded}, missing


def op_classes() -> set[type]:
    """Return the Op classes of PyTensor, those of parts that need optional packages aside.

    The Ops of this project are included, except for Ops made by `operation`.
    """
    from pytensor.graph.op import Op

    skipped = ("pytensor.bin", "pytensor.misc", "pytensor.ipython", "pytensor.link.jax.dispatch")
    for name in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if module.name.startswith(skipped):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    importlib.import_module(module.name)
                except ImportError:
                    continue
    packages = tuple(f"{name}." for name in PACKAGES)
    return {
        c
        for c in _subclasses(Op)
        if c.__module__.startswith(packages) and not c.__module__.startswith(skipped)
        if not c.__module__.startswith(MADE)
    }


def _subclasses(cls: type) -> Iterator[type]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _by_module(reasons: dict[str, str], name: str) -> str | None:
    fitting = [module for module in reasons if name.startswith(module)]
    return reasons[max(fitting, key=len)] if fitting else None


def finished(op_type: type, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the row of an Op: errors rounded up, limits added."""
    order = [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
    order = ["bool", *order, "float16", "float32", "float64"]
    return {
        "dtypes": sorted((d for d in entry["dtypes"] if d in order), key=order.index),
        "ranks": entry["ranks"],
        "shapes": entry["shapes"],
        "lowering": lowerings_of(entry["lowering"]),
        "error": {d: rounded_up(e) for d, e in sorted(entry["error"].items())},
        "limits": limits_of(op_type),
        "tests": [test for test in entry["tests"] if test],
    }


def lowerings_of(recorded: list[str]) -> list[str]:
    """Return the lowerings that say most: what left a node, else that there was none to leave."""
    from pytensor_onnx.cli.coverage import NO_OPERATOR, REWRITTEN

    nodes = [how for how in recorded if how not in (REWRITTEN, NO_OPERATOR)]
    return nodes or recorded


def rounded_up(error: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten, so that the table does not change every time."""
    if error == 0:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(error))
    factor = next(f for f in (1, 2, 5, 10) if error <= f * scale * (1 + 1e-9))
    return float(f"{factor * scale:.0e}")


def limits_of(op_type: type) -> list[str]:
    """Return the reasons for which the lowering of an Op refuses cases, read from its code."""
    from pytensor_onnx.dispatch import onnx_funcify

    return sorted(set(_reasons(onnx_funcify.dispatch(op_type), set())))


def _reasons(function: Any, seen: set[Any]) -> Iterator[str]:
    """Yield the reasons given in a function and in those of its module that it calls."""
    if function in seen or not inspect.isfunction(function) or function.__name__ == "onnx_funcify":
        return
    seen.add(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            other = getattr(sys.modules[function.__module__], node.id, None)
            if inspect.isfunction(other) and other.__module__ == function.__module__:
                yield from _reasons(other, seen)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "unsupported":
            reason = node.args[0]
            # Reasons with values in them are of one node, or of a lowering of many Ops.
            if isinstance(reason, ast.Constant):
                yield str(reason.value)


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write the table with one line for each Op."""
    lines = []
    for part, rows in content.items():
        entries = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}"
            for name, row in rows.items()
        )
        lines.append(f" {json.dumps(part)}: {{\n{entries}\n }}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


FAMILIES = {
    "Elementwise and special functions": (
        *("pytensor.scalar.", "pytensor.tensor.elemwise."),
        *("pytensor_onnx.ops.elementwise.", "pytensor_onnx.ops.special."),
    ),
    "Reductions, products and sorting": (
        *("pytensor.tensor.math.", "pytensor.tensor.sort.", "pytensor.tensor.extra_ops."),
        *("pytensor.tensor.blas.", "pytensor.tensor.einsum.", "pytensor.tensor.special."),
        *(
            "pytensor_onnx.ops.products.",
            "pytensor_onnx.ops.reductions.",
            "pytensor_onnx.ops.sorting.",
        ),
    ),
    "Linear algebra": (
        *("pytensor.tensor.linalg.", "pytensor.tensor.blockwise."),
        "pytensor_onnx.ops.linalg.",
    ),
    "Shapes and indices": (
        *("pytensor.tensor.basic.", "pytensor.tensor.reshape.", "pytensor.tensor.shape."),
        *("pytensor.tensor.subtensor.", "pytensor.tensor.pad."),
    ),
    "Random numbers": ("pytensor.tensor.random.", "pytensor_onnx.ops.random."),
    "Networks": ("pytensor_onnx.ops.networks.",),
    "Loops, conditions and optimization": (
        *("pytensor.scan.", "pytensor.conditional.", "pytensor.raise_op."),
        *("pytensor.tensor.optimize.", "pytensor_onnx.ops.loops."),
    ),
    "Signals": (
        *("pytensor.tensor.fft.", "pytensor.tensor.fourier.", "pytensor.tensor.signal."),
        "pytensor_onnx.ops.signal.",
    ),
    "Sparse matrices": ("pytensor.sparse.", "pytensor_onnx.ops.sparse."),
}
"""Families of operations, by the beginnings of the names of their Ops."""

OTHERS, BAR = "Others", "\\|"


def _family(name: str) -> str:
    """Return the family of an Op."""
    return next((family for family, starts in FAMILIES.items() if name.startswith(starts)), OTHERS)


def page(content: dict[str, Any]) -> str:
    """Return the page of the docs."""
    from pytensor_onnx.cli.coverage import cells, row_of

    covered = content["covered"]
    lines = [
        "# Coverage",
        "",
        "Made by `scripts/make_coverage.py` from the registry of lowerings and from the tests: an "
        "operation is in these tables only if a test compares it with PyTensor's own Python "
        "implementation (random draws: with SciPy's distribution), and the script fails "
        "where a lowering has none. `pytensor-onnx ops` prints the same.",
        "",
        f"{len(covered)} operations of PyTensor and of `pytensor_onnx.nn` are covered, "
        f"{len(content['uncovered'])} are not.",
        "",
        "- **dtypes**, **ranks** and **shapes** are those of the inputs that were compared.",
        "- **in ONNX**: one operator, a model-local function, several operators, or none of its "
        "own where the value is the input itself or a constant.",
        "- **error**: the largest relative error measured on graphs of this operation alone, "
        "beyond the absolute error that a test allows where numbers cancel.",
        "- **refused**: cases that end in an error.",
        "",
        "<!-- filter -->",
        "",
    ]
    by_family = defaultdict(list)
    for name, row in covered.items():
        module, _, op = name.rpartition(".")
        by_family[_family(name)].append((op, module, row))
    for family in [*FAMILIES, OTHERS]:
        lines += [
            f"## {family}",
            "",
            "| Op | in ONNX | error | dtypes | ranks | shapes | refused | module |",
        ]
        lines += ["|---|---|---|---|---|---|---|---|"]
        for op, module, row in sorted(by_family[family], key=lambda x: (x[0].lower(), x[1])):
            dtypes, ranks, shapes, form, error, refused = cells(row_of(op, row))
            texts = (op, form, error, dtypes, ranks, shapes, refused, module)
            lines.append(f"| {' | '.join(cell.replace('|', BAR) for cell in texts)} |")
        lines.append("")
    lines += ["## Not covered", "", "| reason | Ops |", "|---|---|"]
    lines += [f"| {reason} | {ops} |" for reason, ops in _by_reason(content["uncovered"])]
    lines += ["", "## Not in any graph that is exported", "", "| reason | classes |", "|---|---|"]
    lines += [f"| {reason} | {ops} |" for reason, ops in _by_reason(content["excluded"])]
    return "\n".join(lines) + "\n"


def _by_reason(reasons: dict[str, str]) -> list[tuple[str, str]]:
    grouped = defaultdict(list)
    for name, reason in reasons.items():
        grouped[reason].append(name.rpartition(".")[2].replace("_", "\\_"))
    return [(reason, ", ".join(names)) for reason, names in sorted(grouped.items())]


if __name__ == "__main__":
    sys.exit(main())
