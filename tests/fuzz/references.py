"""Expected values of a random graph, and the differences from them that are no failures."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from tests.fuzz.cases import Case
from tests.fuzz.differences import difference, is_same
from tests.fuzz.drawing import as_drawn
from tests.fuzz.evaluation import Evaluation
from tests.fuzz.implementation import REWRITTEN, NoReferenceError
from tests.fuzz.rewritten import WITHOUT_LOOPS_REWRITTEN, known_loss
from tests.fuzz.rounding import TOLERANCE
from tests.fuzz.terms import Term

# What PyTensor refuses, in the words of its errors, and ONNX does not.
DEVIATIONS = (
    "Runtime broadcasting not allowed",  # of sizes of one that are computed
    "casting rule 'same_kind'",  # of its Python implementation only
    "negative integer powers",  # docs/project/limits.md: they are rounded towards zero
)
# Graphs that the runtime refuses, whatever their form.
REFUSALS = (
    "matmul_helper.h",  # tests/dispatch/test_products.py: to repeat a matrix no times
    "Only N can be zero",  # docs/project/limits.md: to pool images without channels
    # docs/project/limits.md: to normalise axes of size zero
    "Size of X.shape[axis:] must be at least 1",
    "the channels of InstanceNormalization are empty",
    "the filters of Conv are empty",  # tests/nn/test_conv.py: of no pixels
    "Kernel size must be positive",  # the same of ConvTranspose
    "Computed output dimension is <= 0",  # docs/project/limits.md: ConvTranspose of empty images
    "mode to pad dimension with a value of 0",  # docs/project/limits.md: NumPy refuses it too
    # docs/project/limits.md: GroupNormalization of an empty batch
    "cannot be reshaped to (0, 2, -1)",
)
# docs/project/limits.md: NumPy takes a mask of no elements for an axis of any size, and an
# index out of range that is broadcast to no elements.
OF_OTHER_LENGTH = (
    "boolean index did not match indexed array",
    "has the size 0, but",
    "is out of range for an axis of size 0",
)
# Graphs that the standard allows and the runtime cannot run.
MISSING_KERNEL = "Could not find an implementation"


LOOSEST = max(TOLERANCE.values())


class Disagreement(AssertionError):
    """ONNX and PyTensor differ."""


class Reference:
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

    @property
    def has_failing_rewrite(self) -> bool:
        """Whether one of PyTensor's own rewrites fails, so that the others run without it."""
        with pytensor.config.change_flags(on_opt_error="raise"):
            return any(
                isinstance(
                    _outcome(lambda: self._compiled(constants, REWRITTEN, self.terms)),  # noqa: B023
                    Exception,
                )
                for constants in ({}, self._constants(of_known_sizes=True))
            )

    @cached_property
    def rewritten(self) -> list[Any] | Exception:
        """What PyTensor gives after its own rewrites."""
        return self._rewrite({}, REWRITTEN)

    def _is_rewritten(self, found: list[Any] | Exception, *, frozen: bool) -> bool:
        """Return whether PyTensor's own rewrites lead to a result, to each of several by itself."""
        ways = [({}, REWRITTEN), ({}, WITHOUT_LOOPS_REWRITTEN)]
        if frozen:
            ways.append((self._constants(), REWRITTEN))
        others = [self._rewrite(*way) for way in ways]
        if isinstance(found, Exception) or isinstance(self.written, Exception):
            return any(self._explains(other, found) for other in others)
        lists = [self.written]
        for way, other in zip(ways, others, strict=True):
            # Where PyTensor fails for all results together, it may not for one of them.
            apart = (
                [self._rewrite(*way, only=term) for term in self.terms]
                if isinstance(other, Exception)
                else [other]
            )
            lists += [results for results in apart if not isinstance(results, Exception)]
        return all(
            not self._difference(i, self.written[i], found[i])
            or (
                term.variable in self._not_finite
                and not self._difference(i, self._nearest(i, lists, found[i]), found[i])
            )
            for i, term in enumerate(self.terms)
        )

    def _nearest(self, i: int, expected: Sequence[list[Any]], found: Any) -> np.ndarray:
        """Return the found value for each element, if one of the results of its shape equals it.

        How many positions of a computed array hold something depends on what NaN becomes as well.
        """
        alike = [np.asarray(e[i]) for e in expected if np.shape(e[i]) == np.shape(found)]
        nearest, *others = alike or [np.asarray(self.written[i])]
        for other in others:
            same = is_same(found, other, self.tolerances[i])
            nearest = np.where(same, other, nearest)
        return nearest

    def _constants(self, *, of_known_sizes: bool = False) -> dict[Variable, Variable]:
        """Return constants for the shared variables whose values a model holds."""
        updated = {state.variable for state, _ in self.case.updates}
        constants = {}
        for term in self.case.graph.shared:
            type_ = term.variable.type
            if of_known_sizes:
                type_ = type_.clone(shape=np.shape(term.value))
            if term.variable not in updated:
                constants[term.variable] = type_.constant_type(type_, term.value)
        return constants

    def _rewrite(
        self, constants: dict[Variable, Variable], mode: Mode, only: Term | None = None
    ) -> list[Any] | Exception:
        """Return the results of a rewritten graph; as written where only one is wanted."""

        def call() -> list[Any]:
            for term in self.case.graph.shared:
                term.variable.set_value(term.value)
            # PyTensor's functions refuse results that are wider than their types say.
            typed = [
                t
                for t, dtype in zip(self.terms, self.dtypes, strict=True)
                if t.dtype == dtype and only in (None, t)
            ]
            # A rewrite that fails, as of -x in uint64, does not keep the others from running.
            with pytensor.config.change_flags(on_opt_error="ignore"):
                function = self._compiled(constants, mode, typed)
            with np.errstate(all="ignore"):
                results = dict(zip(typed, function(*self.values), strict=True))
            return [
                results[t] if t in results else self.written[i] for i, t in enumerate(self.terms)
            ]

        return _outcome(call)

    def _compiled(
        self, constants: dict[Variable, Variable], mode: Mode, terms: Sequence[Term]
    ) -> Callable[..., list[Any]]:
        return pytensor.function(
            [t.variable for t in self.case.graph.inputs],
            clone_replace(as_drawn([t.variable for t in terms]), constants),
            mode=mode,
            on_unused_input="ignore",
        )

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
            # Portable files have no nodes that are there to fail.
            if self.case.is_standard or self.is_resized or not any(map(np.size, found)):
                return True
            if any(text in str(self.written) for text in DEVIATIONS):
                return True
        if isinstance(expected, Exception) or isinstance(found, Exception):
            return isinstance(expected, Exception) and isinstance(found, Exception)
        return not self._differences(expected, found)

    @property
    def _refusals(self) -> Sequence[str]:
        return (
            *REFUSALS,
            *((MISSING_KERNEL,) if self.case.is_standard else ()),
            *(OF_OTHER_LENGTH if self.is_resized else ()),
        )

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
        # A small difference of numbers near one is no loss of accuracy.
        smallest = (
            float(np.nanmin(self.tolerances[i], initial=1.0)) if self.terms[i].is_loss else 0.0
        )
        return difference(found, np.asarray(expected), self.tolerances[i], smallest)


def _outcome(call: Callable[[], list[Any]]) -> list[Any] | Exception:
    """Return the result of a call, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return error
