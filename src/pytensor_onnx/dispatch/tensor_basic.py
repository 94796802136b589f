"""Creation and joining of tensors."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    Join,
    MakeVector,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
)

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.shape import vector_of


@onnx_funcify.register(TensorFromScalar)
@onnx_funcify.register(ScalarFromTensor)
def lower_scalar_conversion(
    op: TensorFromScalar | ScalarFromTensor, node: Apply, onnx: Builder, x: ir.Value
) -> ir.Value:
    """Return the input: a scalar is a 0-d tensor."""
    return x


@onnx_funcify.register(Alloc)
def lower_alloc(
    op: Alloc, node: Apply, onnx: Builder, value: ir.Value, *sizes: ir.Value
) -> ir.Value:
    """Broadcast a value to a shape."""
    shape = vector_of(onnx, list(sizes)) if sizes else onnx.ints([])
    if isinstance(node.inputs[0], Constant) and node.inputs[0].data.size == 1:
        fill = np.asarray(node.inputs[0].data).reshape(1)
        if shape.const_value is None:
            return onnx.ConstantOfShape(shape, value=fill)
        value = onnx.constant(fill.reshape(()))
    return onnx.Expand(value, shape)


@onnx_funcify.register(AllocEmpty)
def lower_alloc_empty(op: AllocEmpty, node: Apply, onnx: Builder, *sizes: ir.Value) -> ir.Value:
    """Make zeros: ONNX has no uninitialised memory."""
    shape = vector_of(onnx, list(sizes)) if sizes else onnx.ints([])
    return onnx.ConstantOfShape(shape, value=np.zeros(1, node.outputs[0].type.dtype))


@onnx_funcify.register(MakeVector)
def lower_make_vector(op: MakeVector, node: Apply, onnx: Builder, *elements: ir.Value) -> ir.Value:
    """Stack scalars."""
    dtype = node.outputs[0].type.dtype
    if not elements:
        return onnx.constant(np.empty(0, dtype))
    if dtype == "int64":
        return vector_of(onnx, list(elements))
    parts = [onnx.Reshape(onnx.cast(x, dtype), onnx.ints([1])) for x in elements]
    return onnx.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]


@onnx_funcify.register(Join)
def lower_join(op: Join, node: Apply, onnx: Builder, *tensors: ir.Value) -> ir.Value:
    """Concatenate in the dtype of the result."""
    parts = [onnx.cast(x, node.outputs[0].type.dtype) for x in tensors]
    return onnx.Concat(*parts, axis=op.axis) if len(parts) > 1 else parts[0]


@onnx_funcify.register(Split)
def lower_split(
    op: Split, node: Apply, onnx: Builder, x: ir.Value, sizes: ir.Value
) -> list[ir.Value]:
    """Split into parts of the given sizes."""
    if op.len_splits == 1:
        return [x]
    return onnx.Split(x, onnx.cast(sizes, "int64"), axis=op.axis, outputs=op.len_splits)


@onnx_funcify.register(ARange)
def lower_arange(
    op: ARange, node: Apply, onnx: Builder, start: ir.Value, stop: ir.Value, step: ir.Value
) -> ir.Value:
    """Count from start to stop in the dtype of the result."""
    dtype = node.outputs[0].type.dtype
    if dtype not in ("int16", "int32", "int64", "float32", "float64"):
        wide = "float32" if dtype == "float16" else "int64"
        return onnx.cast(onnx.Range(*(onnx.cast(x, wide) for x in (start, stop, step))), dtype)
    return onnx.Range(*(onnx.cast(x, dtype) for x in (start, stop, step)))
