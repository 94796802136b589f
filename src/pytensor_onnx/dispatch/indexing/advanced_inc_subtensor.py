"""Lower setting and incrementing by an advanced index."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

from pytensor_onnx.dispatch.indexing.advanced_index import (
    AdvancedIndex,
    lower_node,
    put_view,
    read_index,
    view_of,
)
from pytensor_onnx.dispatch.indexing.advanced_subtensor import (
    along_axis,
    checked_mask,
    leading_order,
    merge_axes,
    positions_of,
    take,
)
from pytensor_onnx.dispatch.indexing.index_arrays import (
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
from pytensor_onnx.dispatch.indexing.nonzero import nonzero, nonzero_matrix, true_count
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import vector_of
from pytensor_onnx.graph.builder import Builder


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


def _add(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return build.Or(x, y) if x.dtype == ir.DataType.BOOL else build.Add(x, y)


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
