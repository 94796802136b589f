"""Comparison of a random graph in mode ONNX and as an exported file with PyTensor."""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pytensor_onnx import SessionOptions, UnsupportedOpError, export_onnx
from tests.fuzz.evaluation import Evaluation
from tests.fuzz.graphs import Graph, Term
from tests.fuzz.implementation import NoReferenceError
from tests.fuzz.layouts import laid_out
from tests.fuzz.rewritten import REWRITTEN, WITHOUT_LOOPS_REWRITTEN, known_loss
from tests.fuzz.rounding import TOLERANCE

# What PyTensor refuses, in the words of its errors, and ONNX does not.
DEVIATIONS = (
    "Runtime broadcasting not allowed",  # of sizes of one that are computed
    "casting rule 'same_kind'",  # of its Python implementation only
    "negative integer powers",  # docs/limits.md: they are rounded towards zero
)
# What the runtime refuses, and no form of the graph avoids.
REFUSALS = (
    "matmul_helper.h",  # tests/dispatch/test_math.py: to repeat a matrix no times
)
# What the standard allows and the runtime cannot run.
MISSING_KERNEL = "Could not find an implementation"


LOOSEST = max(TOLERANCE.values())


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
    resized
        Whether it is called with other sizes as well, wherever the types leave a size open.
    options
        How the model is exported.
    is_rewritten
        Whether a result was found to be what PyTensor's own rewrites give, not what is written.
    """

    graph: Graph
    outputs: list[Term]
    updates: list[tuple[Term, Term]]
    resized: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    is_rewritten: bool = False

    @property
    def code(self) -> str:
        """A script that reproduces the case."""
        values = [t.value for t in self.graph.inputs]
        code = self.graph.code(self.outputs, self.updates, values, self.options)
        if self.resized:
            code += self.graph.code(self.outputs, self.updates, self.resized_values(), {})
        return code

    @property
    def arguments(self) -> list[np.ndarray]:
        """The values of the inputs as they lie in memory."""
        return [laid_out(t.value, t.layout) for t in self.graph.inputs]

    def resized_values(self) -> list[np.ndarray]:
        """Return values of the inputs whose sizes are larger wherever the types leave them open.

        Equal sizes stay equal. A size of one stays, since PyTensor refuses to broadcast it, and a
        size of zero where another is fixed: NumPy takes a mask of no elements for any size.
        """
        leaves = [t for t in self.graph.terms if t.variable.owner is None]
        fixed = {0 for t in leaves if t not in self.graph.inputs and 0 in t.shape}
        fixed |= {0 for t in self.graph.inputs if 0 in t.static}
        values = []
        for term in self.graph.inputs:
            sizes = [
                size if static is not None or size in {1, *fixed} else size + 1 if size else 7
                for size, static in zip(term.shape, term.static, strict=True)
            ]
            values.append(laid_out(np.resize(term.value, sizes), term.layout))
        return values


@contextmanager
def quiet() -> Iterator[None]:
    """Compile nothing in C, and leave out what PyTensor has to say of its rewrites.

    Without the stack traces that it keeps for its messages, too: they take a tenth of the time.
    """
    logger = logging.getLogger("pytensor")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with (
            open(os.devnull, "w") as nowhere,
            redirect_stderr(nowhere),
            warnings.catch_warnings(),
            pytensor.config.change_flags(cxx="", traceback__limit=0),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def check(case: Case) -> None:
    """Assert that mode ONNX and the exported model give what PyTensor gives, and fail as it does.

    Where something infinite or NaN goes into a result and PyTensor's own rewrites change it (they
    may: ``x * 0`` becomes 0), the result of the rewritten graph in PyTensor's Python implementation
    is as good, element by element. So is whether it fails.
    """
    graph = case.graph
    inputs, outputs = [t.variable for t in graph.inputs], [t.variable for t in case.outputs]
    updates = {state.variable: new.variable for state, new in case.updates}
    reference = _Reference(case, case.arguments)
    try:
        function = pytensor.function(
            inputs, outputs, updates=updates, mode="ONNX", on_unused_input="ignore"
        )
        program = export_onnx(
            inputs, outputs, updates=updates, verify=False, **case.options, **_session(case)
        )
    except UnsupportedOpError:
        raise
    except Exception:
        # What fails for all values of the inputs may fail in compiling.
        if not reference.fails:
            raise
        return
    initial = [(t.variable, t.value) for t in graph.shared]

    def call_function(*values: Any) -> list[Any]:
        for state, value in initial:
            state.set_value(value)
        results = function(*values)
        return [*results, *(state.variable.get_value() for state, _ in case.updates)]

    def call_program(*values: Any) -> list[Any]:
        return [*program(*values), *program.state.values()]

    reference.compare(call_function, "mode ONNX")
    reference.compare(call_program, "the exported model", frozen=True)
    if case.resized:
        resized = _Reference(case, case.resized_values(), is_resized=True)
        resized.compare(call_function, "a call with other sizes")


def _session(case: Case) -> dict[str, Any]:
    """Return how the model runs: what is made for no runtime, without the runtime's rewrites."""
    is_standard = case.options.get("target") == "standard"
    return {"session_options": SessionOptions(optimization="none")} if is_standard else {}


