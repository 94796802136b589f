"""Lower setting and incrementing by an advanced index."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

from pytensor_onnx.dispatch.advanced_index import (
    AdvancedIndex,
    lower_node,
    put_view,
    read_index,
    view_of,
)
from pytensor_onnx.dispatch.advanced_subtensor import (
    along_axis,
    checked_mask,
    leading_order,
    merge_axes,
    positions_of,
    take,
)
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.index_arrays import (
    Axis,
    as_positions,
    as_vector,
    axes_of,
    broadcast_arrays,
    dims_along,
    moved,
    sizes_of,
    stack,
    unsqueezed,
)
from pytensor_onnx.dispatch.nonzero import nonzero, nonzero_matrix, true_count
from pytensor_onnx.dispatch.shape import vector_of
from pytensor_onnx.graph.builder import Builder


@onnx_funcify.register(AdvancedIncSubtensor)
def lower_advanced_inc_subtensor(
    op: AdvancedIncSubtensor,
    node: Apply,
    onnx: Builder,
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
        return lower_node(onnx, put, x, y, *index.values)
    dtype = _dtype_of_result(op, node, onnx)
    view = onnx.cast(view_of(onnx, node, index, x), dtype)
    update = _Update(onnx.cast(y, dtype), _may_grow(op, node), adds=not op.set_instead_of_inc)
    if update.adds and op.ignore_duplicates:
        taken = take(onnx, view, index)
        update = _Update(_add(onnx, taken, update.fitted_to(onnx, taken)), None, adds=False)
    updated = onnx.cast(_apply(onnx, view, update, index), node.outputs[0].type.dtype)
    return put_view(onnx, node, index, x, updated)


def _read_index(op: AdvancedIncSubtensor, node: Apply, values: Sequence[ir.Value]) -> AdvancedIndex:
    """Read an index; scalars become arrays if all of them then index the leading axes."""
    index = read_index(op, node, values)
    if index.arrays and not index.views_all:
        joined = read_index(op, node, values, scalars_as_arrays=True)
        if joined.views_all and joined.axes == list(range(len(joined.axes))):
            return joined
    return index


def _dtype_of_result(op: AdvancedIncSubtensor, node: Apply, onnx: Builder) -> np.dtype:
    x, y = (np.dtype(variable.type.dtype) for variable in node.inputs[:2])
    common = np.result_type(x, y)
    # Integers wrap around equally in all dtypes of the sum.
    if op.set_instead_of_inc or x == common or (x.kind in "iu" and y.kind in "iu"):
        return x
    if x.kind == "f":
        return common
    raise onnx.unsupported(
        f"incrementing {x} by {y} rounds after every step", f"cast the increment to {x}"
    )


def _may_grow(op: AdvancedIncSubtensor, node: Apply) -> Sequence[bool] | None:
    """Return the axes along which the values may broadcast, None for all.

    For a single vector as index, PyTensor allows it only if the type has a size of one.
    """
    index = node.inputs[2].type
    if op.idx_list == (0,) and index.ndim == 1 and index.dtype != "bool":
        return node.inputs[1].type.broadcastable
    return None


class _Update(NamedTuple):
    """Values to set, or to add to the present ones."""

    values: ir.Value
    may_grow: Sequence[bool] | None
    adds: bool

    @property
    def reduction(self) -> dict[str, str]:
        """The `reduction` attribute of a scatter."""
        return {"reduction": "add"} if self.adds else {}

    def fitted(self, onnx: Builder, target: Sequence[Axis]) -> ir.Value:
        """Return the values broadcast to sizes; the scatter refuses other sizes."""
        values, surplus = self.values, len(onnx.dims(self.values)) - len(target)
        if surplus > 0:
            values = onnx.Squeeze(values, onnx.ints(range(surplus)))
        own, wanted = onnx.dims(values), dims_along(onnx, target)
        if own == wanted and None not in wanted:
            return values
        sizes = [onnx.size(value, axis) for value, axis in target]
        for axis, grows in enumerate(reversed(self.may_grow or ())):
            if not grows and axis < len(own):
                sizes[-1 - axis] = onnx.constant(np.int64(1))
        if len(own) == len(target) and all(_is_one(size) for size in sizes):
            return values
        return onnx.Expand(values, vector_of(onnx, sizes))

    def fitted_to(self, onnx: Builder, place: ir.Value) -> ir.Value:
        """Return the values in a form that an elementwise operator broadcasts to a target."""
        own, wanted = onnx.dims(self.values), onnx.dims(place)
        inner = wanted[len(wanted) - len(own) :]
        if len(own) <= len(wanted) and all(
            size == 1 or (size is not None and size == known)
            for size, known in zip(own, inner, strict=True)
        ):
            return self.values
        shape = onnx.shape(place)
        values = self.fitted(onnx, axes_of(place, range(len(wanted))))
        return onnx.Reshape(values, shape, allowzero=1)


def _is_one(size: ir.Value) -> bool:
    return size.const_value is not None and int(size.const_value.numpy()) == 1


def _add(onnx: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return onnx.Or(x, y) if x.dtype == ir.DataType.BOOL else onnx.Add(x, y)


def _apply(onnx: Builder, x: ir.Value, update: _Update, index: AdvancedIndex) -> ir.Value:
    """Set or add values at the positions of the arrays of an index."""
    first = index.arrays[0]
    if len(index.arrays) > 1:
        return _apply_at_points(onnx, x, update, index)
    if not first.is_mask:
        if first.axis == 0 == index.position:
            points = unsqueezed(onnx, as_positions(onnx, first.index), [first.rank])
            return _scatter_points(onnx, x, update, points, index)
        positions = as_positions(onnx, first.index)
        return _scatter_along(onnx, x, update, positions, first.axis, index.position)
    return _apply_by_mask(onnx, x, update, index)


def _apply_at_points(onnx: Builder, x: ir.Value, update: _Update, index: AdvancedIndex) -> ir.Value:
    arrays = positions_of(onnx, x, index)
    along = along_axis(onnx, x, index.axes, arrays)
    if along is None:
        points = stack(onnx, broadcast_arrays(onnx, arrays))
        return _scatter_points(onnx, x, update, points, index)
    target = axes_of(along.positions, range(len(onnx.dims(along.positions))))
    if along.inserted:
        del target[along.axis]
    values = update.fitted(onnx, target)
    values = unsqueezed(onnx, values, [along.axis] if along.inserted else [])
    return onnx.ScatterElements(x, along.positions, values, axis=along.axis, **update.reduction)


def _apply_by_mask(onnx: Builder, x: ir.Value, update: _Update, index: AdvancedIndex) -> ir.Value:
    """Choose between old and new values that are constant along the mask, or scatter."""
    [mask] = index.arrays
    condition = checked_mask(onnx, x, mask)
    after = len(onnx.dims(x)) - mask.axis - mask.rank
    own = onnx.dims(update.values)
    place = len(own) - 1 - after
    if index.position == mask.axis and (place < 0 or own[place] == 1):
        axes = range(max(place, 0), place + mask.rank - 1) if place >= 0 else ()
        values = unsqueezed(onnx, update.values, list(axes))
        values = update._replace(values=values).fitted_to(onnx, x)
        rank = mask.rank + after
        condition = unsqueezed(onnx, condition, list(range(mask.rank, rank)))
        return onnx.Where(condition, _add(onnx, x, values) if update.adds else values, x)
    count = true_count(onnx, mask.index)
    if mask.axis == 0 == index.position:
        if condition.const_value is not None:
            points = stack(onnx, nonzero(onnx, condition, mask.rank))
        else:
            points = onnx.Transpose(nonzero_matrix(onnx, condition, mask.rank, count), perm=[1, 0])
        return _scatter_points(onnx, x, update, points, index)
    merged, vector = merge_axes(onnx, x, mask, condition)
    [positions] = nonzero(onnx, vector, 1, count)
    updated = _scatter_along(onnx, merged, update, positions, mask.axis, index.position)
    return updated if merged is x else onnx.Reshape(updated, onnx.shape(x), allowzero=1)


def _scatter_points(
    onnx: Builder, x: ir.Value, update: _Update, points: ir.Value, index: AdvancedIndex
) -> ir.Value:
    """Scatter rows to points, given by their positions along the indexed axes."""
    order = leading_order(onnx, x, index)
    rest, width = order[len(index.axes) :], len(onnx.dims(points)) - 1
    target = axes_of(x, rest)
    target[index.position : index.position] = axes_of(points, range(width))
    values = moved(onnx, update.fitted(onnx, target), index.position, width, 0)
    in_order = order == sorted(order)
    front = x if in_order else onnx.Transpose(x, perm=order)
    updated = onnx.ScatterND(front, points, values, **update.reduction)
    return updated if in_order else onnx.Transpose(updated, perm=np.argsort(order).tolist())


def _scatter_along(
    onnx: Builder, x: ir.Value, update: _Update, positions: ir.Value, axis: int, position: int
) -> ir.Value:
    """Scatter along one axis; the values have the axes of the positions at `position`."""
    rank, width = len(onnx.dims(x)), len(onnx.dims(positions))
    before, after = axes_of(x, range(axis)), axes_of(x, range(axis + 1, rank))
    target = [*before, *after]
    target[position:position] = axes_of(positions, range(width))
    values = moved(onnx, update.fitted(onnx, target), position, width, axis)
    vector = as_vector(onnx, positions)
    shape = sizes_of(onnx, [*before, *axes_of(vector, [0]), *after])
    if width != 1:
        values = onnx.Reshape(values, shape, allowzero=1)
    column = unsqueezed(onnx, vector, list(range(1, rank - axis)))
    places = column if rank == 1 else onnx.Expand(column, shape)
    return onnx.ScatterElements(x, places, values, axis=axis, **update.reduction)
