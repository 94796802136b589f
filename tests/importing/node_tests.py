"""Run ONNX's node tests on imported graphs: right, refused or wrong, and the reasons.

python -m tests.importing.node_tests [--symbolic] [--mode ONNX] [--only NAME] [--every 3]
python -m tests.importing.node_tests --page  # writes the table of docs/how-to/import.md

A test is right if dtype, shape and values of all results are those of the standard, and refused if
`from_onnx` raises an error of this package. Everything else is wrong.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytensor
from pytensor.compile.mode import Mode

from pytensor_onnx import PyTensorONNXError, from_onnx
from tests.page_parts import write_part

_NUMBERS = {
    onnx.TensorProto.BOOL,
    onnx.TensorProto.COMPLEX64,
    onnx.TensorProto.COMPLEX128,
    *(getattr(onnx.TensorProto, f"{k}INT{b}") for k in ("", "U") for b in (8, 16, 32, 64)),
    *(onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE),
}
_DRAWN = ("bernoulli", "randomuniform", "test_training_dropout")
"""Tests of random numbers: only dtypes and shapes are compared."""
PYTHON = Mode(linker="py", optimizer=None)
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"
_OTHERS = ("ai.onnx.ml", "ai.onnx.preview.training")


@dataclass(frozen=True)
class Verdict:
    """The verdict on a test: right, refused or wrong, with the reason."""

    name: str
    verdict: str
    reason: str = ""


@cache
def node_tests() -> list[Any]:
    """Return the node tests whose values PyTensor has arrays for."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return [case for case in cases if _is_of_numbers(case.model)]