class _Reference:
    """Expected values: of the graph as written, and as PyTensor's own rewrites leave it."""

    def __init__(
        self, case: Case, values: Sequence[np.ndarray], *, is_resized: bool = False
    ) -> None:
        self.is_resized = is_resized
        self.terms = [*case.outputs, *(new for _, new in case.updates)]
        self.case = case
        self.values = values
        self.dtypes = [t.dtype for t in self.terms]
        self.tolerances: list[float | np.ndarray] = [LOOSEST] * len(self.terms)
        self._not_finite: set[Variable] = set()
        self.written = _outcome(self._evaluate)

    def compare(self, call: Callable[..., list[Any]], where: str, *, frozen: bool = False) -> None:
        """Assert that a call gives what PyTensor gives, an error where it gives one.

        Where shared variables are frozen, PyTensor's rewrites may know their values.
        """
        found = _outcome(lambda: call(*self.values))
        if self._explains(self.written, found):
            return
        # An error that PyTensor's own rewrites lead to as well is theirs.
        may_be = self._may_be_rewritten or isinstance(found, Exception)
        if not (may_be and self._is_rewritten(found, frozen=frozen)):
            if isinstance(found, Exception):
                raise found
            raise Disagreement(f"{where}: {self._differences(self.written, found)}")
        self.case.is_rewritten = True

    @property
    def fails(self) -> bool:
        """Whether PyTensor fails, on the graph as written or as its rewrites leave it."""
        return (
            isinstance(self.written, Exception)
            or isinstance(self.rewritten, Exception)
            or isinstance(self._rewrite(self._constants(), REWRITTEN), Exception)
        )

    @cached_property
    def rewritten(self) -> list[Any] | Exception:
        """What PyTensor gives after its own rewrites."""
        return self._rewrite({}, REWRITTEN)

    def _is_rewritten(self, found: list[Any] | Exception, *, frozen: bool) -> bool:
        """Return whether PyTensor's own rewrites lead to a result, to each of several by itself."""
        others = [self.rewritten, self._rewrite({}, WITHOUT_LOOPS_REWRITTEN)]
        if frozen:
            others.append(self._rewrite(self._constants(), REWRITTEN))
        if isinstance(found, Exception) or isinstance(self.written, Exception):
            return any(self._explains(other, found) for other in others)
        lists = [self.written, *(other for other in others if not isinstance(other, Exception))]
        return all(
            not self._difference(i, self.written[i], found[i])
            or (
                term.variable in self._not_finite
                and not self._difference(i, self._nearest(i, lists, found[i]), found[i])
            )
            for i, term in enumerate(self.terms)
        )

    def _nearest(self, i: int, expected: Sequence[list[Any]], found: Any) -> np.ndarray:
        """Return for each element what is found, if one of the results of its shape is that.

        How many positions of a computed array hold something depends on what NaN becomes as well.
        """
        alike = [np.asarray(e[i]) for e in expected if np.shape(e[i]) == np.shape(found)]
        nearest, *others = alike or [np.asarray(self.written[i])]
        for other in others:
            same = is_same(found, other, self.tolerances[i])
            nearest = np.where(same, other, nearest)
        return nearest

    def _constants(self) -> dict[Variable, Variable]:
        """Return constants for the shared variables whose values a model holds."""
        updated = {state.variable for state, _ in self.case.updates}
        return {
            t.variable: t.variable.type.constant_type(t.variable.type, t.value)
            for t in self.case.graph.shared
            if t.variable not in updated
        }

    def _rewrite(self, constants: dict[Variable, Variable], mode: Mode) -> list[Any] | Exception:
        def call() -> list[Any]:
            for term in self.case.graph.shared:
                term.variable.set_value(term.value)
            function = pytensor.function(
                [t.variable for t in self.case.graph.inputs],
                clone_replace([t.variable for t in self.terms], constants),
                mode=mode,
                on_unused_input="ignore",
            )
            with np.errstate(all="ignore"):
                return function(*self.values)

        return _outcome(call)

    def _evaluate(self) -> list[Any]:
        graph = self.case.graph
        evaluation = graph.evaluation
        if self.is_resized:
            evaluation = Evaluation()
            for term, value in zip(graph.inputs, self.values, strict=True):
                evaluation.give(term.variable, value)
            for term in graph.shared:
                evaluation.give(term.variable, term.value)
            for generator in graph.generators.values():
                evaluation.give(generator, generator.get_value())
        variables = [t.variable for t in self.terms]
        evaluation.evaluate(variables)
        if any(evaluation.rounding(t.variable) > 1 for t in self.terms if not t.is_loss):
            raise NoReferenceError("rounding decides the result")
        self._not_finite = evaluation.not_finite.intersection(variables)
        self.dtypes = [str(np.asarray(evaluation.value(v)).dtype) for v in variables]
        self.tolerances = [evaluation.tolerance(v) for v in variables]
        expected = [evaluation.expected(v) for v in variables]
        given = dict(zip([t.variable for t in graph.inputs], self.values, strict=True))
        given |= {t.variable: t.value for t in graph.shared}
        for i, term in enumerate(self.terms):
            if term.is_loss:
                expected[i], self.tolerances[i] = known_loss(evaluation, term.variable, given)
        return expected

    @property
    def _may_be_rewritten(self) -> bool:
        """Return whether PyTensor's rewrites may make the result another one."""
        return bool(self._not_finite) or isinstance(self.written, Exception)

    def _explains(self, expected: list[Any] | Exception, found: list[Any] | Exception) -> bool:
        if isinstance(self.written, NoReferenceError):
            return True
        if isinstance(found, Exception) and any(text in str(found) for text in self._refusals):
            return True
        if isinstance(self.written, Exception) and not isinstance(found, Exception):
            # A failure that no element of a result depends on may be left out.
            if self.is_resized or not any(np.size(a) for a in found):
                return True
            if any(text in str(self.written) for text in DEVIATIONS):
                return True
        if isinstance(expected, Exception) or isinstance(found, Exception):
            return isinstance(expected, Exception) and isinstance(found, Exception)
        return not self._differences(expected, found)

    @property
    def _refusals(self) -> Sequence[str]:
        is_standard = self.case.options.get("target") == "standard"
        return (*REFUSALS, MISSING_KERNEL) if is_standard else REFUSALS

    def _differences(self, expected: list[Any] | Exception, found: list[Any]) -> str:
        if isinstance(expected, Exception):
            return f"does not fail, where PyTensor does: {expected}"
        texts = [
            self._difference(i, *pair) for i, pair in enumerate(zip(expected, found, strict=True))
        ]
        return "; ".join(
            f"{term} {text}" for term, text in zip(self.terms, texts, strict=True) if text
        )

    def _difference(self, i: int, expected: Any, found: Any) -> str:
        found, dtype = np.asarray(found), self.dtypes[i]
        if found.dtype != dtype:
            return f"has dtype {found.dtype} instead of {dtype}"
        # What is left of a difference of numbers near one is no loss of accuracy.
        smallest = (
            float(np.nanmin(self.tolerances[i], initial=1.0)) if self.terms[i].is_loss else 0.0
        )
        return difference(found, np.asarray(expected), self.tolerances[i], smallest)


