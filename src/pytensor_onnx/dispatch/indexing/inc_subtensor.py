"""Assignment to, and increments of, the elements that an index selects."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

from pytensor_onnx.dispatch.indexing.advanced_subtensor import (
    AdvancedIndex,
    along_axis,
    checked_mask,
    leading_order,
    lower_node,
    merge_axes,
    positions_of,
    put_view,
    read_index,
    take,
    view_of,
)
from pytensor_onnx.dispatch.indexing.index_arrays import (
    Axis,
    as_positions,
    as_vector,
    axes_of,
    broadcast_arrays,
    dims_along,
    moved,
    nonzero,
    nonzero_matrix,
    sizes_of,
    stack,
    true_count,
    unsqueezed,
)
from pytensor_onnx.dispatch.indexing.subtensor import Entry, entries_of, select
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import concatenated, vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import Dims, constant_ints

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


@onnx_funcify.register(AdvancedIncSubtensor)
def lower_advanced_inc_subtensor(
    op: AdvancedIncSubtensor,
    node: Apply,
    build: Builder,
    x: ir.Value,
    y: ir.Value,
    *values: ir.Value,
) -> ir.Value:
    """Scatter into the view of the basic part of the index, and write the view back.

    Of several values for one position, the last one in row-major order of the index is kept.
    """
    index = _read_index(op, node, values)
    if not index.arrays:
        basic = IncSubtensor(index.idx_list, set_instead_of_inc=op.set_instead_of_inc)
        put = basic.make_node(*node.inputs[:2], *index.variables)
        return lower_node(build, put, x, y, *index.values)
    dtype = _dtype_of_result(op, node, build)
    view = build.cast(view_of(build, node, index, x), dtype)
    update = _Update(build.cast(y, dtype), _may_grow(op, node), adds=not op.set_instead_of_inc)
    if update.adds and op.ignore_duplicates:
        taken = take(build, view, index)
        update = _Update(_add(build, taken, update.fitted_to(build, taken)), None, adds=False)
    updated = build.cast(_apply(build, view, update, index), node.outputs[0].type.dtype)
    return put_view(build, node, index, x, updated)


def _read_index(op: AdvancedIncSubtensor, node: Apply, values: Sequence[ir.Value]) -> AdvancedIndex:
    """Read an index; scalars become arrays if all of them then index the leading axes."""
    index = read_index(op, node, values)
    if index.arrays and not index.views_all:
        joined = read_index(op, node, values, scalars_as_arrays=True)
        if joined.views_all and joined.axes == list(range(len(joined.axes))):
            return joined
    return index


def _dtype_of_result(op: AdvancedIncSubtensor, node: Apply, build: Builder) -> np.dtype:
    x, y = (np.dtype(variable.type.dtype) for variable in node.inputs[:2])
    common = np.result_type(x, y)
    # Integers wrap around equally in all dtypes of the sum.
    if op.set_instead_of_inc or x == common or (x.kind in "iu" and y.kind in "iu"):
        return x
    if x.kind == "f":
        return common
    raise build.unsupported(
        f"incrementing {x} by {y} rounds after every step", f"cast the increment to {x}"
    )


def _may_grow(op: AdvancedIncSubtensor, node: Apply) -> Sequence[bool] | None:
    """Return the axes along which the values may broadcast, or None if they may along every axis.

    For a single vector as index, PyTensor allows it only if the type has a size of one.
    """
    index = node.inputs[2].type
    if op.idx_list == (0,) and index.ndim == 1 and index.dtype != "bool":
        return node.inputs[1].type.broadcastable
    return None


class _Update(NamedTuple):
    """Values that replace elements of an array, or are added to them."""

    values: ir.Value
    may_grow: Sequence[bool] | None
    adds: bool

    @property
    def reduction(self) -> dict[str, str]:
        """The `reduction` attribute of a scatter."""
        return {"reduction": "add"} if self.adds else {}

    def fitted(self, build: Builder, target: Sequence[Axis]) -> ir.Value:
        """Return the values broadcast to sizes; the scatter refuses other sizes."""
        values, surplus = self.values, len(build.dims(self.values)) - len(target)
        if surplus > 0:
            values = build.Squeeze(values, build.ints(range(surplus)))
        own, wanted = build.dims(values), dims_along(build, target)
        if own == wanted and None not in wanted:
            return values
        sizes = [build.size(value, axis) for value, axis in target]
        for axis, grows in enumerate(reversed(self.may_grow or ())):
            if not grows and axis < len(own):
                sizes[-1 - axis] = build.constant(np.int64(1))
        if len(own) == len(target) and all(_is_one(size) for size in sizes):
            return values
        return build.Expand(values, vector_of(build, sizes))

    def fitted_to(self, build: Builder, place: ir.Value) -> ir.Value:
        """Return the values in a form that an elementwise operator broadcasts to a target."""
        own, wanted = build.dims(self.values), build.dims(place)
        inner = wanted[len(wanted) - len(own) :]
        if len(own) <= len(wanted) and all(
            size == 1 or (size is not None and size == known)
            for size, known in zip(own, inner, strict=True)
        ):
            return self.values
        shape = build.shape(place)
        values = self.fitted(build, axes_of(place, range(len(wanted))))
        return build.Reshape(values, shape, allowzero=1)


def _is_one(size: ir.Value) -> bool:
    return size.const_value is not None and int(size.const_value.numpy()) == 1


def _apply(build: Builder, x: ir.Value, update: _Update, index: AdvancedIndex) -> ir.Value:
    """Set or add values at the positions of the arrays of an index."""
    first = index.arrays[0]
    if len(index.arrays) > 1:
        return _apply_at_points(build, x, update, index)
    if not first.is_mask:
        if first.axis == 0 == index.position:
            points = unsqueezed(build, as_positions(build, first.index), [first.rank])
            return _scatter_points(build, x, update, points, index)
        positions = as_positions(build, first.index)
        return _scatter_along(build, x, update, positions, first.axis, index.position)
    return _apply_by_mask(build, x, update, index)


def _apply_at_points(
    build: Builder, x: ir.Value, update: _Update, index: AdvancedIndex
) -> ir.Value:
    arrays = positions_of(build, x, index)
    along = along_axis(build, x, index.axes, arrays)
    if along is None:
        points = stack(build, broadcast_arrays(build, arrays))
        return _scatter_points(build, x, update, points, index)
    target = axes_of(along.positions, range(len(build.dims(along.positions))))
    if along.inserted:
        del target[along.axis]
    values = update.fitted(build, target)
    values = unsqueezed(build, values, [along.axis] if along.inserted else [])
    return build.ScatterElements(x, along.positions, values, axis=along.axis, **update.reduction)


def _apply_by_mask(build: Builder, x: ir.Value, update: _Update, index: AdvancedIndex) -> ir.Value:
    """Choose between old and new values that are constant along the mask, or scatter."""
    [mask] = index.arrays
    condition = checked_mask(build, x, mask)
    after = len(build.dims(x)) - mask.axis - mask.rank
    own = build.dims(update.values)
    place = len(own) - 1 - after
    if index.position == mask.axis and (place < 0 or own[place] == 1):
        axes = range(max(place, 0), place + mask.rank - 1) if place >= 0 else ()
        values = unsqueezed(build, update.values, list(axes))
        values = update._replace(values=values).fitted_to(build, x)
        rank = mask.rank + after
        condition = unsqueezed(build, condition, list(range(mask.rank, rank)))
        return build.Where(condition, _add(build, x, values) if update.adds else values, x)
    count = true_count(build, mask.index)
    if mask.axis == 0 == index.position:
        if condition.const_value is not None:
            points = stack(build, nonzero(build, condition, mask.rank))
        else:
            points = build.Transpose(
                nonzero_matrix(build, condition, mask.rank, count), perm=[1, 0]
            )
        return _scatter_points(build, x, update, points, index)
    merged, vector = merge_axes(build, x, mask, condition)
    [positions] = nonzero(build, vector, 1, count)
    updated = _scatter_along(build, merged, update, positions, mask.axis, index.position)
    return updated if merged is x else build.Reshape(updated, build.shape(x), allowzero=1)


def _scatter_points(
    build: Builder, x: ir.Value, update: _Update, points: ir.Value, index: AdvancedIndex
) -> ir.Value:
    """Scatter rows to points, given by their positions along the indexed axes."""
    order = leading_order(build, x, index)
    rest, width = order[len(index.axes) :], len(build.dims(points)) - 1
    target = axes_of(x, rest)
    target[index.position : index.position] = axes_of(points, range(width))
    values = moved(build, update.fitted(build, target), index.position, width, 0)
    in_order = order == sorted(order)
    front = x if in_order else build.Transpose(x, perm=order)
    updated = build.ScatterND(front, points, values, **update.reduction)
    return updated if in_order else build.Transpose(updated, perm=np.argsort(order).tolist())


def _scatter_along(
    build: Builder, x: ir.Value, update: _Update, positions: ir.Value, axis: int, position: int
) -> ir.Value:
    """Scatter along one axis; the values have the axes of the positions at `position`."""
    rank, width = len(build.dims(x)), len(build.dims(positions))
    before, after = axes_of(x, range(axis)), axes_of(x, range(axis + 1, rank))
    target = [*before, *after]
    target[position:position] = axes_of(positions, range(width))
    values = moved(build, update.fitted(build, target), position, width, axis)
    vector = as_vector(build, positions)
    shape = sizes_of(build, [*before, *axes_of(vector, [0]), *after])
    if width != 1:
        values = build.Reshape(values, shape, allowzero=1)
    column = unsqueezed(build, vector, list(range(1, rank - axis)))
    places = column if rank == 1 else build.Expand(column, shape)
    return build.ScatterElements(x, places, values, axis=axis, **update.reduction)
