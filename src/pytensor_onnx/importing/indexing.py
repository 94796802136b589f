"""Reading and writing of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry import operator_imports as groups
from pytensor_onnx.importing.registry.known_values import (
    Size,
    elements,
    is_size,
    known,
    like,
    size,
    sizes,
    static_ints,
)
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT


@onnx_import("Gather")
def gather(x: TensorVariable, indices: TensorVariable, *, axis: int = 0) -> TensorVariable:
    """Take elements along an axis; PyTensor also counts negative indices from the end."""
    before = (slice(None),) * (axis % x.type.ndim)
    value = known(indices)
    if value is not None and value.ndim == 0:
        return x[(*before, int(value))]
    return x[(*before, indices)] if indices.type.ndim == 0 else x.take(indices, axis=axis)


@onnx_import("GatherElements")
def gather_elements(x: TensorVariable, indices: TensorVariable, *, axis: int = 0) -> TensorVariable:
    """Take an element along an axis for each index, at its place along the other axes."""
    return x[_along(indices, axis % x.type.ndim)]


def _along(indices: TensorVariable, axis: int) -> tuple[TensorVariable, ...]:
    """Return the indices of all axes for indices along one."""
    rank = indices.type.ndim
    places = (_as_axis(pt.arange(size(indices, a)), a, rank) for a in range(rank))
    return tuple(indices if a == axis else place for a, place in enumerate(places))


def _as_axis(vector: TensorVariable, axis: int, rank: int) -> TensorVariable:
    return vector.dimshuffle([0 if a == axis else "x" for a in range(rank)])


@onnx_import("GatherND")
@onnx_import("GatherND", domain=MICROSOFT)
def gather_nd(x: TensorVariable, indices: TensorVariable, *, batch_dims: int = 0) -> TensorVariable:
    """Take the elements or subarrays at the tuples of the last axis of indices."""
    return x[_tuples(indices, batch_dims)]


def _tuples(indices: TensorVariable, batch_dims: int = 0) -> tuple[TensorVariable, ...]:
    depth = indices.type.shape[-1]
    if depth is None:
        raise UnsupportedCase(
            "the last size of its indices must be known at import, as it decides the rank",
            "from_onnx(model, shapes={name: (None, 2)})",
        )
    rank = indices.type.ndim - 1
    batch = (_as_axis(pt.arange(size(indices, a)), a, rank) for a in range(batch_dims))
    return (*batch, *groups.columns(indices, depth))


@onnx_import("Slice")
def slice_by_attributes(
    x: TensorVariable,
    *,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
) -> TensorVariable:
    """Take ranges along axes."""
    return _sliced(x, starts, ends, axes or range(len(starts)), [1] * len(starts))


@onnx_import("Slice", since=10)
def slice_by_operands(
    x: TensorVariable,
    starts: TensorVariable,
    ends: TensorVariable,
    axes: TensorVariable | None = None,
    steps: TensorVariable | None = None,
) -> TensorVariable:
    """Take ranges along axes, whose bounds may be computed."""
    first, last = elements(starts), elements(ends)
    step = [1] * len(first) if steps is None else elements(steps)
    return _sliced(x, first, last, static_ints(axes, "axes") or range(len(first)), step)


def _sliced(
    x: TensorVariable,
    starts: Sequence[Size],
    ends: Sequence[Size],
    axes: Sequence[int],
    steps: Sequence[Size],
) -> TensorVariable:
    ranges = [slice(None)] * x.type.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        ranges[axis % x.type.ndim] = _range(start, end, step, size(x, axis % x.type.ndim))
    return x[tuple(ranges)]


def _range(start: Size, end: Size, step: Size, length: Size) -> slice:
    """Return a range, with None for bounds at or beyond the ends of the axis."""
    if not (isinstance(step, int) and step > 0) and not is_size(start):
        start = _from_first(start, length)
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        return slice(start, _clipped(end, length, step), step)
    if step > 0:
        is_all = end >= (length if isinstance(length, int) else 2**31 - 1)
        return slice(start or None, None if is_all else end, None if step == 1 else step)
    is_first = start == -1 or start >= (length - 1 if isinstance(length, int) else 2**31 - 1)
    is_to_start = end < -(length if isinstance(length, int) else 2**31)
    return slice(None if is_first else start, None if is_to_start else end, step)


def _from_first(start: Size, length: Size) -> Size:
    """Return the start, or the first element where it lies before that.

    NumPy's ranges with negative steps are empty there.
    """
    if isinstance(length, int) and isinstance(start, int):
        return max(start, -length)
    if isinstance(start, int) and (start == -1 or start < -(2**31)):
        return start if start == -1 else 0
    return pt.maximum(start, -length)


def _clipped(end: Size, length: Size, step: Size) -> Size:
    """Return an end that means the same in NumPy, also where it is far beyond the array."""
    if isinstance(end, int) and end < -(2**31):
        return -(length + 1)
    return length if isinstance(end, int) and end > 2**31 - 2 else end


@onnx_import("Scatter", "ScatterElements")
def scatter_elements(
    x: TensorVariable,
    indices: TensorVariable,
    updates: TensorVariable,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> TensorVariable:
    """Write, or combine, an element along an axis for each index."""
    return _written(x, _along(indices, axis % x.type.ndim), updates, reduction)


@onnx_import("ScatterND")
def scatter_nd(
    x: TensorVariable, indices: TensorVariable, updates: TensorVariable, *, reduction: str = "none"
) -> TensorVariable:
    """Write, or combine, elements or subarrays at the tuples of the last axis of indices."""
    return _written(x, _tuples(indices), updates, reduction)


def _written(
    x: TensorVariable, places: tuple[Any, ...], updates: TensorVariable, reduction: str
) -> TensorVariable:
    if reduction == "none":
        return pt.set_subtensor(x[places], groups.before_broadcast(updates))
    if reduction == "add":
        return pt.inc_subtensor(x[places], groups.before_broadcast(updates))
    return _combined(x, places, updates, reduction)


def _combined(
    x: TensorVariable, places: tuple[Any, ...], updates: TensorVariable, reduction: str
) -> TensorVariable:
    """Combine elements by product or extremum, one slot of the update after the other.

    PyTensor writes and adds at indices only; an index may occur more than once.
    """
    functions = {"mul": pt.mul, "max": pt.maximum, "min": pt.minimum}
    leading = places[0].type.ndim if len(places) == 1 else max(p.type.ndim for p in places)
    counts = updates.type.shape[:leading]
    total = int(np.prod(counts)) if None not in counts else None
    if total is None or total > _MOST_UPDATES:
        raise UnsupportedCase(
            f"its reduction {reduction} takes at most {_MOST_UPDATES} updates, their number known "
            "at import",
            "give the input of the indices a type of known sizes",
        )
    grids = [pt.broadcast_to(place, counts).reshape((total,)) for place in places]
    rows = updates.reshape((total, *sizes(updates)[leading:]))
    for i in range(total):
        place = tuple(grid[i] for grid in grids)
        x = pt.set_subtensor(x[place], functions[reduction](x[place], rows[i]))
    return x


_MOST_UPDATES = 256


@onnx_import("TensorScatter")
def tensor_scatter(
    past: TensorVariable,
    update: TensorVariable,
    write_indices: TensorVariable | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> TensorVariable:
    """Write steps of sequences to a cache, each batch from a position of its own."""
    position, rank = axis % past.type.ndim, past.type.ndim
    steps = _as_axis(pt.arange(size(update, position)), position, rank)
    if write_indices is not None:
        steps = steps + write_indices.dimshuffle(0, *["x"] * (rank - 1))
    if mode == "circular":
        steps = pt.mod(steps, size(past, position))
    places = [_as_axis(pt.arange(size(update, a)), a, rank) for a in range(rank)]
    places[position] = steps
    return pt.set_subtensor(past[tuple(places)], update)


@onnx_import("Compress")
def compress(
    x: TensorVariable, condition: TensorVariable, *, axis: int | None = None
) -> TensorVariable:
    """Take the elements where a vector of booleans is true, which may be shorter than the axis."""
    (places,) = pt.nonzero(condition)
    return x.reshape((-1,))[places] if axis is None else x.take(places, axis=axis)


@onnx_import("NonZero")
def nonzero(x: TensorVariable) -> TensorVariable:
    """Return the indices of nonzero elements, one row for each axis."""
    if x.type.ndim == 0:
        return pt.zeros((0, pt.neq(x, like(x, 0)).astype("int64")), dtype="int64")
    return pt.stack(pt.nonzero(x))


@onnx_import("OneHot")
def one_hot(
    indices: TensorVariable, depth: TensorVariable, values: TensorVariable, *, axis: int = -1
) -> TensorVariable:
    """Place one value at each index along a new axis, another elsewhere; outside, nowhere."""
    number = known(depth)
    count: Size = depth.reshape(()).astype("int64") if number is None else int(number.item())
    position = axis % (indices.type.ndim + 1)
    whole = pt.expand_dims(indices.astype("int64"), position)
    numbers = pt.constant(np.arange(count)) if isinstance(count, int) else pt.arange(count)
    places = _as_axis(numbers, position, indices.type.ndim + 1)
    is_there = pt.eq(whole, places) | pt.eq(whole + count, places)
    return pt.switch(is_there, values[1], values[0])
