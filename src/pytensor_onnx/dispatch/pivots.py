"""Lower the positions of pivots."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.marks import mark_guarded
from pytensor_onnx.ops.pivots import NextPivot, PivotPosition


@onnx_funcify.register(PivotPosition)
def lower_pivot_position(op: PivotPosition, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Return the position of the largest magnitude, without the guard that NaN would need."""
    position = onnx.ArgMax(onnx.Abs(x), axis=op.axis, keepdims=0)
    mark_guarded(position)
    return position


@onnx_funcify.register(NextPivot)
def lower_next_pivot(
    op: NextPivot, node: Apply, onnx: Builder, column: ir.Value, candidates: ir.Value
) -> list[ir.Value]:
    """Return the position, the pivot and the other candidates; an exchange takes two operators."""
    magnitudes = onnx.Abs(onnx.GatherElements(column, candidates, axis=0))
    position = onnx.ArgMax(magnitudes, axis=0, keepdims=1)
    mark_guarded(position)
    first = onnx.Gather(candidates, onnx.ints([0]), axis=0)
    exchanged = onnx.ScatterElements(candidates, position, first, axis=0)
    end = onnx.ints([np.iinfo(np.int64).max])
    left = onnx.Slice(exchanged, onnx.ints([1]), end, onnx.ints([0]))
    return [position, onnx.Gather(candidates, position, axis=0), left]
