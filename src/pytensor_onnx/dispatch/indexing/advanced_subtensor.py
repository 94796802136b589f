"""Lowerings of advanced indices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    flatten_index_variables,
    unflatten_index_variables,
)

from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.indexing.index_arrays import (
    as_positions,
    as_vector,
    broadcast_arrays,
    counts_whole_axis,
    moved,
    nonzero,
    sizes_of,
    stack,
    true_count,
    unsqueezed,
    varying_axes,
)
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import concatenated
from pytensor_onnx.graph.builder import Builder

# Split an advanced index into a basic one that selects a view, and arrays on the axes of the view.
#
# If the arrays are adjacent, their axes replace the indexed ones, otherwise they come first. A
# scalar counts as an array for this rule.

_WHOLE = slice(None)


@dataclass(frozen=True)
class IndexArray:
    """Array of integers that indexes one axis, or mask over as many axes as it has."""

    axis: int
    index: ir.Value
    is_mask: bool
    rank: int

    @property
    def axes(self) -> list[int]:
        """The indexed axes."""
        return list(range(self.axis, self.axis + (self.rank if self.is_mask else 1)))


class AdvancedIndex(NamedTuple):
    """Basic index, and arrays for axes of the view that it selects.

    Attributes
    ----------
    idx_list, values, variables
        The basic index in Subtensor's form, and the PyTensor variables of its values.
    arrays
        Arrays in the order of their axes.
    position
        Position of the axes of the arrays in the result.
    """

    idx_list: list[int | slice]
    values: list[ir.Value]
    variables: list[Variable]
    arrays: list[IndexArray]
    position: int

    @property
    def views_all(self) -> bool:
        """Whether the view is the whole array."""
        return all(entry == _WHOLE for entry in self.idx_list)

    @property
    def axes(self) -> list[int]:
        """The axes of the view that arrays index."""
        return [axis for array in self.arrays for axis in array.axes]


def read_index(
    op: AdvancedSubtensor | AdvancedIncSubtensor,
    node: Apply,
    values: Sequence[ir.Value],
    *,
    scalars_as_arrays: bool = False,
) -> AdvancedIndex:
    """Read the index of a node.

    Parameters
    ----------
    op, node
        The Op and its node, whose last inputs are the index.
    values
        Values of these inputs.
    scalars_as_arrays
        Whether scalars become arrays; by default they are part of the basic index.
    """
    inputs = node.inputs[len(node.inputs) - len(values) :]
    entries = unflatten_index_variables(values, op.idx_list)
    basic: list[ir.Value | slice] = []
    basic_variables: list[Variable | slice] = []
    arrays: list[IndexArray] = []
    view_axis = 0
    for entry, variable in zip(
        entries, unflatten_index_variables(inputs, op.idx_list), strict=True
    ):
        if isinstance(entry, slice):
            basic.append(entry)
            basic_variables.append(variable)
            view_axis += 1
        elif variable.type.ndim == 0 and not scalars_as_arrays:
            basic.append(entry)
            basic_variables.append(variable)
        else:
            is_mask = variable.type.dtype == "bool"
            array = IndexArray(view_axis, entry, is_mask, variable.type.ndim)
            arrays.append(array)
            basic += [_WHOLE] * len(array.axes)
            basic_variables += [_WHOLE] * len(array.axes)
            view_axis += len(array.axes)
    idx_list, flat = flatten_index_variables(basic)
    _, flat_variables = flatten_index_variables(basic_variables)
    return AdvancedIndex(idx_list, flat, flat_variables, arrays, _position(entries))


def _position(entries: Sequence[ir.Value | slice]) -> int:
    places = [place for place, entry in enumerate(entries) if not isinstance(entry, slice)]
    if not places or places != list(range(places[0], places[-1] + 1)):
        return 0
    return places[0]


def view_of(build: Builder, node: Apply, index: AdvancedIndex, x: ir.Value) -> ir.Value:
    """Return the view that the basic part of an index selects."""
    if index.views_all:
        return x
    view = Subtensor(index.idx_list).make_node(node.inputs[0], *index.variables)
    return lower_node(build, view, x, *index.values)


def put_view(
    build: Builder, node: Apply, index: AdvancedIndex, x: ir.Value, view: ir.Value
) -> ir.Value:
    """Return an array with the view of an index replaced."""
    if index.views_all:
        return view
    template = Subtensor(index.idx_list).make_node(node.inputs[0], *index.variables)
    op = IncSubtensor(index.idx_list, set_instead_of_inc=True)
    put = op.make_node(node.inputs[0], template.outputs[0].type(), *index.variables)
    return lower_node(build, put, x, view, *index.values)


def lower_node(build: Builder, node: Apply, *values: ir.Value) -> ir.Value:
    """Lower a node outside of the graph, for given values of its inputs."""
    lowered = onnx_funcify(node.op, node, build, *values)
    if not isinstance(lowered, ir.Value):
        raise TypeError(f"{node.op} has more than one result")
    return lowered


@onnx_funcify.register(AdvancedSubtensor)
def lower_advanced_subtensor(
    op: AdvancedSubtensor, node: Apply, build: Builder, x: ir.Value, *values: ir.Value
) -> ir.Value:
    """Apply the basic part of the index, then gather."""
    index = read_index(op, node, values)
    return take(build, view_of(build, node, index, x), index)


def take(build: Builder, x: ir.Value, index: AdvancedIndex) -> ir.Value:
    """Return the elements that the arrays of an index select."""
    if not index.arrays:
        return x
    if len(index.arrays) > 1:
        return _take_points(build, x, index)
    array = index.arrays[0]
    selected, width = (_compress if array.is_mask else _gather)(build, x, array)
    return moved(build, selected, array.axis, width, index.position)


def _gather(build: Builder, x: ir.Value, array: IndexArray) -> tuple[ir.Value, int]:
    positions = array.index
    if positions.dtype != ir.DataType.INT32:
        positions = as_positions(build, positions)
    return build.Gather(x, positions, axis=array.axis), array.rank


def _compress(build: Builder, x: ir.Value, mask: IndexArray) -> tuple[ir.Value, int]:
    """Compress by a mask, with the axes of the mask merged into one."""
    condition = checked_mask(build, x, mask)
    if condition.const_value is None and mask.rank == len(build.dims(x)):
        selected = build.Compress(x, as_vector(build, condition))
        selected.shape = ir.Shape([true_count(build, mask.index)])
        return selected, 1
    merged, condition = merge_axes(build, x, mask, condition)
    if condition.const_value is not None:
        [positions] = nonzero(build, condition, 1)
        return build.Gather(merged, positions, axis=mask.axis), 1
    selected = build.Compress(merged, condition, axis=mask.axis)
    dims = list(build.dims(merged))
    dims[mask.axis] = true_count(build, mask.index)
    selected.shape = ir.Shape(dims)
    return selected, 1


def checked_mask(build: Builder, x: ir.Value, mask: IndexArray) -> ir.Value:
    """Return a mask with checked sizes: Compress would accept a shorter one."""
    covered = slice(mask.axis, mask.axis + mask.rank)
    wanted = build.sizes(x, covered.start, covered.stop)
    own = build.shape(mask.index)
    canonical = build.scope.dims.canonical
    pairs = list(zip(build.dims(mask.index), build.dims(x)[covered], strict=True))
    if all(canonical(a) == canonical(b) for a, b in pairs):
        return mask.index
    equal = build.Equal(own, wanted)
    if mask.rank == 1:
        condition = build.Squeeze(equal, build.ints([0]))
    else:
        condition = build.cast(build.ReduceMin(build.cast(equal, "uint8"), keepdims=0), "bool")
    where = ", ".join(map(str, mask.axes))
    error = IndexError(f"boolean index did not match indexed array along axis {where}")
    checked = check_that(build, [condition], mask.index, error)
    build.equate_sizes(pairs)
    return checked


def merge_axes(
    build: Builder, x: ir.Value, mask: IndexArray, condition: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Merge the axes of a mask into one, and flatten the mask."""
    if mask.rank == 1:
        return x, condition
    vector = as_vector(build, condition)
    rank = len(build.dims(x))
    shape = [
        build.sizes(x, 0, mask.axis),
        build.sizes(vector, 0, 1),
        build.sizes(x, mask.axis + mask.rank, rank),
    ]
    return build.Reshape(x, concatenated(build, shape), allowzero=1), vector


