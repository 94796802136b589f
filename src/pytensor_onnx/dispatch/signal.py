"""Lower Fourier transforms to the operator of ONNX, and windows of signals."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import Bartlett

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.tensor_basic import count_up
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.signal import StandardTransform

_FIRST_OPSET_WITH_AXIS_INPUT = 20


@onnx_funcify.register(StandardTransform)
def lower_standard_transform(
    op: StandardTransform, node: Apply, build: Builder, pairs: ir.Value
) -> ir.Value:
    """Transform along the last axis but one; the operator divides an inverse by the size."""
    rank = node.inputs[0].type.ndim
    # The operator needs an axis before the transformed one.
    if rank == 2:
        pairs = build.Unsqueeze(pairs, build.ints([0]))
    axis = max(rank - 2, 1)
    if build.scope.opset_version >= _FIRST_OPSET_WITH_AXIS_INPUT:
        result = build.DFT(pairs, None, build.constant(axis), inverse=int(op.inverse))
    else:
        result = build.op("DFT", pairs, axis=axis, inverse=int(op.inverse))
    if rank == 2:
        result = build.Squeeze(result, build.ints([0]))
    if not op.inverse:
        return result
    if op.size is not None:
        return build.Mul(result, op.size)
    size = build.Gather(build.shape(result), build.constant(-2), axis=0)
    return build.Mul(result, build.cast(size, node.outputs[0].type.dtype))


@onnx_funcify.register(Bartlett)
def lower_bartlett(op: Bartlett, node: Apply, build: Builder, size: ir.Value) -> ir.Value:
    """Return a triangular window; a window of one element is one."""
    size = build.cast(size, "int64")
    last = build.Sub(size, 1)
    distance = build.Abs(build.Sub(build.Mul(count_up(build, size), 2), last))
    length = build.Where(build.Equal(last, 0), np.int64(1), last)
    return build.Sub(1.0, build.Div(build.cast(distance, "float64"), build.cast(length, "float64")))
