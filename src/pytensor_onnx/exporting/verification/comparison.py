"""Compare the results of a program with PyTensor's on several inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.errors import RunError, VerificationError
from pytensor_onnx.exporting.verification.array_differences import (
    RELATIVE_TOLERANCE,
    disagreement,
    relative_error,
)
from pytensor_onnx.exporting.verification.divergence import (
    Conversion,
    differences_by_value,
    divergence,
)
from pytensor_onnx.exporting.verification.matrix_properties import Promises
from pytensor_onnx.exporting.verification.results import (
    OWN_INPUTS,
    Verification,
    completed,
    evaluate,
    evaluate_all,
    rewritten_by_pytensor,
)
from pytensor_onnx.exporting.verification.rounding import (
    Evidence,
    UndeterminedError,
    distances_from_double,
)
from pytensor_onnx.exporting.verification.sampling import KINDS, Sample, known_sizes, sample
from pytensor_onnx.running.session import Session


class _NoReferenceError(Exception):
    """Inputs on which the results cannot be compared."""


class Comparison:
    """Results of a program and of PyTensor on several inputs.

    The reference is the graph as written. Where it is not finite, and the program gives something
    else, it is the graph after PyTensor's own rewrites, as `pytensor.function` computes it.

    Parameters
    ----------
    conversion
        The model and the graph.
    session
        Session of the model.
    state
        Values of the state by name, where other than those at export.

    Attributes
    ----------
    evidence
        Outcomes of the comparisons so far.
    arrays, found, expected
        The first inputs and states on which results were compared, and the results there.
    values
        Values of all variables of the graph as written there, for a graph in narrower floats.
    """

    def __init__(
        self, conversion: Conversion, session: Session, state: Mapping[str, np.ndarray]
    ) -> None:
        self.conversion = conversion
        self.session = session
        self.arrays: list[np.ndarray] = []
        self.found: list[np.ndarray] = []
        self.expected: list[np.ndarray] = []
        self.values: dict[Variable, Any] | None = None
        self._latest: dict[Variable, Any] | None = None
        self._inputs = conversion.inputs
        self._states = [state.get(s.name, s.value) for s in conversion.states]
        self._state_sizes = known_sizes(conversion.state_inputs, self._states)
        self._promises = Promises(conversion.reference)
        variables = conversion.reference.outputs
        unseen = {i for i, v in enumerate(variables) if not _is_always_empty(v)}
        self.evidence = Evidence(conversion.output_names, unseen)

    @cached_property
    def _rewritten(self) -> FunctionGraph:
        return rewritten_by_pytensor(self.conversion.reference)

    def sample(self, size: int, kind: str = KINDS[0]) -> Sample:
        """Return arrays for all inputs; an encoded input gets the parts of a valid value."""
        drawn = sample(self._inputs, size, kind, self._state_sizes)
        given = self.conversion.signature.inputs
        return replace(drawn, arrays=given.sampled(self._promises.keep(drawn.arrays)))

    def can_compare(self, sample: Sample, by_rewritten: bool = False) -> bool:
        """Compare on one sample; return False if that is impossible.

        Parameters
        ----------
        sample
            The inputs.
        by_rewritten
            Whether PyTensor's rewritten graph is the reference.

        Raises
        ------
        VerificationError
            If the results of the program differ from PyTensor's.
        """
        try:
            self._compare(sample, by_rewritten)
        except _NoReferenceError as error:
            self.evidence.error = self.evidence.error or error
            return False
        return True

    def compare_tail(self, sample: Sample) -> None:
        """Compare where PyTensor's results are beyond doubt: finite, and alike after its rewrites.

        Raises
        ------
        VerificationError
            If such a result of the program differs from PyTensor's.
        """
        arrays = [*sample.arrays, *self._states]
        feed = self.feed(arrays)
        try:
            expected = self._evaluate(arrays, by_rewritten=False)
            found = self.session.run(feed)
            trusted = [_is_regular(x, x) for x in expected]
            kept = list(map(_kept, found, expected, trusted))
            if _differences(kept, expected):
                others = self._evaluate(arrays, by_rewritten=True)
                kept = list(map(_kept, found, expected, map(_is_regular, expected, others)))
            if differences := _differences(kept, expected):
                graphs = [self.conversion.reference]
                self._rounding_error(sample, feed, graphs, kept, expected, differences)
        except (_NoReferenceError, RunError):
            return

    def _compare(self, sample: Sample, by_rewritten: bool) -> None:
        evidence, arrays = self.evidence, [*sample.arrays, *self._states]
        expected = self._evaluate(arrays, by_rewritten)
        graphs = [self._graph(by_rewritten)]
        feed = self.feed(arrays)
        found = self._run(feed, expected, sample, by_rewritten)
        if any(map(_is_unsolved, expected, found)):
            raise _NoReferenceError("a linear system is singular")
        differences = _differences(found, expected)
        if not all(_is_finite(expected[i]) for i in differences):
            expected = self._completed(expected, arrays, found)
            remaining = _differences(found, expected)
            evidence.completed |= differences.keys() - remaining.keys()
            differences = remaining
            graphs.append(self._rewritten)
        if differences:
            evidence.uncertain.append(
                self._rounding_error(sample, feed, graphs, found, expected, differences)
            )
        evidence.is_run = True
        evidence.by_rewritten = by_rewritten
        evidence.largest = max([evidence.largest, *map(relative_error, found, expected)])
        if not self.found:
            self.arrays, self.found, self.expected = arrays, found, list(expected)
            self.values = None if by_rewritten else self._latest
        seen = {i for i in evidence.unseen if _has_finite_value(expected[i])}
        if not differences and (seen or not evidence.unseen):
            evidence.equal[str(sample)] = None
        evidence.unseen -= seen

    def _graph(self, by_rewritten: bool) -> FunctionGraph:
        return self._rewritten if by_rewritten else self.conversion.reference

    def feed(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Return arrays by the names of the inputs, states of generators included."""
        names = (str(value.name) for value in self.conversion.model.graph.inputs)
        return dict(zip(names, arrays, strict=True))

    def _evaluate(self, arrays: Sequence[np.ndarray], by_rewritten: bool) -> list[np.ndarray]:
        """Return PyTensor's results."""
        graph = self._graph(by_rewritten)
        try:
            if by_rewritten or self.conversion.narrowing is None:
                return evaluate(graph, arrays)
            # The losses of the precision take all values of the first sample.
            self._latest = evaluate_all(graph, arrays)
        except Exception as error:
            raise _NoReferenceError(str(error) or type(error).__name__) from error
        return [np.asarray(self._latest[variable]) for variable in graph.outputs]

    def _run(
        self,
        feed: Mapping[str, np.ndarray],
        expected: Sequence[np.ndarray],
        sample: Sample,
        by_rewritten: bool,
    ) -> list[np.ndarray]:
        """Run the program; a refused sample is an error if PyTensor has finite results for it.

        PyTensor's rewritten graph refuses some inputs too, such as a negative number of frames.
        """
        try:
            return self.session.run(feed)
        except RunError as error:
            if not sample.values and not by_rewritten:
                raise
            if not by_rewritten:
                refusal = f"ONNX Runtime fails on {sample}: {error}"
                self.evidence.refusal = self.evidence.refusal or refusal
                if any(map(_has_finite_value, expected)):
                    self._evaluate(list(feed.values()), by_rewritten=True)
                    self.evidence.failure = self.evidence.failure or refusal
            raise _NoReferenceError(str(error)) from error

    def _completed(
        self,
        expected: Sequence[np.ndarray],
        arrays: Sequence[np.ndarray],
        found: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        """Return results, and the results of the rewritten graph if it can be computed."""
        try:
            return completed(expected, self._evaluate(arrays, by_rewritten=True), found)
        except _NoReferenceError:
            return list(expected)

    def _rounding_error(
        self,
        sample: Sample,
        feed: Mapping[str, np.ndarray],
        graphs: Sequence[FunctionGraph],
        found: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        differences: Mapping[int, str],
    ) -> tuple[float, str]:
        """Return the size and description of rounding errors, or raise for other errors."""
        try:
            distances = distances_from_double(
                graphs, list(feed.values()), found, expected, list(differences)
            )
        except UndeterminedError as error:
            raise _NoReferenceError(f"{error}, if numbers are rounded differently") from error
        except Exception:  # the difference itself is the error to report
            distances = {}
        names = self.evidence.names
        for i, difference in differences.items():
            if i not in distances or not distances[i].is_rounding:
                away = f" Compared with float64, {distances[i]}." if i in distances else ""
                what = f"output {names[i]!r} differs from PyTensor: {difference}.{away}"
                largest = max(map(relative_error, found, expected))
                self._raise_different(what, sample, feed, largest)
        listing = "; ".join(f"{names[i]}: {distances[i]}" for i in differences)
        return (
            max(distances[i].own for i in differences),
            f"{sample}, which are ill-conditioned ({listing})",
        )

    def _raise_different(
        self, what: str, sample: Sample, feed: Mapping[str, np.ndarray], largest: float
    ) -> NoReturn:
        """Raise an error that has the differences of all values as data."""
        values = differences_by_value(self.conversion, self.session, feed)
        message = f"{what}\n{divergence(values)}\nCompared on {sample}; {OWN_INPUTS}."
        raise VerificationError(
            message,
            Verification(
                "different",
                samples=(str(sample),),
                largest_error=largest,
                values=values,
                message=message,
            ),
        )


def _differences(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> dict[int, str]:
    """Describe the differences of results, by their positions."""
    return {i: text for i, text in enumerate(map(disagreement, found, expected)) if text}


def _is_unsolved(expected: np.ndarray, found: np.ndarray) -> bool:
    """Return whether an array is PyTensor's for a singular system: NaN, of the matrix's shape."""
    if expected.dtype.kind != "f" or expected.shape == found.shape:
        return False
    return bool(expected.size and np.isnan(expected).all())


def _is_regular(expected: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return where results are floats that two graphs agree on, and neither tiny nor infinite."""
    if expected.dtype.kind != "f" or expected.shape != other.shape:
        return np.zeros(expected.shape, bool)
    with np.errstate(all="ignore"):
        is_close = np.isclose(expected, other, rtol=RELATIVE_TOLERANCE[str(expected.dtype)], atol=0)
        info = np.finfo(expected.dtype)
        size = np.abs(expected)
        return is_close & (size > info.tiny / info.eps) & (size < info.max * info.eps)


def _kept(found: np.ndarray, expected: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return results with PyTensor's in place of the results that are not compared."""
    return np.where(where, found, expected) if found.shape == expected.shape else found


def _is_always_empty(variable: Variable) -> bool:
    return 0 in getattr(variable.type, "shape", ())


def _is_finite(array: np.ndarray) -> bool:
    return bool(array.dtype.kind != "f" or np.isfinite(array).all())


def _has_finite_value(array: np.ndarray) -> bool:
    return bool(array.size and (array.dtype.kind != "f" or np.isfinite(array).any()))
