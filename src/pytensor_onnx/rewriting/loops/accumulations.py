"""Recognise loop-carried states that accumulate sums, products, maxima or minima."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.running_extremes import RunningExtreme

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

    def combined(self) -> Variable:
        """Return the terms of a step, combined by the operation."""
        return self.terms[0] if len(self.terms) == 1 else _COMBINATIONS[self.kind](*self.terms)

    def cumulated(self, rows: TensorVariable) -> TensorVariable:
        """Return all values of the state from its initial value and the terms of all steps."""
        if self.kind in _CUMULATIVE:
            return CumOp(axis=0, mode=_CUMULATIVE[self.kind])(rows)
        return RunningExtreme("max" if self.kind is ps.Maximum else "min")(rows)

    def reduced(self, rows: TensorVariable) -> TensorVariable:
        """Return the last value of the state, with a leading axis of size one."""
        return pt.cast(_REDUCTIONS[self.kind](rows, axis=0, keepdims=True), rows.type.dtype)


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
        node = reached.owner
        # Each step rounds, or wraps around, in the dtype of the state.
        if node is None or not isinstance(node.op, Elemwise) or reached.type.dtype != dtype:
            return None
        operands = list(node.inputs)
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
    is_exact = all(np.can_cast(x.type.dtype, dtype) for x in terms)
    return Accumulation(kind, terms) if kind is not None and is_exact else None
