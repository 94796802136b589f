"""Branches, checks, sequences and optional values."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.graph.builder import CHECK, is_check
from pytensor_onnx.importing.registry.bodies import Body, VariableList, flat, in_form
from pytensor_onnx.importing.registry.known_values import (
    arguments_for,
    known,
    not_known,
    size,
    static,
)
from pytensor_onnx.importing.registry.narrow_types import marked_as
from pytensor_onnx.importing.registry.operator_imports import onnx_import


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
    if list(map(_length, results)) != list(map(_length, others)):
        raise UnsupportedCase(
            "its branches return sequences of other lengths, or values that one of them lacks",
            f"{arguments_for(condition)}, so that the condition is known at import",
        )
    pairs = list(zip(flat(results), flat(others), strict=True))
    for a, b in pairs:
        _check_types(condition, a, b)
    taken = ifelse(condition.reshape(()), [a for a, _ in pairs], [b for _, b in pairs])
    taken = list(taken) if isinstance(taken, list | tuple) else [taken]
    return in_form(results, marked_as(taken, [a for a, _ in pairs]))


def _length(value: Any) -> int | None:
    """Return the number of elements of a sequence, 0 for a missing value, None for an array."""
    if isinstance(value, VariableList):
        return len(value.items)
    return 0 if value is None else None


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


@onnx_import("SequenceConstruct")
def sequence_construct(*items: TensorVariable) -> VariableList:
    """Join arrays to a sequence."""
    return VariableList(items)


@onnx_import("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> VariableList:
    """Return a sequence without elements, whose dtype nothing needs."""
    return VariableList(())


@onnx_import("SequenceLength")
def sequence_length(sequence: VariableList) -> TensorVariable:
    """Return the number of elements."""
    return pt.constant(len(sequence.items), dtype="int64")


@onnx_import("SequenceAt")
def sequence_at(sequence: VariableList, position: TensorVariable) -> Variable:
    """Return one element."""
    return sequence.items[_position(position, sequence, 0)]


@onnx_import("SequenceInsert")
def sequence_insert(
    sequence: VariableList, item: TensorVariable, position: TensorVariable | None = None
) -> VariableList:
    """Insert an element before a position, or append it."""
    items = list(sequence.items)
    items.insert(len(items) if position is None else _position(position, sequence, 1), item)
    return VariableList(tuple(items))


@onnx_import("SequenceErase")
def sequence_erase(sequence: VariableList, position: TensorVariable | None = None) -> VariableList:
    """Remove the element at a position, or the last one."""
    items = list(sequence.items)
    del items[-1 if position is None else _position(position, sequence, 0)]
    return VariableList(tuple(items))


def _position(position: TensorVariable, sequence: VariableList, more: int) -> int:
    """Return a position, counted from the start, which must be known at import."""
    number, count = int(static(position, "position").item()), len(sequence.items)
    if not -count <= number < count + more:
        raise UnsupportedCase(f"its position is {number}, and the sequence has {count} elements")
    return number + count if number < 0 else number


@onnx_import("SplitToSequence")
def split_to_sequence(
    x: TensorVariable,
    lengths: TensorVariable | None = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
) -> VariableList:
    """Divide along an axis: into single elements, parts of one length, or of given lengths."""
    axis %= x.type.ndim
    if lengths is not None and lengths.type.ndim == 1:
        count = size(lengths, 0)
        if isinstance(count, int):
            return VariableList(tuple(pt.split(x, lengths, n_splits=count, axis=axis)))
        raise not_known("the number of its lengths must be known at import", lengths)
    total = size(x, axis)
    if not isinstance(total, int):
        raise not_known("the size of the axis that it divides must be known at import", total)
    each = 1 if lengths is None else int(static(lengths, "split").item())
    parts = [
        x[(*[slice(None)] * axis, slice(start, min(start + each, total)))]
        for start in range(0, total, each)
    ]
    if lengths is None and not keepdims:
        parts = [part.squeeze(axis) for part in parts]
    return VariableList(tuple(parts))


@onnx_import("ConcatFromSequence")
def concat_from_sequence(sequence: VariableList, *, axis: int, new_axis: int = 0) -> TensorVariable:
    """Join the elements of a sequence along an axis, or a new one."""
    if not sequence.items:
        raise UnsupportedCase("its sequence has no elements")
    if new_axis:
        return pt.stack(sequence.items, axis=axis)
    return pt.concatenate(sequence.items, axis=axis)


@onnx_import("SequenceMap")
def sequence_map(sequence: VariableList, *others: Any, body: Body) -> list[VariableList]:
    """Apply a graph to the elements of sequences, and to arrays as they are."""
    rows = [
        body(item, *(v.items[i] if isinstance(v, VariableList) else v for v in others))
        for i, item in enumerate(sequence.items)
    ]
    return [
        VariableList(tuple(row[position] for row in rows))
        for position in range(len(body.graph.outputs))
    ]


@onnx_import("Optional")
def optional(value: Any = None, *, type: Any = None) -> Any:
    """Return a value that may be missing: itself, or None."""
    return value


@onnx_import("OptionalGetElement")
def optional_get_element(value: Any = None) -> Any:
    """Return the value."""
    if value is None:
        raise UnsupportedCase("its operand has no value")
    return value


@onnx_import("OptionalHasElement")
def optional_has_element(value: Any = None) -> TensorVariable:
    """Return whether there is a value, which is known at import."""
    return pt.constant(np.array(value is not None))
