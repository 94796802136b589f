"""Arrays of indices, positions of nonzero elements, and choices among arrays."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import Nonzero, PermuteRowElements

from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import concatenated, vector_of
from pytensor_onnx.dispatch.shape.tensor_basic import within_bounds
from pytensor_onnx.graph.builder import Builder, name_failure
from pytensor_onnx.operators.dims import Dim, Dims, broadcast, constant_ints, sizes_in
from pytensor_onnx.ops.elementwise import ChooseFrom

Axis = tuple[ir.Value, int]


def as_positions(build: Builder, index: ir.Value) -> ir.Value:
    """Convert an array of indices to int64.

    uint64 indices wrap around, as in NumPy.
    """
    if index.const_value is not None:
        return build.constant(index.const_value.numpy().astype("int64"))
    return build.cast(index, "int64")


def axes_of(value: ir.Value, axes: Sequence[int]) -> list[Axis]:
    """Return references to axes of a value, for `sizes_of`."""
    return [(value, axis) for axis in axes]


def dims_along(build: Builder, axes: Sequence[Axis]) -> Dims:
    """Return the dimensions of axes."""
    return tuple(build.dims(value)[axis] for value, axis in axes)


def sizes_of(build: Builder, axes: Sequence[Axis]) -> ir.Value:
    """Return the sizes of axes as a vector."""
    return vector_of(build, [build.size(value, axis) for value, axis in axes])


def broadcast_arrays(build: Builder, arrays: Sequence[ir.Value]) -> list[ir.Value]:
    """Broadcast arrays of indices against each other.

    An axis of unknown size may have size one at run time, so an Expand is needed unless all arrays
    with the axis share its name.
    """
    if all(array.const_value is not None for array in arrays):
        values = [array.const_value.numpy() for array in arrays if array.const_value is not None]
        return [build.constant(value) for value in np.broadcast_arrays(*values)]
    dims = reduce(broadcast, map(build.dims, arrays))
    if all(build.dims(array) == dims for array in arrays) and None not in dims:
        return list(arrays)
    if None in dims:
        whole = reduce(lambda a, b: _expand(build, a, build.shape(b)), arrays)
        shape = build.shape(whole)
        expanded = [whole, *(_expand(build, array, shape) for array in arrays[1:])]
    else:
        shape = sizes_of(
            build, [_source(build, arrays, axis - len(dims), dims) for axis in range(len(dims))]
        )
        expanded = [
            array if build.dims(array) == dims else _expand(build, array, shape) for array in arrays
        ]
    return expanded


def _expand(build: Builder, array: ir.Value, shape: ir.Value) -> ir.Value:
    """Expand an array of indices to a shape, by a node that fails as NumPy does."""
    expanded = build.Expand(array, shape)
    message = "shape mismatch: indexing arrays could not be broadcast together"
    name_failure(build, expanded, IndexError(message))
    return expanded


def _source(build: Builder, arrays: Sequence[ir.Value], axis: int, dims: Dims) -> Axis:
    """Return an axis, counted from the end, of an array with the size of the broadcast one."""
    for array in arrays:
        own = build.dims(array)
        if len(own) >= -axis and own[axis] == dims[axis]:
            return array, len(own) + axis
    raise ValueError(f"no array has the size {dims[axis]} along axis {axis}")


def stack(build: Builder, arrays: Sequence[ir.Value]) -> ir.Value:
    """Stack arrays of indices of one shape along a new last axis."""
    rank = len(build.dims(arrays[0]))
    if all(array.const_value is not None for array in arrays):
        values = [array.const_value.numpy() for array in arrays if array.const_value is not None]
        return build.constant(np.stack(values, axis=-1))
    columns = [unsqueezed(build, array, [rank]) for array in arrays]
    return build.Concat(*columns, axis=rank) if len(columns) > 1 else columns[0]


def unsqueezed(build: Builder, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Insert axes of size one at the given positions of the result."""
    if not axes:
        return value
    if value.const_value is not None:
        return build.constant(np.expand_dims(value.const_value.numpy(), tuple(axes)))
    return build.Unsqueeze(value, build.ints(axes))


def as_vector(build: Builder, array: ir.Value) -> ir.Value:
    """Flatten an array of indices."""
    if array.const_value is not None:
        return build.constant(array.const_value.numpy().reshape(-1))
    node = array.producer()
    while node is not None and node.op_type == "Unsqueeze" and len(build.dims(array)) > 1:
        array, node = node.inputs[0], node.inputs[0].producer()  # type: ignore[assignment, union-attr]
    return array if len(build.dims(array)) == 1 else build.Reshape(array, build.ints([-1]))


def moved(build: Builder, value: ir.Value, start: int, width: int, position: int) -> ir.Value:
    """Move a block of consecutive axes to another position.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=(2, 3, 4, 5))
    >>> build.dims(moved(build, x, 2, 2, 0))
    (4, 5, 2, 3)
    """
    axes = list(range(len(build.dims(value))))
    block, rest = axes[start : start + width], axes[:start] + axes[start + width :]
    order = rest[:position] + block + rest[position:]
    return value if order == axes else build.Transpose(value, perm=order)


def varying_axes(build: Builder, array: ir.Value, rank: int) -> list[int]:
    """Return the axes of a broadcast array along which an array may vary."""
    dims = build.dims(array)
    return [rank - len(dims) + axis for axis, dim in enumerate(dims) if dim != 1]


