"""Assignment to, and increments of, elements that integers and slices select."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import IncSubtensor

from pytensor_onnx.dispatch.indexing.subtensor import Entry, entries_of, select
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import concatenated, vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dims
from pytensor_onnx.graph.sizes import constant_ints

Combine = Callable[[Builder, ir.Value, ir.Value], ir.Value]

_LARGEST_CONSTANT_INDEX = 1024


@onnx_funcify.register(IncSubtensor)
def lower_inc_subtensor(
    op: IncSubtensor, node: Apply, build: Builder, x: ir.Value, y: ir.Value, *indices: ir.Value
) -> ir.Value:
    """Set or increment the selected elements, in the simplest form that the index allows."""
    entries = entries_of(op, build, indices)
    combine = _replace if op.set_instead_of_inc else _add
    y = build.cast(y, node.outputs[0].type.dtype)
    return _update(build, x, y, entries, combine, zeros=_is_zeros(node.inputs[0]))


def _update(
    build: Builder,
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
        return combine(build, x, _broadcast_to(build, y, build.dims(x), [build.shape(x)]))
    first_slice = next((i for i, e in enumerate(entries) if isinstance(e, slice)), len(entries))
    if first_slice:
        return _update_one_row(build, x, y, entries, first_slice, combine, zeros=zeros)
    constant = _constant_index(entries)
    dims = build.dims(x)
    if constant is not None:
        axis = _lone_slice(constant, dims)
        if axis is not None:
            return _update_between(build, x, y, axis, constant[axis], combine, zeros=zeros)
        positions = _constant_positions(constant, dims)
        if positions is not None:
            kept = positions.shape[:-1]
            sizes = [build.ints(kept), build.sizes(x, len(entries), len(dims))]
            y = _broadcast_to(build, y, (*kept, *dims[len(entries) :]), sizes)
            return _scatter(build, x, build.constant(positions), y, combine)
        axis = _lone_integer(constant, dims)
        if axis is not None:
            following = len(dims) - 1 - axis
            if len(build.dims(y)) > following:
                y = build.Unsqueeze(y, build.ints([len(build.dims(y)) - following]))
            at = constant[axis] % dims[axis]
            return _update_between(build, x, y, axis, slice(at, at + 1), combine, zeros=zeros)
    return _update_rows(build, x, y, entries, combine)


def _update_one_row(
    build: Builder,
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
        row = select(build, x, entries[:depth])
        y, combine = _update(build, row, y, entries[depth:], combine, zeros=zeros), _replace
    position = vector_of(build, [entry for entry in entries[:depth] if isinstance(entry, ir.Value)])
    if position.const_value is not None:
        index = build.constant(position.const_value.numpy()[None])
    else:
        index = build.Unsqueeze(position, build.ints([0]))
    rank = len(build.dims(x))
    y = _broadcast_to(build, y, build.dims(x)[depth:], [build.sizes(x, depth, rank)])
    return _scatter(build, x, index, build.Unsqueeze(y, build.ints([0])), combine)


def _update_between(
    build: Builder,
    x: ir.Value,
    y: ir.Value,
    axis: int,
    entry: slice,
    combine: Combine,
    *,
    zeros: bool,
) -> ir.Value:
    """Join the parts before, in and after a slice whose bounds are known; pad where x is zero."""
    dims, rank = build.dims(x), len(build.dims(x))
    size = int(dims[axis] or 0)
    start, stop, _ = entry.indices(size)
    stop = max(start, stop)
    inner = (*dims[:axis], stop - start, *dims[axis + 1 :])
    sizes = [build.sizes(x, 0, axis), build.ints([stop - start]), build.sizes(x, axis + 1, rank)]
    y = _broadcast_to(build, y, inner, sizes)
    if zeros:
        pads = np.zeros((2, rank), dtype="int64")
        pads[:, axis] = start, size - stop
        return build.Pad(y, build.constant(pads.reshape(-1))) if pads.any() else y

    def part(low: int, high: int) -> ir.Value:
        return build.Slice(x, build.ints([low]), build.ints([high]), build.ints([axis]))

    parts = [y if combine is _replace else combine(build, part(start, stop), y)]
    if start > 0:
        parts.insert(0, part(0, start))
    if stop < size:
        parts.append(part(stop, size))
    return build.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


def _update_rows(
    build: Builder, x: ir.Value, y: ir.Value, entries: Sequence[Entry], combine: Combine
) -> ir.Value:
    """Scatter the rows whose positions the index selects from the positions of all rows.

    A row is the subarray at one position along the indexed axes, which come first.
    """
    depth, dims, rank = len(entries), build.dims(x), len(build.dims(x))
    count = reduce(build.Mul, [build.size(x, axis) for axis in range(depth)])
    positions = build.Range(np.int64(0), count, np.int64(1))
    if depth > 1:
        positions = build.Reshape(positions, build.sizes(x, 0, depth), allowzero=1)
    positions = select(build, positions, entries)
    rest = build.sizes(x, depth, rank)
    selected = (*build.dims(positions), *dims[depth:])
    y = _broadcast_to(build, y, selected, [build.shape(positions), rest])
    if depth == 1:
        return _scatter(build, x, build.Unsqueeze(positions, build.ints([1])), y, combine)
    index = build.Reshape(positions, build.ints([-1, 1]))
    if len(build.dims(positions)) > 1:
        flat = concatenated(build, [build.sizes(index, 0, 1), rest])
        y = build.Reshape(y, flat, allowzero=1)
    rows = concatenated(build, [build.Unsqueeze(count, build.ints([0])), rest])
    scattered = _scatter(build, build.Reshape(x, rows, allowzero=1), index, y, combine)
    return build.Reshape(scattered, build.shape(x), allowzero=1)


def _scatter(
    build: Builder, x: ir.Value, index: ir.Value, y: ir.Value, combine: Combine
) -> ir.Value:
    reduction = {} if combine is _replace else {"reduction": "add"}
    return build.ScatterND(x, index, y, **reduction)


def _replace(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return y


def _add(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return build.Or(x, y) if x.dtype == ir.DataType.BOOL else build.Add(x, y)


def _broadcast_to(build: Builder, y: ir.Value, dims: Dims, sizes: Sequence[ir.Value]) -> ir.Value:
    """Return a value broadcast to sizes as in an assignment: nothing else may grow.

    Expand would let sizes of one in the target grow as well; the Reshape after it refuses that.
    """
    surplus = len(build.dims(y)) - len(dims)
    if surplus > 0:
        y = build.Squeeze(y, build.ints(range(surplus)))
    own = build.dims(y)
    if own == dims and None not in dims:
        return y
    shape = concatenated(build, sizes)
    expanded = build.Expand(y, shape)
    fits = all(
        a == 1 or (a is not None and a == b)
        for a, b in zip(own, dims[len(dims) - len(own) :], strict=True)
    )
    if not fits:
        expanded = build.Reshape(expanded, shape, allowzero=1)
    expanded.shape = ir.Shape(dims)
    return expanded


def _constant_index(entries: Sequence[Entry]) -> list[Any] | None:
    """Return an index as Python numbers and slices, with None for entries that are not constant."""
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
