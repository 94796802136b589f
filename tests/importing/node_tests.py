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

import ml_dtypes
import numpy as np
import onnx
import pytensor
from pytensor.compile.mode import Mode

from pytensor_onnx import PyTensorONNXError
from pytensor_onnx.backend import PyTensorBackend
from pytensor_onnx.importing.registry.narrow_types import NARROW
from tests.page_parts import write_part

_DRAWN = ("bernoulli", "randomuniform", "test_training_dropout")
"""Tests of random numbers: only dtypes and shapes are compared."""
PYTHON = Mode(linker="py", optimizer=None)
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a test: right, refused or wrong, with the reason."""

    name: str
    verdict: str
    reason: str = ""


@cache
def node_tests(kind: str = "node") -> list[Any]:
    """Return the tests of a kind whose files are installed with ONNX."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind=kind)
    return [case for case in cases if case.model is not None or case.model_dir is not None]


@cache
def node_tests_of(operator: str) -> list[Any]:
    """Return the node tests of one module of ONNX, which is the name of an operator."""
    from onnx.backend.test.case.node import _NodeTestCases

    before = len(_NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(f"onnx.backend.test.case.node.{operator}")
    return _NodeTestCases[before:]


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
    model, data_sets = content(case)
    for inputs, outputs in data_sets:
        arrays, expected = list(map(_array, inputs)), list(map(_array, outputs))
        found = _judged_at(case, model, arrays, expected, (), mode, symbolic)
        if found.reason.startswith("run raises") and not symbolic:
            # JAX needs the values of more operands than the import does.
            known = [
                v.name
                for v, a in zip(model.graph.input, arrays, strict=False)
                if isinstance(a, np.ndarray) and a.dtype.kind in "iub"
            ]
            again = _judged_at(case, model, arrays, expected, known, mode, symbolic)
            found = again if again.verdict == "right" else found
        if found.verdict != "right":
            return found
    return Verdict(case.name, "right")


def content(case: Any) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    """Return the model and the data of a test, which may be in files."""
    if case.model is not None:
        return case.model, case.data_sets
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        kinds = [_tensors(data, "input"), _tensors(data, "output")]
        sets.append((kinds[0], kinds[1]))
    return model, sets


def _tensors(folder: Path, kind: str) -> list[Any]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda file: int(file.stem.split("_")[-1]))
    return [onnx.TensorProto.FromString(file.read_bytes()) for file in files]


def _judged_at(
    case: Any,
    model: onnx.ModelProto,
    arrays: list[Any],
    expected: list[Any],
    known: Sequence[str],
    mode: Any,
    symbolic: bool,
) -> Verdict:
    prepared = PyTensorBackend.prepare(model, mode=mode, known=known)
    try:
        with pytensor.config.change_flags(cxx="", linker="py"), np.errstate(all="ignore"):
            found = prepared.run(arrays)
    except PyTensorONNXError as error:
        return Verdict(case.name, "refused", _reason(error))
    except Exception as error:
        text = str(error).strip().splitlines() or [""]
        return Verdict(case.name, "wrong", f"run raises {type(error).__name__}: {text[0]}")
    if symbolic and prepared.known:
        return Verdict(case.name, "refused", f"{', '.join(prepared.known)} must be known")
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if b is not None]
    difference = next(filter(None, (_difference(a, b, case) for a, b in pairs)), "")
    return Verdict(case.name, "wrong" if difference else "right", difference)


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _difference(found: Any, expected: Any, case: Any) -> str:
    if isinstance(found, list):
        elements = zip(found, list(expected), strict=True)
        return next(filter(None, (_difference(a, b, case) for a, b in elements)), "")
    expected = np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    if any(name in case.name for name in _DRAWN):
        return ""
    rtol, atol = max(case.rtol, 1e-3), max(case.atol, 1e-7)
    if expected.dtype == ml_dtypes.bfloat16:
        # The reference adds in bfloat16; its sums have errors of several of its units.
        rtol = 0.02
    if expected.dtype in NARROW.values():
        found, expected = found.astype("float32"), expected.astype("float32")
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


KINDS = {
    "operators": ("node",),
    "networks and operators of PyTorch": ("pytorch-converted", "pytorch-operator"),
    "sequences, strings and small models": ("simple",),
}
"""Kinds of tests, by their name in the page; those of large networks are not installed."""


def write_page() -> None:
    """Write the counts of all tests to the page on imports."""
    rows = []
    for what, kinds in KINDS.items():
        cases = [case for kind in kinds for case in node_tests(kind)]
        given = Counter(v.verdict for v in verdicts(cases, PYTHON, symbolic=False))
        symbolic = Counter(v.verdict for v in verdicts(cases, PYTHON, symbolic=True))
        counts = (len(cases), given["right"], given["refused"], given["wrong"], symbolic["right"])
        rows.append(f"| {what} | {' | '.join(f'{n:,}' for n in counts)} |")
    text = f"""Tests of ONNX {onnx.__version__}, with the values given that an import must know:

| tests of | number | equal | refused | different | equal, all inputs variables |
|---|---|---|---|---|---|
{"\n".join(rows)}
"""
    write_part(PAGE, "figures", text)


def main() -> None:
    """Print the counts of the verdicts, and the reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbolic", action="store_true", help="give no inputs at import")
    parser.add_argument("--kind", default="node", help="kind of tests, as ONNX names it")
    parser.add_argument("--mode", default="", help="mode of PyTensor; its Python mode by default")
    parser.add_argument("--only", default="", help="tests whose name has this text")
    parser.add_argument("--every", type=int, default=1, help="take each n-th test")
    parser.add_argument("--page", action="store_true", help="write the table of the page")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    cases = [case for case in node_tests(options.kind) if options.only in case.name][
        :: options.every
    ]
    found = list(verdicts(cases, options.mode or PYTHON, symbolic=options.symbolic))
    for verdict in found:
        if verdict.verdict != "right":
            print(f"{verdict.verdict:8} {verdict.name}: {verdict.reason[:160]}")
    counts = Counter(verdict.verdict for verdict in found)
    expanded = Counter(v.verdict for v in found if "expanded" in v.name)
    print(f"{len(found)} tests: {dict(counts)}; expanded ones: {dict(expanded)}")


if __name__ == "__main__":
    main()