def _take_points(build: Builder, x: ir.Value, index: AdvancedIndex) -> ir.Value:
    """Gather by several arrays that broadcast against each other."""
    arrays = positions_of(build, x, index)
    along = along_axis(build, x, index.axes, arrays)
    if along is not None:
        selected = build.GatherElements(x, along.positions, axis=along.axis)
        return build.Squeeze(selected, build.ints([along.axis])) if along.inserted else selected
    batch = _batched_positions(build, x, index.axes, arrays)
    if batch is not None:
        return build.GatherND(x, batch, batch_dims=len(index.axes) - 1)
    if _are_orthogonal(build, arrays):
        return _take_grid(build, x, index, arrays)
    order = leading_order(build, x, index)
    front = x if order == sorted(order) else build.Transpose(x, perm=order)
    points = stack(build, broadcast_arrays(build, arrays))
    selected = build.GatherND(front, points)
    return moved(build, selected, 0, len(build.dims(points)) - 1, index.position)


def leading_order(build: Builder, x: ir.Value, index: AdvancedIndex) -> list[int]:
    """Return the axes of an array with the indexed ones first."""
    return [*index.axes, *(axis for axis in range(len(build.dims(x))) if axis not in index.axes)]


def positions_of(build: Builder, x: ir.Value, index: AdvancedIndex) -> list[ir.Value]:
    """Return an array of integers for each indexed axis."""
    arrays: list[ir.Value] = []
    for array in index.arrays:
        if array.is_mask:
            arrays += nonzero(
                build, checked_mask(build, x, array), array.rank, true_count(build, array.index)
            )
        else:
            arrays.append(as_positions(build, array.index))
    return arrays


