"""Comparison of a random graph in mode ONNX and as an exported file with PyTensor."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

from pytensor_onnx import export_onnx
from pytensor_onnx.rewriting.query import INCOMPATIBLE
from tests.fuzz.evaluation import PRECISIONS, TOLERANCE
from tests.fuzz.graphs import Graph, Term

# What the rewrites alone make of a graph, without our own and without ONNX.
REWRITTEN = Mode(
    "py", RewriteDatabaseQuery(include=["fast_run", "minimum_compile"], exclude=list(INCOMPATIBLE))
)


class Disagreement(AssertionError):
    """ONNX and PyTensor differ."""


@dataclass
class Case:
    """A graph with outputs and updates chosen.

    Attributes
    ----------
    graph
        The graph.
    outputs
        What is computed.
    updates
        Shared variables and their new values.
    """

    graph: Graph
    outputs: list[Term]
    updates: list[tuple[Term, Term]]

    @property
    def code(self) -> str:
        """A script that reproduces the case."""
        return self.graph.code(self.outputs, self.updates)


@contextmanager
def quiet() -> Iterator[None]:
    """Compile nothing in C, and leave out what PyTensor has to say of its rewrites."""
    logger = logging.getLogger("pytensor")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), pytensor.config.change_flags(cxx=""):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def check(case: Case) -> None:
    """Assert that mode ONNX and the exported model give what PyTensor gives.

    Where PyTensor's own rewrites change a result (they may: ``x * 0`` becomes 0, for NaN too), the
    result of the rewritten graph in PyTensor's Python implementation is as good.
    """
    graph = case.graph
    inputs = graph.inputs
    variables = [t.variable for t in inputs]
    values = [t.value for t in inputs]
    results = [*case.outputs, *(new for _, new in case.updates)]
    updates = {state.variable: new.variable for state, new in case.updates}
    outputs = [t.variable for t in case.outputs]
    initial = {state: state.variable.get_value() for state in graph.shared}
    reference = _Reference(case, [t.value for t in results])

    def restore() -> None:
        for state, value in initial.items():
            state.variable.set_value(value)

    function = pytensor.function(
        variables, outputs, updates=updates, mode="ONNX", on_unused_input="ignore"
    )
    found = [*function(*values), *(s.variable.get_value() for s, _ in case.updates)]
    restore()
    reference.compare(results, found, "mode ONNX")

    program = export_onnx(variables, outputs, updates=updates, verify=False)
    found = [*program(*values), *program.state.values()]
    reference.compare(results, found, "the exported model")


class _Reference:
    """Expected values: of the graph as written, and as PyTensor's own rewrites leave it."""

    def __init__(self, case: Case, expected: Sequence[Any]) -> None:
        self.case = case
        self.expected = expected
        self.rewritten: list[Any] | None = None

    def compare(self, terms: Sequence[Term], found: Sequence[Any], where: str) -> None:
        for i, term in enumerate(terms):
            difference = self._difference(term, found[i], self.expected[i])
            if difference and self._difference(term, found[i], self._rewritten()[i]):
                raise Disagreement(f"{where}: {term} {difference}")

    def _difference(self, term: Term, found: Any, expected: Any) -> str:
        precision = PRECISIONS[self.case.graph.evaluation.precision[term.variable]]
        return difference(np.asarray(found), np.asarray(expected), TOLERANCE[precision])

    def _rewritten(self) -> list[Any]:
        if self.rewritten is None:
            case = self.case
            inputs = [t.variable for t in case.graph.inputs]
            outputs = [*case.outputs, *(new for _, new in case.updates)]
            with np.errstate(all="ignore"):
                self.rewritten = pytensor.function(
                    inputs, [t.variable for t in outputs], mode=REWRITTEN, on_unused_input="ignore"
                )(*(t.value for t in case.graph.inputs))
        return self.rewritten


def difference(found: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    """Return in what two arrays differ by more than rounding, an empty text if in nothing."""
    if found.dtype != expected.dtype:
        return f"has dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"has shape {found.shape} instead of {expected.shape}"
    if expected.dtype.kind != "f":
        same = found == expected
    else:
        smallest = float(np.finfo(expected.dtype).tiny)
        with np.errstate(all="ignore"):
            same = np.isclose(
                found.astype("f8"),
                expected.astype("f8"),
                rtol=tolerance,
                atol=smallest,
                equal_nan=True,
            )
    if np.all(same):
        return ""
    position = np.unravel_index(np.argmin(same), same.shape)
    where = f" at {[int(i) for i in position]}" if position else ""
    return f"is {found[position]!r} instead of {expected[position]!r}{where}"
