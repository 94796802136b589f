"""Lower the creation, joining and splitting of tensors."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant
from pytensor.scalar.basic import discrete_dtypes
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

from pytensor_onnx.compat.pytensor import message_of_alloc
from pytensor_onnx.dispatch.control_flow.raise_op import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import equate_sizes, vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.sizes import sizes_in

_LONGEST_RANGE = 2**53


@onnx_funcify.register(TensorFromScalar)
@onnx_funcify.register(ScalarFromTensor)
def lower_scalar_conversion(
    op: TensorFromScalar | ScalarFromTensor, node: Apply, build: Builder, x: ir.Value
) -> ir.Value:
    """Return the input, as a scalar is a 0-d tensor."""
    return x


@onnx_funcify.register(Alloc)
def lower_alloc(
    op: Alloc, node: Apply, build: Builder, value: ir.Value, *sizes: ir.Value
) -> ir.Value:
    """Broadcast a value to a shape, along the axes with a static size of one.

    The other axes must have the size of the shape; unknown sizes are checked at run time.
    """
    shape = vector_of(build, sizes)
    if isinstance(node.inputs[0], Constant) and node.inputs[0].data.size == 1:
        return build.ConstantOfShape(shape, value=np.asarray(node.inputs[0].data).reshape(1))
    dims, wanted = dims_of(value), sizes_in(shape)
    if dims is not None and dims == wanted and None not in dims:
        return value
    first = len(sizes) - node.inputs[0].type.ndim
    equal = {
        axis: sizes[first + axis]
        for axis, static in enumerate(node.inputs[0].type.shape)
        if static != 1
    }
    equate_sizes(build, value, equal)
    conditions = [
        build.Equal(build.size(value, axis), build.cast(size, "int64"))
        for axis, size in equal.items()
    ]
    error = ValueError(message_of_alloc)
    return build.Expand(value, check_that(build, conditions, shape, error))


@onnx_funcify.register(AllocEmpty)
def lower_alloc_empty(op: AllocEmpty, node: Apply, build: Builder, *sizes: ir.Value) -> ir.Value:
    """Allocate zeros, as ONNX has no uninitialised memory."""
    return build.ConstantOfShape(vector_of(build, sizes), value=np.zeros(1, op.dtype))


@onnx_funcify.register(MakeVector)
def lower_make_vector(op: MakeVector, node: Apply, build: Builder, *elements: ir.Value) -> ir.Value:
    """Stack scalars."""
    return vector_of(build, elements, node.outputs[0].type.dtype)


@onnx_funcify.register(Join)
def lower_join(op: Join, node: Apply, build: Builder, *tensors: ir.Value) -> ir.Value:
    """Concatenate in the dtype of the result."""
    parts = [build.cast(x, node.outputs[0].type.dtype) for x in tensors]
    return build.Concat(*parts, axis=op.axis) if len(parts) > 1 else parts[0]


@onnx_funcify.register(Split)
def lower_split(
    op: Split, node: Apply, build: Builder, x: ir.Value, sizes: ir.Value
) -> list[ir.Value]:
    """Split into parts of the given sizes."""
    dims, known = dims_of(x), sizes_in(sizes) or (None,) * op.len_splits
    if op.len_splits == 1 and dims is not None and dims[op.axis] == known[0] is not None:
        return [x]
    parts = build.Split(x, build.cast(sizes, "int64"), axis=op.axis, outputs=op.len_splits)
    parts = [parts] if isinstance(parts, ir.Value) else parts
    for part, size in zip(parts, known, strict=False):
        if dims is not None:
            part.shape = ir.Shape([*dims[: op.axis], size, *dims[op.axis + 1 :]])
    return parts


@onnx_funcify.register(ARange)
def lower_arange(
    op: ARange, node: Apply, build: Builder, start: ir.Value, stop: ir.Value, step: ir.Value
) -> ir.Value:
    """Return a range as NumPy does, with the length computed from the uncast bounds."""
    if all(variable.type.dtype in discrete_dtypes for variable in node.inputs):
        bounds = [build.cast(x, "int64") for x in (start, stop, step)]
        return build.cast(build.Range(*bounds), op.dtype)
    return _float_range(build, start, stop, step, op.dtype)


def _float_range(
    build: Builder, start: ir.Value, stop: ir.Value, step: ir.Value, dtype: str
) -> ir.Value:
    """Multiply the step, as NumPy does, which is more accurate than adding it up."""
    wide_start, wide_stop, wide_step = (build.cast(x, "float64") for x in (start, stop, step))
    length = build.Ceil(build.Div(build.Sub(wide_stop, wide_start), wide_step))
    countable = build.Less(build.Abs(length), float(_LONGEST_RANGE))
    length = check_that(build, [countable], length, ValueError("arange: cannot compute length"))
    count = build.Range(np.int64(0), build.cast(length, "int64"), np.int64(1))
    second = build.cast(build.Add(wide_start, wide_step), dtype)
    compute = "float32" if dtype == "float16" else dtype
    first, second = build.cast(build.cast(start, dtype), compute), build.cast(second, compute)
    steps = build.Mul(build.cast(count, compute), build.Sub(second, first))
    return build.cast(build.Add(first, steps), dtype)
