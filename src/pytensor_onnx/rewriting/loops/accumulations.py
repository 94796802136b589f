"""Recognise loop-carried states that accumulate terms or follow a linear recurrence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as ps
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops import reductions
from pytensor_onnx.ops.loops import linear_recurrence_ops
from pytensor_onnx.ops.loops.linear_recurrence_ops import LinearRecurrence
from pytensor_onnx.ops.reductions import RunningExtreme
from pytensor_onnx.rewriting.engine.predicates import elementwise

_REDUCTIONS = {ps.Add: pt.sum, ps.Mul: pt.prod, ps.Maximum: pt.max, ps.Minimum: pt.min}
_CUMULATIVE = {ps.Add: "add", ps.Mul: "mul"}
_COMBINATIONS = {ps.Add: pt.add, ps.Mul: pt.mul, ps.Maximum: pt.maximum, ps.Minimum: pt.minimum}


@dataclass(frozen=True)
class Accumulation:
    """Scalar operation that updates a state in each step.

    Attributes
    ----------
    kind
        Scalar operation.
    terms
        Its other operands, variables of the inner graph.
    """

    kind: type[ps.ScalarOp]
    terms: Sequence[Variable]

    @property
    def has_operator(self) -> bool:
        """Whether one cumulative operation gives all values of the state, for any row size."""
        return self.kind in _CUMULATIVE

    def operands(self) -> list[Variable]:
        """Return the terms of a step, combined by the operation."""
        return [self.terms[0] if len(self.terms) == 1 else _COMBINATIONS[self.kind](*self.terms)]

    @property
    def is_sum(self) -> bool:
        """Whether terms are added to the state."""
        return self.kind is ps.Add

    def has_short_form(self, row: Variable) -> bool:
        """Return whether the values of the state are computed without a loop."""
        return self.has_operator or is_short(row, reductions.LARGEST_ROW)

    def cumulated(self, rows: TensorVariable) -> TensorVariable:
        """Return all values of the state from its initial value and the terms of all steps."""
        if self.kind in _CUMULATIVE:
            return CumOp(axis=0, mode=_CUMULATIVE[self.kind])(rows)
        return RunningExtreme("max" if self.kind is ps.Maximum else "min")(rows)

    def reduced(self, rows: TensorVariable) -> TensorVariable:
        """Return the last value of the state, with a leading axis of size one."""
        return pt.cast(_REDUCTIONS[self.kind](rows, axis=0, keepdims=True), rows.type.dtype)


@dataclass(frozen=True)
class Recurrence:
    """Product with a factor and sum with a term that update a state in each step.

    Attributes
    ----------
    terms
        Terms of the sum, variables of the inner graph.
    factors
        Factors of the state.
    """

    terms: Sequence[Variable]
    factors: Sequence[Variable]

    def operands(self) -> list[Variable]:
        """Return the term and the factor of a step."""
        return [
            many[0] if len(many) == 1 else combine(*many)
            for many, combine in ((self.terms, pt.add), (self.factors, pt.mul))
        ]

    def has_short_form(self, row: Variable) -> bool:
        """Return whether the values of the state are computed without a loop."""
        is_float = row.type.dtype in ("float32", "float64")
        return is_float and is_short(row, linear_recurrence_ops.LARGEST_ROW)

    def cumulated(self, rows: TensorVariable, factors: TensorVariable) -> TensorVariable:
        """Return all values of the state from its initial value and the operands of all steps."""
        return LinearRecurrence()(rows, factors)

    def reduced(self, rows: TensorVariable, factors: TensorVariable) -> TensorVariable:
        """Return the last value of the state, with a leading axis of size one."""
        return self.cumulated(rows, factors)[-1:]


def is_short(row: Variable, largest: int) -> bool:
    """Return whether a row is known to have a number of elements or fewer."""
    sizes = row.type.shape
    return None not in sizes and int(np.prod(sizes)) <= largest


def update_of(inner: Variable, update: Variable) -> Accumulation | Recurrence | None:
    """Return the accumulation or recurrence that updates a state, None for other updates."""
    return accumulation_of(inner, update) or recurrence_of(inner, update)


def recurrence_of(inner: Variable, update: Variable) -> Recurrence | None:
    """Return the linear recurrence that updates a state: one sum of terms and one product."""
    added = _operands_beside(inner, update, ps.Add)
    if added is None:
        return None
    product, terms = added
    multiplied = _operands_beside(inner, product, ps.Mul)
    if multiplied is None or multiplied[0] is not inner:
        return None
    return Recurrence(terms, multiplied[1])


def _operands_beside(
    inner: Variable, value: Variable, kind: type[ps.ScalarOp]
) -> tuple[Variable, list[Variable]] | None:
    """Return the operand of a sum or product that depends on a state, and the other operands."""
    node = elementwise(value)
    if node is None or value.type.dtype != inner.type.dtype:
        return None
    operands = _widened(node.inputs, inner.type.dtype)
    if operands is None:
        return None
    operation = type(node.op.scalar_op)
    if operation is ps.Sub and kind is ps.Add:
        operation, operands[1] = ps.Add, pt.neg(operands[1])
    dependent = [x for x in operands if inner in ancestors([x])]
    if operation is not kind or len(dependent) != 1:
        return None
    return dependent[0], [x for x in operands if x is not dependent[0]]


def _widened(operands: Sequence[Variable], dtype: str) -> list[Variable] | None:
    """Cast operands to the dtype of their result, or return None if the dtype loses a value.

    Terms of a narrower dtype, negated or combined in it, would wrap around or round.
    """
    if not all(np.can_cast(x.type.dtype, dtype) for x in operands):
        return None
    return [pt.cast(x, dtype) for x in operands]


def accumulation_of(inner: Variable, update: Variable) -> Accumulation | None:
    """Return the accumulation that updates a state, None if the update is no accumulation.

    Parameters
    ----------
    inner, update
        The state before and after a step, variables of the inner graph.
    """
    dtype = inner.type.dtype
    kind: type[ps.ScalarOp] | None = None
    terms: list[Variable] = []
    reached = update
    while reached is not inner:
        node = elementwise(reached)
        # Each step rounds, or wraps around, in the dtype of the state.
        if node is None or reached.type.dtype != dtype:
            return None
        operands = _widened(node.inputs, dtype)
        if operands is None:
            return None
        dependent = [x for x in operands if inner in ancestors([x])]
        if len(dependent) != 1:
            return None
        (reached,) = dependent
        operation = type(node.op.scalar_op)
        if operation is ps.Sub and operands[0] is reached and not dtype.startswith("uint"):
            operation, operands[1] = ps.Add, pt.neg(operands[1])
        if operation not in _REDUCTIONS or kind not in (None, operation) or dtype == "bool":
            return None
        kind = operation
        operands.remove(reached)
        terms += operands
    return Accumulation(kind, terms) if kind is not None else None
