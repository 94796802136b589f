"""Lower the positions of pivots."""

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.marks import mark_guarded
from pytensor_onnx.ops.pivots import PivotPosition


@onnx_funcify.register(PivotPosition)
def lower_pivot_position(op: PivotPosition, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Return the position of the largest magnitude, without the guard that NaN would need."""
    position = onnx.ArgMax(onnx.Abs(x), axis=op.axis, keepdims=0)
    mark_guarded(position)
    return position
