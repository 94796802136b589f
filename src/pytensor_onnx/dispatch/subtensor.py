"""Basic indexing: integers and slices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, unflatten_index_variables

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import Dims, constant_ints, dims_of
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.shape import concatenated, vector_of

Entry = ir.Value | slice
Combine = Callable[[Builder, ir.Value, ir.Value], ir.Value]

_INT64_MAX = np.iinfo(np.int64).max
_INT64_MIN = np.iinfo(np.int64).min
# Runtimes take the largest integer for an open end, even where the slice goes backwards.
_PAST_THE_END = _INT64_MAX - 1
_LARGEST_CONSTANT_INDEX = 1024


@dataclass
class _Slices:
    """The operands of one ONNX Slice."""

    axes: list[int] = field(default_factory=list)
    starts: list[ir.Value] = field(default_factory=list)
    stops: list[ir.Value] = field(default_factory=list)
    steps: list[ir.Value] = field(default_factory=list)


@onnx_funcify.register(Subtensor)
def lower_subtensor(
    op: Subtensor, node: Apply, onnx: Builder, x: ir.Value, *indices: ir.Value
) -> ir.Value:
    """Slice in one operator, then gather the integers, one axis after the other."""
    return _select(onnx, x, _entries(op, onnx, indices))


def _entries(
    op: Subtensor | IncSubtensor, onnx: Builder, indices: Sequence[ir.Value]
) -> list[Entry]:
    return unflatten_index_variables([onnx.cast(i, "int64") for i in indices], op.idx_list)


def _select(onnx: Builder, x: ir.Value, entries: Sequence[Entry]) -> ir.Value:
    element = _known_element(x, entries)
    if element is not None:
        return element
    slices = _slices(onnx, x, entries)
    rest = _last_part(x, slices)
    if rest is not None:
        x = rest
    elif slices.axes:
        x = onnx.Slice(
            x,
            vector_of(onnx, slices.starts),
            vector_of(onnx, slices.stops),
            onnx.ints(slices.axes),
            vector_of(onnx, slices.steps),
        )
    for axis, entry in reversed(list(enumerate(entries))):
        if not isinstance(entry, slice):
            x = onnx.Gather(x, entry, axis=axis)
    return x


def _known_element(x: ir.Value, entries: Sequence[Entry]) -> ir.Value | None:
    """Return the only element of a value that was made by adding a first axis."""
    node = x.producer()
    if len(entries) != 1 or isinstance(entries[0], slice) or node is None:
        return None
    is_made = node.op_type == "Unsqueeze" and constant_ints(node.inputs[1]) == [0]
    return node.inputs[0] if is_made and constant_ints(entries[0]) in ([0], [-1]) else None


def _last_part(x: ir.Value, slices: _Slices) -> ir.Value | None:
    """Return the last of the parts that a value was joined of, where a slice leaves just that."""
    node = x.producer()
    if node is None or node.op_type != "Concat" or node.attributes["axis"].as_int() != 0:
        return None
    if slices.axes != [0] or [constant_ints(step) for step in slices.steps] != [[1]]:
        return None
    start, stop = constant_ints(slices.starts[0]), constant_ints(slices.stops[0])
    *first, last = node.inputs
    sizes = [(dims_of(part) or (None,))[0] for part in first]
    known = [size for size in sizes if isinstance(size, int)]
    is_cut_there = len(known) == len(sizes) and start == [sum(known)] and stop == [_INT64_MAX]
    return last if is_cut_there else None


def _slices(onnx: Builder, x: ir.Value, entries: Sequence[Entry]) -> _Slices:
    slices = _Slices()
    for axis, entry in enumerate(entries):
        if not isinstance(entry, slice) or entry == slice(None):
            continue
        step = onnx.constant(np.int64(1)) if entry.step is None else entry.step
        start = _bound(onnx, entry.start, step, at_start=True)
        stop = _bound(onnx, entry.stop, step, at_start=False)
        slices.axes.append(axis)
        slices.steps.append(step)
        slices.starts.append(start)
        slices.stops.append(_stop_before_the_front(onnx, x, axis, start, stop, step))
    return slices


def _bound(onnx: Builder, bound: ir.Value | None, step: ir.Value, *, at_start: bool) -> ir.Value:
    """Return a bound of a slice; an open one is the end that the sign of the step points from."""
    if bound is not None:
        return bound
    forward, backward = (0, _INT64_MAX) if at_start else (_INT64_MAX, _INT64_MIN)
    signs = constant_ints(step)
    if signs is not None:
        return onnx.constant(np.int64(forward if signs[0] > 0 else backward))
    return onnx.Where(onnx.Greater(step, 0), np.int64(forward), np.int64(backward))


def _stop_before_the_front(
    onnx: Builder, x: ir.Value, axis: int, start: ir.Value, stop: ir.Value, step: ir.Value
) -> ir.Value:
    """Return a stop that selects nothing where a backward slice starts before the first element.

    ONNX lets such a slice start at the first element.
    """
    first, signs = constant_ints(start), constant_ints(step)
    if (signs and signs[0] > 0) or (first and first[0] >= -1):
        return stop
    size = onnx.size(x, axis)
    known = constant_ints(size)
    if first and known:
        before_front = onnx.constant(np.bool_(first[0] + known[0] < 0))
    elif first:
        before_front = onnx.Less(size, -first[0])
    else:
        before_front = onnx.Less(start, onnx.Neg(size))
    if signs is None:
        before_front = onnx.And(before_front, onnx.Less(step, 0))
    if before_front.const_value is not None:
        return onnx.constant(np.int64(_PAST_THE_END)) if before_front.const_value.numpy() else stop
    return onnx.Where(before_front, np.int64(_PAST_THE_END), stop)


@onnx_funcify.register(IncSubtensor)
def lower_inc_subtensor(
    op: IncSubtensor, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value, *indices: ir.Value
) -> ir.Value:
    """Set or increment what the index selects, in the simplest form that the index allows."""
    entries = _entries(op, onnx, indices)
    combine = _replace if op.set_instead_of_inc else _add
    y = onnx.cast(y, node.outputs[0].type.dtype)
    return _update(onnx, x, y, entries, combine, zeros=_is_zeros(node.inputs[0]))


def _update(
    onnx: Builder,
    x: ir.Value,
    y: ir.Value,
    entries: Sequence[Entry],
    combine: Combine,
    *,
    zeros: bool = False,
) -> ir.Value:
    entries = list(entries)
    while entries and entries[-1] == slice(None):
        entries.pop()
    if not entries:
        return combine(onnx, x, _broadcast_to(onnx, y, onnx.dims(x), [onnx.shape(x)]))
    first_slice = next((i for i, e in enumerate(entries) if isinstance(e, slice)), len(entries))
    if first_slice:
        return _update_one_row(onnx, x, y, entries, first_slice, combine, zeros=zeros)
    constant = _constant_index(entries)
    dims = onnx.dims(x)
    if constant is not None:
        axis = _lone_slice(constant, dims)
        if axis is not None:
            return _update_between(onnx, x, y, axis, constant[axis], combine, zeros=zeros)
        positions = _constant_positions(constant, dims)
        if positions is not None:
            kept = positions.shape[:-1]
            sizes = [onnx.ints(kept), onnx.sizes(x, len(entries), len(dims))]
            y = _broadcast_to(onnx, y, (*kept, *dims[len(entries) :]), sizes)
            return _scatter(onnx, x, onnx.constant(positions), y, combine)
        axis = _lone_integer(constant, dims)
        if axis is not None:
            following = len(dims) - 1 - axis
            if len(onnx.dims(y)) > following:
                y = onnx.Unsqueeze(y, onnx.ints([len(onnx.dims(y)) - following]))
            at = constant[axis] % dims[axis]
            return _update_between(onnx, x, y, axis, slice(at, at + 1), combine, zeros=zeros)
    return _update_rows(onnx, x, y, entries, combine)


def _update_one_row(
    onnx: Builder,
    x: ir.Value,
    y: ir.Value,
    entries: Sequence[Entry],
    depth: int,
    combine: Combine,
    *,
    zeros: bool,
) -> ir.Value:
    """Update the one row that integers along the leading axes select, and put it back."""
    if depth < len(entries):
        row = _select(onnx, x, entries[:depth])
        y, combine = _update(onnx, row, y, entries[depth:], combine, zeros=zeros), _replace
    position = vector_of(onnx, [entry for entry in entries[:depth] if isinstance(entry, ir.Value)])
    if position.const_value is not None:
        index = onnx.constant(position.const_value.numpy()[None])
    else:
        index = onnx.Unsqueeze(position, onnx.ints([0]))
    rank = len(onnx.dims(x))
    y = _broadcast_to(onnx, y, onnx.dims(x)[depth:], [onnx.sizes(x, depth, rank)])
    return _scatter(onnx, x, index, onnx.Unsqueeze(y, onnx.ints([0])), combine)


def _update_between(
    onnx: Builder,
    x: ir.Value,
    y: ir.Value,
    axis: int,
    entry: slice,
    combine: Combine,
    *,
    zeros: bool,
) -> ir.Value:
    """Join what lies before, in and after a slice whose bounds are known; pad where x is zero."""
    dims, rank = onnx.dims(x), len(onnx.dims(x))
    size = int(dims[axis] or 0)
    start, stop, _ = entry.indices(size)
    stop = max(start, stop)
    inner = (*dims[:axis], stop - start, *dims[axis + 1 :])
    sizes = [onnx.sizes(x, 0, axis), onnx.ints([stop - start]), onnx.sizes(x, axis + 1, rank)]
    y = _broadcast_to(onnx, y, inner, sizes)
    if zeros:
        pads = np.zeros((2, rank), dtype="int64")
        pads[:, axis] = start, size - stop
        return onnx.Pad(y, onnx.constant(pads.reshape(-1))) if pads.any() else y

    def part(low: int, high: int) -> ir.Value:
        return onnx.Slice(x, onnx.ints([low]), onnx.ints([high]), onnx.ints([axis]))

    parts = [y if combine is _replace else combine(onnx, part(start, stop), y)]
    if start > 0:
        parts.insert(0, part(0, start))
    if stop < size:
        parts.append(part(stop, size))
    return onnx.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


def _update_rows(
    onnx: Builder, x: ir.Value, y: ir.Value, entries: Sequence[Entry], combine: Combine
) -> ir.Value:
    """Scatter the rows whose positions the index selects from the positions of all rows.

    A row is what lies at one position along the leading axes, those that the index touches.
    """
    depth, dims, rank = len(entries), onnx.dims(x), len(onnx.dims(x))
    count = reduce(onnx.Mul, [onnx.size(x, axis) for axis in range(depth)])
    positions = onnx.Range(np.int64(0), count, np.int64(1))
    if depth > 1:
        positions = onnx.Reshape(positions, onnx.sizes(x, 0, depth), allowzero=1)
    positions = _select(onnx, positions, entries)
    rest = onnx.sizes(x, depth, rank)
    selected = (*onnx.dims(positions), *dims[depth:])
    y = _broadcast_to(onnx, y, selected, [onnx.shape(positions), rest])
    if depth == 1:
        return _scatter(onnx, x, onnx.Unsqueeze(positions, onnx.ints([1])), y, combine)
    index = onnx.Reshape(positions, onnx.ints([-1, 1]))
    if len(onnx.dims(positions)) > 1:
        flat = concatenated(onnx, [onnx.sizes(index, 0, 1), rest])
        y = onnx.Reshape(y, flat, allowzero=1)
    rows = concatenated(onnx, [onnx.Unsqueeze(count, onnx.ints([0])), rest])
    scattered = _scatter(onnx, onnx.Reshape(x, rows, allowzero=1), index, y, combine)
    return onnx.Reshape(scattered, onnx.shape(x), allowzero=1)


def _scatter(
    onnx: Builder, x: ir.Value, index: ir.Value, y: ir.Value, combine: Combine
) -> ir.Value:
    reduction = {} if combine is _replace else {"reduction": "add"}
    return onnx.ScatterND(x, index, y, **reduction)


def _replace(onnx: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return y


def _add(onnx: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return onnx.Or(x, y) if x.dtype == ir.DataType.BOOL else onnx.Add(x, y)


def _broadcast_to(onnx: Builder, y: ir.Value, dims: Dims, sizes: Sequence[ir.Value]) -> ir.Value:
    """Return a value broadcast to sizes as in an assignment: nothing else may grow.

    Expand would let sizes of one in the target grow as well; the Reshape after it refuses that.
    """
    surplus = len(onnx.dims(y)) - len(dims)
    if surplus > 0:
        y = onnx.Squeeze(y, onnx.ints(range(surplus)))
    own = onnx.dims(y)
    if own == dims and None not in dims:
        return y
    shape = concatenated(onnx, sizes)
    expanded = onnx.Expand(y, shape)
    fits = all(
        a == 1 or (a is not None and a == b)
        for a, b in zip(own, dims[len(dims) - len(own) :], strict=True)
    )
    if not fits:
        expanded = onnx.Reshape(expanded, shape, allowzero=1)
    expanded.shape = ir.Shape(dims)
    return expanded


def _constant_index(entries: Sequence[Entry]) -> list[Any] | None:
    """Return an index as Python numbers and slices, None where a part of it is not constant."""
    index: list[Any] = []
    for entry in entries:
        is_slice = isinstance(entry, slice)
        parts = (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,)
        known = [None if part is None else constant_ints(part) for part in parts]
        if any(part is not None and ints is None for part, ints in zip(parts, known, strict=True)):
            return None
        numbers = [None if ints is None else ints[0] for ints in known]
        index.append(slice(*numbers) if is_slice else numbers[0])
    return index


def _lone_slice(index: Sequence[Any], dims: Dims) -> int | None:
    """Return the axis of a slice of step one along an axis of known size, if it stands alone."""
    *before, last = index
    axis = len(before)
    is_slice = isinstance(last, slice) and last.step in (None, 1)
    alone = all(entry == slice(None) for entry in before)
    return axis if is_slice and alone and isinstance(dims[axis], int) else None


def _lone_integer(index: Sequence[Any], dims: Dims) -> int | None:
    """Return the axis of an integer along an axis of known size, if it stands alone and fits."""
    *before, last = index
    axis = len(before)
    size = dims[axis]
    alone = all(entry == slice(None) for entry in before)
    is_integer = isinstance(size, int) and isinstance(last, int) and -size <= last < size
    return axis if is_integer and alone else None


def _constant_positions(index: Sequence[Any], dims: Dims) -> np.ndarray | None:
    """Return the positions that an index selects along the leading axes, if known and not many."""
    chosen: list[np.ndarray] = []
    kept: list[int] = []
    for entry, size in zip(index, dims, strict=False):
        if not isinstance(size, int) or not (isinstance(entry, slice) or -size <= entry < size):
            return None
        chosen.append(np.atleast_1d(np.arange(size)[entry]))
        if isinstance(entry, slice):
            kept.append(chosen[-1].size)
    if np.prod(kept) * len(index) > _LARGEST_CONSTANT_INDEX:
        return None
    grid = np.meshgrid(*chosen, indexing="ij")
    return np.stack(grid, axis=-1).reshape(*kept, len(index)).astype("int64")


def _is_zeros(variable: Variable) -> bool:
    if variable.owner is None or not isinstance(variable.owner.op, Alloc):
        return False
    fill = variable.owner.inputs[0]
    return Alloc.value_is_scalar_zero(fill) and not np.signbit(fill.data).any()