def _outcome(call: Callable[[], list[Any]]) -> list[Any] | Exception:
    """Return what a call returns or raises."""
    try:
        return call()
    except Exception as error:
        return error


def difference(
    found: np.ndarray, expected: np.ndarray, tolerance: float | np.ndarray, smallest: float = 0.0
) -> str:
    """Return in what two arrays differ by more than rounding, an empty text if in nothing."""
    if found.shape != expected.shape:
        return f"has shape {found.shape} instead of {expected.shape}"
    same = is_same(found, expected, tolerance, smallest)
    if np.all(same):
        return ""
    position = np.unravel_index(np.argmin(same), same.shape)
    where = f" at {[int(i) for i in position]}" if position else ""
    return f"is {found[position]!r} instead of {expected[position]!r}{where}"


def is_same(
    found: np.ndarray, expected: np.ndarray, tolerance: float | np.ndarray, smallest: float = 0.0
) -> np.ndarray:
    """Return for each element whether two arrays of one dtype differ by rounding only.

    Where the tolerance is NaN, any element will do; errors smaller than the smallest are none.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind != "f":
        return np.asarray(found == expected)
    smallest = max(smallest, float(np.finfo(found.dtype).tiny))
    with np.errstate(all="ignore"):
        same = np.isclose(
            found.astype("f8"), expected.astype("f8"), rtol=tolerance, atol=smallest, equal_nan=True
        )
    return np.asarray(same | np.isnan(tolerance))
