"""Convert, broadcast, stack and analyse arrays of indices."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from pytensor_onnx.dispatch.shape.shapes import vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dim, Dims, broadcast
from pytensor_onnx.graph.failures import name_failure
from pytensor_onnx.graph.sizes import constant_ints, sizes_in

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