def counts_whole_axis(build: Builder, array: ir.Value, size: Dim) -> bool:
    """Return whether an array is known to enumerate an axis of a size along its varying axis."""
    if array.const_value is not None:
        values = array.const_value.numpy().reshape(-1)
        return values.size == size and bool((values == np.arange(values.size)).all())
    node = array.producer()
    while node is not None and node.op_type in ("Unsqueeze", "Reshape"):
        node = node.inputs[0].producer() if node.inputs[0] is not None else None
    if node is None or node.op_type != "Range" or size is None:
        return False
    start, stop, step = node.inputs
    return (constant_ints(start), sizes_in(stop), constant_ints(step)) == ([0], (size,), [1])


_COUNT = "pytensor_onnx.count"


@onnx_funcify.register(Nonzero)
def lower_nonzero(op: Nonzero, node: Apply, build: Builder, x: ir.Value) -> list[ir.Value]:
    """Return the positions along each axis; NaN counts as nonzero."""
    return nonzero(build, x, node.inputs[0].type.ndim, true_count(build, x))


def nonzero(build: Builder, x: ir.Value, rank: int, count: str | None = None) -> list[ir.Value]:
    """Return the positions of nonzero elements: a vector for each axis, constants for a constant.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    x
        Value of one dimension or more.
    rank
        Number of its dimensions.
    count
        Name of the dimension for the number of positions.
    """
    if x.const_value is not None:
        return [build.constant(axis) for axis in np.nonzero(x.const_value.numpy())]
    positions = nonzero_matrix(build, x, rank, count)
    if rank == 1:
        return [build.Squeeze(positions, build.ints([0]))]
    return [build.Gather(positions, np.int64(axis), axis=0) for axis in range(rank)]


def nonzero_matrix(build: Builder, x: ir.Value, rank: int, count: str | None = None) -> ir.Value:
    """Return the positions of the elements that are not zero, one in each column."""
    positions = build.NonZero(x)
    positions.shape = ir.Shape([rank, count])
    return positions


def true_count(build: Builder, x: ir.Value) -> str:
    """Return the name of the dimension for the number of elements that are not zero.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x, y = (ir.val(name, dtype=ir.DataType.BOOL, shape=("n",)) for name in "xy")
    >>> true_count(build, x), true_count(build, y), true_count(build, x)
    ('x_count', 'y_count', 'x_count')
    """
    if _COUNT not in x.meta:
        x.meta[_COUNT] = build.scope.dims.computed(f"{x.name or 'nonzero'}_count")
    return x.meta[_COUNT]


@onnx_funcify.register(ChooseFrom)
def lower_choose_from(
    op: ChooseFrom, node: Apply, build: Builder, numbers: ir.Value, *arrays: ir.Value
) -> ir.Value:
    """Select arrays by their numbers one after the other, which broadcasts all of them."""
    error = ValueError("invalid entry in choice array")
    numbers = build.cast(numbers, "int64")
    if op.is_stacked:
        index = within_bounds(build, numbers, build.size(arrays[0], 0), op.mode, error)
        return _gathered(node, build, index, arrays[0])
    count = build.constant(np.int64(len(arrays)))
    index = within_bounds(build, numbers, count, op.mode, error)
    chosen = arrays[-1]
    for number, array in reversed(list(enumerate(arrays))):
        chosen = build.Where(build.Equal(index, number), array, chosen)
    return chosen


@onnx_funcify.register(PermuteRowElements)
def lower_permute_row_elements(
    op: PermuteRowElements, node: Apply, build: Builder, x: ir.Value, permutation: ir.Value
) -> ir.Value:
    """Gather along the last axis, or scatter for the inverse, after broadcasting."""
    last = node.inputs[0].type.ndim - 1
    same = build.Equal(build.size(x, last), build.size(permutation, last))
    error = ValueError("a permutation has another length than the rows that it permutes")
    permutation = check_that(build, [same], build.cast(permutation, "int64"), error)
    rows = concatenated(build, [build.sizes(permutation, 0, last), build.ints([1])])
    x = _expanded(build, x, rows)
    permutation = _expanded(build, permutation, build.shape(x))
    if op.inverse:
        return build.ScatterElements(x, permutation, x, axis=last)
    return build.GatherElements(x, permutation, axis=last)


def _expanded(build: Builder, x: ir.Value, shape: ir.Value) -> ir.Value:
    """Broadcast a value to a shape; return the value if the shape is known to be its own."""
    grown = build.Expand(x, shape)
    return x if build.dims(grown) == build.dims(x) and None not in build.dims(x) else grown


def _gathered(node: Apply, build: Builder, index: ir.Value, choices: ir.Value) -> ir.Value:
    """Gather along the first axis of the choices, broadcast with the array of numbers."""
    rank = max(node.inputs[0].type.ndim, node.inputs[1].type.ndim - 1)
    missing = rank + 1 - node.inputs[1].type.ndim
    if missing:
        choices = build.Unsqueeze(choices, build.ints(range(1, 1 + missing)))
    index = _expanded(build, index, build.sizes(choices, 1, rank + 1))
    choices = _expanded(build, choices, concatenated(build, [build.ints([1]), build.shape(index)]))
    chosen = build.GatherElements(choices, build.Unsqueeze(index, build.ints([0])), axis=0)
    return build.Squeeze(chosen, build.ints([0]))
