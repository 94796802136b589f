"""Lower the positions of pivots."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.node_flags import mark_guarded
from pytensor_onnx.ops.linalg.pivot_ops import NextPivot, PivotPosition


@onnx_funcify.register(PivotPosition)
def lower_pivot_position(op: PivotPosition, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the position of the largest magnitude, without the guard that NaN would need."""
    position = build.ArgMax(build.Abs(x), axis=op.axis, keepdims=0)
    mark_guarded(position)
    return position


@onnx_funcify.register(NextPivot)
def lower_next_pivot(
    op: NextPivot, node: Apply, build: Builder, column: ir.Value, candidates: ir.Value
) -> list[ir.Value]:
    """Return the position, the pivot and the other candidates; an exchange takes two operators."""
    magnitudes = build.Abs(build.GatherElements(column, candidates, axis=0))
    position = build.ArgMax(magnitudes, axis=0, keepdims=1)
    mark_guarded(position)
    first = build.Gather(candidates, build.ints([0]), axis=0)
    exchanged = build.ScatterElements(candidates, position, first, axis=0)
    end = build.ints([np.iinfo(np.int64).max])
    left = build.Slice(exchanged, build.ints([1]), end, build.ints([0]))
    return [position, build.Gather(candidates, position, axis=0), left]
