"""Blockwise: an operation on the last axes, repeated over those before."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify

BATCHING = (Dot,)
"""Ops whose lowering works on the last axes, whatever stands before them."""


@onnx_funcify.register(Blockwise)
def lower_blockwise(op: Blockwise, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the core Op where its ONNX form repeats over leading axes by itself."""
    if isinstance(op.core_op, BATCHING):
        return onnx_funcify(op.core_op, node, onnx, *inputs)
    raise onnx.unsupported(
        f"no lowering is registered for {type(op.core_op).__name__} over a batch",
        "write the expression with supported operations, or loop over the batch with pytensor.scan",
    )
