"""Branches of models, and checks that are written as branches."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.graph.builder import CHECK, is_check
from pytensor_onnx.importing.registry.bodies import Body
from pytensor_onnx.importing.registry.known_values import arguments_for, known
from pytensor_onnx.importing.registry.narrow_types import marked_as
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.importing.registry.sequences import (
    StackedList,
    VariableList,
    VariableSequence,
    check_rows,
    flat,
    in_form,
)


@onnx_import("If")
def branch(condition: TensorVariable, *, then_branch: Body, else_branch: Body) -> list[Variable]:
    """Compute one of two graphs; only the taken one, if the condition is known."""
    value = known(condition)
    if value is not None:
        return then_branch() if value.reshape(()) else else_branch()
    check = _check(else_branch)
    if check is not None:
        return [check(v, condition.reshape(())) for v in then_branch()]
    results, others = then_branch(), else_branch()
    forms = [_in_one_form(condition, a, b) for a, b in zip(results, others, strict=True)]
    results, others = [a for a, _ in forms], [b for _, b in forms]
    pairs = list(zip(flat(results), flat(others), strict=True))
    differing = [(a, b) for a, b in pairs if a is not b]
    for a, b in differing:
        _check_types(condition, a, b)
    chosen = iter(_chosen(condition, differing))
    taken = [a if a is b else next(chosen) for a, b in pairs]
    return in_form(results, marked_as(taken, [a for a, _ in pairs]))


def _chosen(condition: Variable, pairs: Sequence[tuple[Variable, Variable]]) -> list[Variable]:
    """Return the variables of the branch that is taken."""
    if not pairs:
        return []
    taken = ifelse(condition.reshape(()), [a for a, _ in pairs], [b for _, b in pairs])
    return list(taken) if isinstance(taken, list | tuple) else [taken]


def _in_one_form(condition: Variable, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the results of two branches, sequences of other lengths as arrays."""
    if (isinstance(a, Variable) and isinstance(b, Variable)) or a is b is None:
        return a, b
    if not (isinstance(a, VariableSequence) and isinstance(b, VariableSequence)):
        raise UnsupportedCase(
            "its branches return values that one of them lacks, or a sequence and a tensor",
            f"{arguments_for(condition)}, so that the condition is known at import",
        )
    are_lists = isinstance(a, VariableList) and isinstance(b, VariableList)
    if are_lists and len(a.variables) == len(b.variables):
        return a, b
    filled = a if a.variables else b
    none = pt.constant(0, dtype="int64")
    lists = [
        v.stacked() if v.variables else StackedList(filled.stacked().rows[:0], none) for v in (a, b)
    ]
    rows = [v.rows for v in lists]
    check_rows(rows)
    length = None
    if any(v.length not in (None, none) for v in lists):
        # The state of a loop needs its number of elements, which has a bound. It is chosen alone,
        # as PyTensor's gradient takes no choice of integers among floats.
        counts = [pt.as_tensor(v.count, dtype="int64") for v in lists]
        (length,) = _chosen(condition, [(counts[0], counts[1])])
    return StackedList(rows[0], length), StackedList(rows[1], length)


def _check(branch: Body) -> CheckAndRaise | None:
    """Return the check whose failure this package wrote as a branch, or None."""
    texts = [node.metadata_props[CHECK] for node in branch.graph if is_check(node)]
    if not texts:
        return None
    name, _, message = texts[0].partition(": ")
    error = getattr(builtins, name, ValueError)
    return CheckAndRaise(error if issubclass(error, Exception) else ValueError, message)


def _check_types(condition: Variable, a: Variable, b: Variable) -> None:
    if not (isinstance(a, TensorVariable) and isinstance(b, TensorVariable)):
        raise UnsupportedCase("a result of its branches is not a tensor")
    if a.type.ndim != b.type.ndim:
        raise UnsupportedCase(
            f"its branches return {a.type.ndim} and {b.type.ndim} axes, PyTensor needs one rank",
            f"{arguments_for(condition)}, so that the condition is known at import",
        )