class AlongAxis(NamedTuple):
    """Positions along one axis, with the sizes of the array along all others.

    Attributes
    ----------
    inserted
        Whether the index lacks that axis; the positions have size one along it.
    """

    axis: int
    positions: ir.Value
    inserted: bool


def along_axis(
    build: Builder, x: ir.Value, axes: Sequence[int], arrays: Sequence[ir.Value]
) -> AlongAxis | None:
    """Recognise one array that indexes an axis while the others enumerate their axes."""
    rank = len(build.dims(x))
    index_rank = max(len(build.dims(array)) for array in arrays)
    if list(axes) != list(range(rank)) or index_rank not in (rank, rank - 1):
        return None
    others = [axis for axis in axes if not _counts_axis(build, x, axis, arrays[axis], index_rank)]
    inserted = index_rank < rank
    if len(others) != 1 or (inserted and others[0] != rank - 1):
        return None
    [axis] = others
    missing = range(index_rank - len(build.dims(arrays[axis])))
    positions = unsqueezed(build, arrays[axis], [*missing, *([axis] if inserted else [])])
    fitted = _fitted_but(build, positions, x, rank, [axis])
    return None if fitted is None else AlongAxis(axis, fitted, inserted)


def _batched_positions(
    build: Builder, x: ir.Value, axes: Sequence[int], arrays: Sequence[ir.Value]
) -> ir.Value | None:
    """Recognise one array that indexes an axis while earlier ones enumerate their axes."""
    rank, last = max(len(build.dims(array)) for array in arrays), len(arrays) - 1
    if list(axes) != list(range(len(arrays))) or rank < last:
        return None
    if not all(_counts_axis(build, x, axis, arrays[axis], rank) for axis in range(last)):
        return None
    fitted = _fitted_but(build, arrays[-1], x, rank, range(last, rank))
    return None if fitted is None else unsqueezed(build, fitted, [rank])


def _counts_axis(build: Builder, x: ir.Value, axis: int, array: ir.Value, rank: int) -> bool:
    """Return whether an array enumerates the positions of an axis along that axis."""
    return varying_axes(build, array, rank) == [axis] and counts_whole_axis(
        build, array, build.dims(x)[axis]
    )


def _fitted_but(
    build: Builder, array: ir.Value, x: ir.Value, rank: int, free: Sequence[int]
) -> ir.Value | None:
    """Return an array broadcast to a rank, and to another's sizes except along some axes.

    None if its sizes are not known to be these or one.
    """
    array = unsqueezed(build, array, list(range(rank - len(build.dims(array)))))
    own, wanted = build.dims(array), build.dims(x)
    bound = [axis for axis in range(rank) if axis not in free]
    if any(wanted[axis] is None or own[axis] not in (1, wanted[axis]) for axis in bound):
        return None
    if all(own[axis] == wanted[axis] for axis in bound):
        return array
    sizes = [(array, axis) if axis in free else (x, axis) for axis in range(rank)]
    return build.Expand(array, sizes_of(build, sizes))


def _are_orthogonal(build: Builder, arrays: Sequence[ir.Value]) -> bool:
    rank = max(len(build.dims(array)) for array in arrays)
    varying = [varying_axes(build, array, rank) for array in arrays]
    distinct = {axis for axes in varying for axis in axes}
    return all(len(axes) == 1 for axes in varying) and len(distinct) == len(arrays)


def _take_grid(
    build: Builder, x: ir.Value, index: AdvancedIndex, arrays: Sequence[ir.Value]
) -> ir.Value:
    """Gather along one axis after the other, by arrays that each vary along their own axis."""
    rank = max(len(build.dims(array)) for array in arrays)
    source: dict[int, int] = {}
    for axis, array in zip(index.axes, arrays, strict=True):
        [varying] = varying_axes(build, array, rank)
        source[varying] = axis
        x = build.Gather(x, as_vector(build, array), axis=axis)
    rest = [axis for axis in range(len(build.dims(x))) if axis not in index.axes]
    block = [source[axis] for axis in sorted(source)]
    order = rest[: index.position] + block + rest[index.position :]
    if order != sorted(order):
        x = build.Transpose(x, perm=order)
    return unsqueezed(
        build, x, [index.position + axis for axis in range(rank) if axis not in source]
    )
