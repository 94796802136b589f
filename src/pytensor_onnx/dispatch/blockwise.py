"""Blockwise: an operation on the last axes, repeated over those before."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.extra_ops import SearchsortedOp
from pytensor.tensor.math import Dot

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.batch_loop import loop_over_batch

BATCHING = (Dot, SearchsortedOp)
"""Ops whose lowering works on the last axes, whatever stands before them."""


@onnx_funcify.register(Blockwise)
def lower_blockwise(op: Blockwise, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the core Op on all axes where its ONNX form batches by itself, else loop over them."""
    if isinstance(op.core_op, BATCHING):
        return onnx_funcify(op.core_op, node, onnx, *inputs)
    return loop_over_batch(op, node, onnx, inputs)
