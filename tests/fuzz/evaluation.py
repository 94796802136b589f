"""Values of a graph by PyTensor's own Python implementations, and what rounding does to them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan

from tests.fuzz.implementation import NoReferenceError, as_meant, check_states, implementation
from tests.fuzz.loop_rounding import with_rounding
from tests.fuzz.rounding import (
    LARGEST_DEVIATION,
    MARGIN,
    PRECISIONS,
    TOLERANCE,
    accumulates,
    coarse,
    is_exact,
    is_on_grid,
    loses_signs,
    moved,
    rounds,
    with_any_signs,
)
from tests.fuzz.widening import is_narrow, widened, within_range

COPIES = 3


@dataclass
class Evaluation:
    """Values of variables, computed node by node as the graph is written.

    Beside the value itself, copies are kept in which every rounding went another way; the last one
    is rounded coarsely. Where they disagree, the value says nothing about an implementation. Where
    float32 or float16 is computed with, float64 gives the expected values.

    Attributes
    ----------
    values
        The value of each variable, then its copies.
    wide
        The values of floats that depend on float32 or float16, computed in float64.
    exact
        The variables whose value every right implementation computes to the last bit, the signs of
        zeros aside.
    precision
        The narrowest float dtype that each variable depends on, as an index of `PRECISIONS`.
    not_finite
        The variables that are, or are computed from, something infinite or NaN.
    """

    values: dict[Variable, list[Any]] = field(default_factory=dict)
    wide: dict[Variable, np.ndarray] = field(default_factory=dict)
    exact: set[Variable] = field(default_factory=set)
    precision: dict[Variable, int] = field(default_factory=dict)
    not_finite: set[Variable] = field(default_factory=set)
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def give(self, variable: Variable, value: Any) -> None:
        """Set the value of an input or a constant."""
        self.values[variable] = [value] * (1 + COPIES)
        self.exact.add(variable)
        self.precision[variable] = _own_precision(variable)
        self._widen(variable, value)
        if not _is_finite(value):
            self.not_finite.add(variable)

    def value(self, variable: Variable) -> Any:
        """Return the value of a variable."""
        return self.values[variable][0]

    def expected(self, variable: Variable) -> Any:
        """Return the value of a variable, in float64 where narrower floats go into it."""
        return self.wide.get(variable, self.values[variable][0])

    def evaluate(self, variables: Iterable[Variable]) -> None:
        """Compute variables that depend on those known."""
        variables = list(variables)
        with np.errstate(all="ignore"):
            for node in toposort(variables, blockers=self.values):
                if any(v not in self.values for v in node.outputs):
                    self._evaluate_node(node)
            for variable in variables:
                self._know(variable)

    def rounding(self, variable: Variable) -> float:
        """Return by how much rounding moves a value, relative to the most that is compared.

        Above one, the value is not to be compared; infinite where discrete values differ.
        """
        return self._deviation(variable) / LARGEST_DEVIATION[self._precision_of(variable)]

    def tolerance(self, variable: Variable) -> float:
        """Return the relative error that rounding excuses."""
        deviation = min(self._deviation(variable), 1.0)
        return max(TOLERANCE[self._precision_of(variable)], MARGIN * deviation)

    def tolerances(self, variable: Variable) -> np.ndarray:
        """Return the relative error that rounding excuses in each float."""
        smallest = TOLERANCE[self._precision_of(variable)]
        return np.maximum(smallest, MARGIN * self._deviations(variable))

    def is_known(self, variable: Variable) -> np.ndarray:
        """Return for each float whether it is finite and rounding moves it little."""
        limit = LARGEST_DEVIATION[self._precision_of(variable)]
        return np.isfinite(self.expected(variable)) & (self._deviations(variable) <= limit)

    def _precision_of(self, variable: Variable) -> str:
        return PRECISIONS[self.precision[variable]]

    def _deviation(self, variable: Variable) -> float:
        if variable.type.dtype.startswith("float"):
            return float(np.max(self._deviations(variable), initial=0.0))
        value, *copies = self.values[variable]
        return 0.0 if all(np.array_equal(value, copy) for copy in copies) else np.inf

    def _deviations(self, variable: Variable) -> np.ndarray:
        """Return by how much rounding moves each float, relative to it."""
        expected = np.asarray(self.expected(variable))
        smallest = float(np.finfo(variable.type.dtype).tiny)
        copies = [np.asarray(copy) for copy in self.values[variable]]
        return np.max([_distances(expected, copy, smallest) for copy in copies], axis=0)

    def _know(self, variable: Variable) -> None:
        if isinstance(variable, Constant) and variable not in self.values:
            self.give(variable, variable.data)

    def _evaluate_node(self, node: Apply) -> None:
        for variable in node.inputs:
            self._know(variable)
        if isinstance(node.op, OpFromGraph):
            self._evaluate_inner(node)
            return
        outputs, node = node.outputs, as_meant(node)
        inputs = [self.values[v] for v in node.inputs]
        precision = min([self.precision[v] for v in node.inputs], default=len(PRECISIONS) - 1)
        for variable in outputs:
            self.precision[variable] = min(precision, _own_precision(variable))
        check_states(node, [v[0] for v in inputs])
        in_float64 = self._in_float64(node)
        perform = implementation(node)
        results = [perform(*_copied(v[0] for v in inputs))]
        determined = all(v in self.exact for v in node.inputs)
        if accumulates(node):
            determined &= all(is_on_grid(v[0]) for v in inputs)
        exact = [
            determined and is_exact(node.op, v, value)
            for v, value in zip(outputs, results[0], strict=True)
        ]
        is_loop = isinstance(node.op, Scan)
        if is_loop:
            scale = max(map(self._scale, outputs))
            perform = implementation(with_rounding(node, scale, self._rng))
        moves = accumulates(node) and not all(exact)
        for copy in range(1, 1 + COPIES):
            if not is_loop and not moves and all(v[copy] is v[0] for v in inputs):
                results.append(results[0])
                continue
            arguments = _copied(v[copy] for v in inputs)
            if moves:
                # A sum in another order is the sum of numbers a little different.
                operands = zip(node.inputs, arguments, strict=True)
                arguments = [self._moved(a, self._scale(v)) for v, a in operands]
            results.append(perform(*arguments))
        if any(
            np.shape(a) != np.shape(b) or np.asarray(a).dtype != np.asarray(b).dtype
            for other in results[1:]
            for a, b in zip(results[0], other, strict=True)
        ):
            raise NoReferenceError(str(node.op))
        for i, variable in enumerate(outputs):
            copies = [result[i] for result in results]
            if exact[i]:
                self.exact.add(variable)
            elif rounds(node.op):
                scale = self._scale(variable)
                copies[1:-1] = [self._moved(copy, scale) for copy in copies[1:-1]]
                copies[-1] = coarse(copies[-1], scale)
            if loses_signs(node.op):
                copies[1:] = [with_any_signs(copy, self._rng) for copy in copies[1:]]
            self.values[variable] = copies
            self._widen(variable, copies[0] if in_float64 is None else in_float64[i])
            if not _is_finite(copies[0]) or not self.not_finite.isdisjoint(node.inputs):
                self.not_finite.add(variable)

    def _in_float64(self, node: Apply) -> list[Any] | None:
        """Return the results in float64, None where float64 is all that is computed with."""
        variables = (*node.inputs, *node.outputs)
        if not any(map(is_narrow, variables)) and self.wide.keys().isdisjoint(variables):
            return None
        arguments = _copied(self.expected(v) for v in node.inputs)
        try:
            wide = widened(node)
        except Exception as error:
            raise NoReferenceError(f"{node.op} has no form in float64") from error
        return implementation(wide)(*arguments)

    def _widen(self, variable: Variable, value: Any) -> None:
        """Set the value in float64 of a variable that float32 or float16 goes into."""
        dtype = getattr(variable.type, "dtype", "")
        if dtype.startswith("float") and self._precision_of(variable) != "float64":
            self.wide[variable] = within_range(value, dtype)

    def _evaluate_inner(self, node: Apply) -> None:
        inner = Evaluation(_rng=self._rng)
        for variable, argument in zip(node.op.fgraph.inputs, node.inputs, strict=True):
            inner.values[variable] = self.values[argument]
            if argument in self.wide:
                inner.wide[variable] = self.wide[argument]
            inner.precision[variable] = self.precision[argument]
            if argument in self.exact:
                inner.exact.add(variable)
            if argument in self.not_finite:
                inner.not_finite.add(variable)
        inner.evaluate(node.op.fgraph.outputs)
        for variable, result in zip(node.outputs, node.op.fgraph.outputs, strict=True):
            self.values[variable] = inner.values[result]
            if result in inner.wide:
                self.wide[variable] = inner.wide[result]
            self.precision[variable] = inner.precision[result]
            if result in inner.exact:
                self.exact.add(variable)
            if result in inner.not_finite:
                self.not_finite.add(variable)

    def _scale(self, variable: Variable) -> float:
        return float(np.finfo(PRECISIONS[self.precision[variable]]).eps)

    def _moved(self, value: Any, scale: float) -> Any:
        return moved(value, scale, self._rng)


def _is_finite(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _own_precision(variable: Variable) -> int:
    dtype = getattr(variable.type, "dtype", "")
    return PRECISIONS.index(dtype) if dtype in PRECISIONS else len(PRECISIONS) - 1


def _copied(values: Iterable[Any]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def _distances(value: np.ndarray, other: np.ndarray, smallest: float) -> np.ndarray:
    """Return the relative differences of two arrays of one shape."""
    value, other = value.astype("float64"), other.astype("float64")
    with np.errstate(all="ignore"):
        moved_by = np.abs(other - value)
        relative = moved_by / np.abs(value)
    same = (value == other) | (np.isnan(value) & np.isnan(other)) | (moved_by < smallest)
    return np.where(same, 0.0, np.where(np.isnan(relative), np.inf, relative))
