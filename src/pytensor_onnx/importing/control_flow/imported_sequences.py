"""Sequences and optional values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import Size, arguments_for, known, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.importing.registry.sequences import (
    DividedList,
    StackedList,
    VariableList,
    VariableSequence,
)

_MOST_PARTS = 1000
"""Largest number of parts of an array that are one variable each."""


@onnx_import("SequenceConstruct")
def sequence_construct(*items: TensorVariable) -> VariableList:
    """Join arrays to a sequence."""
    return VariableList(items)


@onnx_import("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> VariableList:
    """Return a sequence without elements, whose dtype nothing needs."""
    return VariableList(())


@onnx_import("SequenceLength")
def sequence_length(sequence: VariableSequence) -> TensorVariable:
    """Return the number of elements."""
    return pt.as_tensor(sequence.count, dtype="int64")


@onnx_import("SequenceAt")
def sequence_at(sequence: VariableSequence, position: TensorVariable) -> Variable:
    """Return one element."""
    with _known_for(sequence, position):
        return sequence.element(_number(position))


@onnx_import("SequenceInsert")
def sequence_insert(
    sequence: VariableSequence, item: TensorVariable, position: TensorVariable | None = None
) -> VariableSequence:
    """Insert an element before a position, or append it."""
    place = sequence.count if position is None else _number(position)
    if isinstance(sequence, VariableList) and isinstance(place, int):
        items = list(sequence.items)
        items.insert(_in_range(place, len(items), 1), item)
        return VariableList(tuple(items))
    with _known_for(sequence, position):
        stacked = sequence.stacked()
        return stacked.appended(item) if position is None else stacked.inserted(item, place)


@onnx_import("SequenceErase")
def sequence_erase(
    sequence: VariableSequence, position: TensorVariable | None = None
) -> VariableSequence:
    """Remove the element at a position, or the last one."""
    place = -1 if position is None else _number(position)
    if isinstance(sequence, VariableList) and isinstance(place, int):
        items = list(sequence.items)
        del items[_in_range(place, len(items), 0)]
        return VariableList(tuple(items))
    with _known_for(sequence, position):
        return sequence.stacked().without(place)


@contextmanager
def _known_for(sequence: VariableSequence, position: TensorVariable | None) -> Iterator[None]:
    """Tell that elements of other shapes need a position that is known at import."""
    try:
        yield
    except UnsupportedCase as problem:
        if (
            not isinstance(sequence, VariableList)
            or position is None
            or known(position) is not None
        ):
            raise
        hint = f"{arguments_for(position)}, so that the position is known at import"
        raise UnsupportedCase(problem.reason, hint) from None


def _number(position: TensorVariable) -> Size:
    """Return a position, an int if it is known."""
    value = known(position)
    return position.reshape(()) if value is None else int(value.item())


def _in_range(number: int, count: int, more: int) -> int:
    """Return a position counted from the start."""
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
) -> VariableSequence:
    """Divide along an axis: into single elements, parts of one length, or of given lengths."""
    axis %= x.type.ndim
    if lengths is not None and lengths.type.ndim == 1:
        count = size(lengths, 0)
        if isinstance(count, int):
            return VariableList(tuple(pt.split(x, lengths, n_splits=count, axis=axis)))
        ends = pt.cumsum(lengths.astype("int64"))
        ends = _ARE_WHOLE(ends, pt.eq(lengths.sum(), x.shape[axis]), pt.all(lengths >= 0))
        return DividedList(x, ends, axis)
    total = size(x, axis)
    each = 1 if lengths is None else _number(lengths)
    if isinstance(total, int) and isinstance(each, int) and -(-total // each) <= _MOST_PARTS:
        parts = [
            x[(*[slice(None)] * axis, slice(start, min(start + each, total)))]
            for start in range(0, total, each)
        ]
        if lengths is None and not keepdims:
            parts = [part.squeeze(axis) for part in parts]
        return VariableList(tuple(parts))
    if lengths is None:
        rows = pt.moveaxis(x, axis, 0)
        return StackedList(pt.expand_dims(rows, axis + 1) if keepdims else rows)
    starts = pt.arange(0, total, each, dtype="int64")
    return DividedList(x, pt.minimum(starts + each, total), axis)


_ARE_WHOLE = CheckAndRaise(ValueError, "the lengths of parts must sum up to the size of the axis")


@onnx_import("ConcatFromSequence")
def concat_from_sequence(
    sequence: VariableSequence, *, axis: int, new_axis: int = 0
) -> TensorVariable:
    """Join the elements of a sequence along an axis, or a new one."""
    if isinstance(sequence, VariableList):
        if not sequence.items:
            raise UnsupportedCase("its sequence has no elements")
        join = pt.stack if new_axis else pt.concatenate
        return join(sequence.items, axis=axis)
    if isinstance(sequence, DividedList) and not new_axis and sequence.is_along(axis):
        return sequence.array
    rows = sequence.stacked().rows
    rank = rows.type.ndim - 1
    if new_axis:
        return pt.moveaxis(rows, 0, axis % (rank + 1))
    axis %= rank
    shape = [size(rows, 1 + i) for i in range(rank)]
    shape[axis] = size(rows, 0) * shape[axis]
    return pt.moveaxis(rows, 0, axis).reshape(shape, ndim=rank)


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
