"""Lower Fourier transforms to the operator of ONNX."""

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.fourier import StandardTransform

_FIRST_OPSET_WITH_AXIS_INPUT = 20


@onnx_funcify.register(StandardTransform)
def lower_standard_transform(
    op: StandardTransform, node: Apply, onnx: Builder, pairs: ir.Value
) -> ir.Value:
    """Transform along the last axis but one; the operator divides an inverse by the size."""
    rank = node.inputs[0].type.ndim
    # The operator needs an axis before the transformed one.
    if rank == 2:
        pairs = onnx.Unsqueeze(pairs, onnx.ints([0]))
    axis = max(rank - 2, 1)
    if onnx.scope.opset_version >= _FIRST_OPSET_WITH_AXIS_INPUT:
        result = onnx.DFT(pairs, None, onnx.constant(axis), inverse=int(op.inverse))
    else:
        result = onnx.DFT(pairs, axis=axis, inverse=int(op.inverse))
    if rank == 2:
        result = onnx.Squeeze(result, onnx.ints([0]))
    if not op.inverse:
        return result
    if op.size is not None:
        return onnx.Mul(result, op.size)
    size = onnx.Gather(onnx.shape(result), onnx.constant(-2), axis=0)
    return onnx.Mul(result, onnx.cast(size, node.outputs[0].type.dtype))