@cache
def node_tests_of(operator: str) -> list[Any]:
    """Return the node tests of one module of ONNX, which is the name of an operator."""
    from onnx.backend.test.case.node import _NodeTestCases

    before = len(_NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(f"onnx.backend.test.case.node.{operator}")
    return [case for case in _NodeTestCases[before:] if _is_of_numbers(case.model)]


def _is_of_numbers(model: onnx.ModelProto) -> bool:
    values = [*model.graph.input, *model.graph.output]
    kinds = {v.type.WhichOneof("value") for v in values}
    others = any(n.domain in _OTHERS or n.op_type.startswith("Opt") for n in model.graph.node)
    if kinds - {"tensor_type"} or others:
        return False
    return all(v.type.tensor_type.elem_type in _NUMBERS for v in values)


def judged(case: Any, mode: Any = PYTHON, *, symbolic: bool = False) -> Verdict:
    """Return the verdict on a test.

    Parameters
    ----------
    case
        The test.
    mode
        Mode that runs the graph.
    symbolic
        Whether all inputs are variables. Otherwise, inputs that the import must know are given.
    """
    names = [v.name for v in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        arrays = dict(zip(names, map(_array, inputs), strict=False))
        expected = [_array(v) for v in outputs]
        found = _judged_at(case, arrays, expected, {}, mode, symbolic)
        if found.reason.startswith("run raises") and not symbolic:
            # JAX needs the values of more operands than the import does.
            given = {name: a for name, a in arrays.items() if a.dtype.kind in "iub"}
            again = _judged_at(case, arrays, expected, given, mode, symbolic)
            found = again if again.verdict == "right" else found
        if found.verdict != "right":
            return found
    return Verdict(case.name, "right")


def _judged_at(
    case: Any,
    arrays: dict[str, Any],
    expected: list[np.ndarray],
    given: dict[str, Any],
    mode: Any,
    symbolic: bool,
) -> Verdict:
    try:
        graph = _imported(case.model, arrays, given, symbolic)
    except PyTensorONNXError as error:
        return Verdict(case.name, "refused", _reason(error))
    except Exception as error:
        return Verdict(case.name, "wrong", f"import raises {type(error).__name__}: {error}")
    try:
        found = _run(graph, arrays, mode)
    except Exception as error:
        text = str(error).strip().splitlines() or [""]
        return Verdict(case.name, "wrong", f"run raises {type(error).__name__}: {text[0]}")
    difference = next(filter(None, map(_difference, found, expected, [case] * 99)), "")
    if difference or len(found) != len(expected):
        return Verdict(case.name, "wrong", difference or "another number of results")
    return Verdict(case.name, "right")


def _imported(model: Any, arrays: dict[str, Any], given: dict[str, Any], symbolic: bool) -> Any:
    """Import a model; add the inputs whose values an error asks for."""
    while True:
        try:
            return from_onnx(model, inputs=given)
        except PyTensorONNXError as error:
            if symbolic:
                raise
            wanted = {n for n in arrays if f"{n!r}: value" in str(error)} - given.keys()
            if not wanted:
                raise
            given = {**given, **{name: arrays[name] for name in wanted}}


def _run(graph: Any, arrays: dict[str, Any], mode: Any) -> Sequence[np.ndarray]:
    with pytensor.config.change_flags(cxx="", linker="py"), np.errstate(all="ignore"):
        function = pytensor.function(
            graph.inputs, graph.outputs, mode=mode, on_unused_input="ignore"
        )
        return function(*(arrays[str(v.name)] for v in graph.inputs))


def _array(value: Any) -> np.ndarray:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _difference(found: Any, expected: Any, case: Any) -> str:
    expected = np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    if any(name in case.name for name in _DRAWN):
        return ""
    rtol, atol = max(case.rtol, 1e-3), max(case.atol, 1e-7)
    if expected.dtype.kind in "fc" and expected.size:
        # Sums that cancel keep roundings of the largest number.
        finite = np.abs(expected[np.isfinite(expected)])
        atol = max(atol, 4 * float(np.finfo(expected.dtype).eps) * float(finite.max(initial=0)))
    if np.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    return f"values differ: {found.reshape(-1)[:4]} instead of {expected.reshape(-1)[:4]}"


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    reasons = [line.removeprefix("reason:").strip() for line in lines if "reason:" in line]
    return "; ".join(dict.fromkeys(reasons)) or lines[0]


def verdicts(cases: Sequence[Any], mode: Any, *, symbolic: bool) -> Iterator[Verdict]:
    """Return the verdicts on tests, one after the other."""
    for case in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield judged(case, mode, symbolic=symbolic)


def write_page(cases: Sequence[Any]) -> None:
    """Write the counts of all tests to the page on imports."""
    given = Counter(v.verdict for v in verdicts(cases, PYTHON, symbolic=False))
    symbolic = Counter(v.verdict for v in verdicts(cases, PYTHON, symbolic=True))
    rows = [
        f"| {what} | {found['right']:,} | {found['refused']:,} | {found['wrong']:,} |"
        for what, found in (
            ("the values given that the import must know", given),
            ("all inputs variables", symbolic),
        )
    ]
    version = onnx.__version__
    text = f"""ONNX {version} has {len(cases):,} node tests of numbers. With

| | equal | refused | different |
|---|---|---|---|
{"\n".join(rows)}
"""
    write_part(PAGE, "figures", text)


def main() -> None:
    """Print the counts of the verdicts, and the reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbolic", action="store_true", help="give no inputs at import")
    parser.add_argument("--mode", default="", help="mode of PyTensor; its Python mode by default")
    parser.add_argument("--only", default="", help="tests whose name has this text")
    parser.add_argument("--every", type=int, default=1, help="take each n-th test")
    parser.add_argument("--page", action="store_true", help="write the table of the page")
    options = parser.parse_args()
    if options.page:
        write_page(node_tests())
        return
    cases = [case for case in node_tests() if options.only in case.name][:: options.every]
    found = list(verdicts(cases, options.mode or PYTHON, symbolic=options.symbolic))
    for verdict in found:
        if verdict.verdict != "right":
            print(f"{verdict.verdict:8} {verdict.name}: {verdict.reason[:160]}")
    counts = Counter(verdict.verdict for verdict in found)
    expanded = Counter(v.verdict for v in found if "expanded" in v.name)
    print(f"{len(found)} tests: {dict(counts)}; expanded ones: {dict(expanded)}")


if __name__ == "__main__":
    main()
