"""The number of steps of a loop: its trip count, or the counter that its condition compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.shape import Reshape
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import Size, known
from pytensor_onnx.importing.registry.sequences import StackedList, VariableSequence, flat
from pytensor_onnx.rewriting.engine.predicates import elementwise

UNBOUNDED = 2**31 - 1
"""Number of steps of a loop that only a condition ends."""

_COMPARISONS = ((ps.LT, True, 0), (ps.LE, True, 1), (ps.GT, False, 0), (ps.GE, False, 1))
"""Comparisons, whether the first operand is the smaller one, and steps where both are equal."""

_OF_ONE = (DimShuffle, Reshape)
"""Operations that keep the one element of an array."""


def trip_count(count: TensorVariable | None) -> Size:
    """Return the largest number of steps of an operand, which may be missing.

    Examples
    --------
    >>> trip_count(None) == UNBOUNDED, trip_count(pt.constant(-3))
    (True, 0)
    """
    if count is None:
        return UNBOUNDED
    value = known(count)
    if value is not None:
        return min(max(int(value.item()), 0), UNBOUNDED)
    return pt.maximum(count.reshape(()), 0)


@dataclass(frozen=True)
class Counters:
    """The integers of a step that change by a constant from step to step.

    Attributes
    ----------
    index
        The number of the step.
    before, first, after
        Numbers in a step, such as states and the lengths of sequences, their values before the
        loop, and those after the step.
    varying
        All variables whose values differ from step to step.
    """

    index: Variable
    before: Sequence[Any]
    first: Sequence[Any]
    after: Sequence[Any]
    varying: Sequence[Variable]

    @classmethod
    def of_states(
        cls, index: Variable, before: Sequence[Any], first: Sequence[Any], after: Sequence[Any]
    ) -> Counters:
        """Return the counters of a step with these states."""
        rows = [
            (a.length, pt.as_tensor(b.count), pt.as_tensor(c.count))
            if isinstance(a, StackedList) and isinstance(c, VariableSequence)
            else (a, b, c)
            for a, b, c in zip(before, first, after, strict=True)
        ]
        numbers = [[row[i] for row in rows] for i in range(3)]
        return cls(index, numbers[0], numbers[1], numbers[2], flat(before))

    def bound(self, goes_on: Variable) -> tuple[Size, bool] | None:
        """Return the number of steps that a condition allows at most.

        The second result tells whether the loop has this number for sure, as the condition
        demands nothing else. None if the condition has no such bound.

        Parameters
        ----------
        goes_on
            The condition after a step that another one follows.
        """
        bounds = [self._steps(part) for part in _conjuncts(goes_on)]
        found = [n for n in bounds if n is not None]
        if not found:
            return None
        least = found[0]
        for n in found[1:]:
            both = isinstance(least, int) and isinstance(n, int)
            least = min(least, n) if both else pt.minimum(least, n)
        return least, len(found) == len(bounds)

    def _steps(self, part: Variable) -> Size | None:
        """Return the number of steps until a comparison of a counter and a number fails."""
        for op, is_less, more in _COMPARISONS:
            if not elementwise(part, op):
                continue
            low, high = part.owner.inputs if is_less else part.owner.inputs[::-1]
            before, end = self._linear(low), self._linear(high)
            if before is None or end is None or before[1] <= end[1]:
                return None
            room, change = end[0] - before[0] + more, before[1] - end[1]
            room = room if change == 1 else -(-room // change)
            return 1 + (max(room, 0) if isinstance(room, int) else pt.maximum(room, 0))
        return None

    def _linear(self, number: Variable) -> tuple[Size, int] | None:
        """Return the value in the first step, and the change from step to step."""
        value = known(number)
        if not number.type.dtype.startswith("int"):
            return None
        if value is not None:
            return (int(value.item()), 0) if value.size == 1 else None
        if number is self.index:
            return 0, 1
        if number in self._changes:
            return self._changes[number]
        node = number.owner
        if not {self.index, *self.varying} & set(ancestors([number])):
            return _scalar(number), 0
        if node is None:
            return None
        if (
            isinstance(node.op, _OF_ONE)
            or elementwise(number, ps.Cast)
            or elementwise(number, ps.Identity)
        ):
            return self._linear(node.inputs[0])
        if elementwise(number, ps.Add) or elementwise(number, ps.Sub):
            terms = [self._linear(v) for v in node.inputs]
            known_terms = [term for term in terms if term is not None]
            if len(known_terms) < len(terms):
                return None
            sign = -1 if elementwise(number, ps.Sub) else 1
            (start, change), *rest = known_terms
            for other, more in rest:
                start, change = start + sign * other, change + sign * more
            return start, change
        return None

    @property
    def _changes(self) -> Mapping[Variable, tuple[Size, int]]:
        """Return the first values and the changes of the states that are counters."""
        found = {}
        for before, first, after in zip(self.before, self.first, self.after, strict=True):
            change = _change(before, after)
            if change is not None:
                value = known(first)
                found[before] = (_scalar(first) if value is None else int(value.item())), change
        return found


def _change(before: Any, after: Any) -> int | None:
    """Return by how much a counter changes in a step, None for other states."""
    if not isinstance(before, TensorVariable) or not before.type.dtype.startswith("int"):
        return None
    if before.type.ndim and not all(before.type.broadcastable):
        return None
    if after is before:
        return 0
    while isinstance(getattr(after.owner, "op", None), CheckAndRaise):
        after = after.owner.inputs[0]
    is_sum, is_difference = elementwise(after, ps.Add), elementwise(after, ps.Sub)
    if not (is_sum or is_difference) or len(after.owner.inputs) != 2:
        return None
    a, b = after.owner.inputs
    if is_sum and b is before:
        a, b = b, a
    value = known(b)
    if a is not before or value is None or value.size != 1:
        return None
    return int(value.item()) * (1 if is_sum else -1)


def _scalar(number: TensorVariable) -> TensorVariable:
    return number.reshape(()) if number.type.ndim else number


def _conjuncts(condition: Variable) -> Iterator[Variable]:
    """Yield the parts of a condition that must all be true."""
    node = condition.owner
    if elementwise(condition, ps.AND):
        for part in node.inputs:
            yield from _conjuncts(part)
    elif node is not None and (
        isinstance(node.op, _OF_ONE)
        or elementwise(condition, ps.Identity)
        or (elementwise(condition, ps.Cast) and node.inputs[0].type.dtype == "bool")
    ):
        yield from _conjuncts(node.inputs[0])
    else:
        yield condition
