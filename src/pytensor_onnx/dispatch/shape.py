"""Shapes: reading, changing and asserting them."""

from typing import Any

import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import onnx_funcify


@onnx_funcify.register(Shape)
def lower_shape(op: Shape, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Read the shape."""
    return onnx.shape(x)


@onnx_funcify.register(Shape_i)
def lower_shape_i(op: Shape_i, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Read the size of one axis."""
    return onnx.size(x, op.i)


@onnx_funcify.register(Reshape)
def lower_reshape(
    op: Reshape, node: Apply, onnx: Builder, x: ir.Value, shape: ir.Value
) -> ir.Value:
    """Reshape; at most one size is left open when all but one are known at export."""
    static = node.outputs[0].type.shape
    if all(size is not None for size in static):
        return onnx.Reshape(x, onnx.ints(static), allowzero=int(0 in static))
    if isinstance(node.inputs[1], Constant):
        sizes = [int(size) for size in node.inputs[1].data]
        return onnx.Reshape(x, onnx.ints(sizes), allowzero=int(0 in sizes))
    return onnx.Reshape(x, onnx.cast(shape, "int64"), allowzero=1)


@onnx_funcify.register(SpecifyShape)
def lower_specify_shape(
    op: SpecifyShape, node: Apply, onnx: Builder, x: ir.Value, *shape: Any
) -> ir.Value:
    """Return the input: a size asserted at export is part of the type, which runtimes check."""
    return x


@onnx_funcify.register(JoinDims)
def lower_join_dims(op: JoinDims, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Merge consecutive axes into one."""
    static = node.outputs[0].type.shape
    if all(size is not None for size in static):
        return onnx.Reshape(x, onnx.ints(static), allowzero=int(0 in static))
    first, last = op.start_axis, op.start_axis + op.n_axes
    rank = node.inputs[0].type.ndim
    if op.n_axes == 0:
        return onnx.Unsqueeze(x, onnx.ints([first]))
    shape = onnx.Shape(x)
    merged = onnx.ReduceProd(onnx.Slice(shape, [first], [last]), onnx.ints([0]), keepdims=1)
    parts = [merged]
    if first:
        parts.insert(0, onnx.Slice(shape, [0], [first]))
    if last < rank:
        parts.append(onnx.Slice(shape, [last], [rank]))
    target = onnx.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]
    return onnx.Reshape(x, target, allowzero=1)


@onnx_funcify.register(SplitDims)
def lower_split_dims(
    op: SplitDims, node: Apply, onnx: Builder, x: ir.Value, sizes: ir.Value
) -> ir.Value:
    """Split one axis into several."""
    static = node.outputs[0].type.shape
    if all(size is not None for size in static):
        return onnx.Reshape(x, onnx.ints(static), allowzero=int(0 in static))
    rank = node.inputs[0].type.ndim
    shape = onnx.Shape(x)
    parts = [onnx.cast(sizes, "int64")]
    if op.axis:
        parts.insert(0, onnx.Slice(shape, [0], [op.axis]))
    if op.axis + 1 < rank:
        parts.append(onnx.Slice(shape, [op.axis + 1], [rank]))
    target = onnx.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]
    return onnx.Reshape(x, target, allowzero=1)


def vector_of(onnx: Builder, sizes: list[ir.Value]) -> ir.Value:
    """Return 0-d integers as one 1-d int64 value, a constant where all of them are.

    Examples
    --------
    >>> import numpy as np
    >>> from pytensor_onnx.builder import Builder, ModelScope
    >>> onnx = Builder(ModelScope(21))
    >>> sizes = [onnx.constant(np.int64(2)), onnx.constant(np.int32(3))]
    >>> vector_of(onnx, sizes).const_value.numpy()
    array([2, 3])
    """
    known = [size.const_value for size in sizes]
    if all(value is not None for value in known):
        return onnx.ints([int(value.numpy()) for value in known if value is not None])
    parts = [onnx.Reshape(onnx.cast(size, "int64"), onnx.ints([1])) for size in sizes]
    return onnx.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]
