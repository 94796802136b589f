"""Blockwise: an operation on the last axes, repeated over those before."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.batch_axes import with_equal_batches
from pytensor_onnx.dispatch.registry.batch_loop import loop_over_batch
from pytensor_onnx.functions.registry import defined_in_batches, needs_no_loop
from pytensor_onnx.graph.builder import Builder


@onnx_funcify.register(Blockwise)
def lower_blockwise(op: Blockwise, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the core Op on all axes where its ONNX form batches by itself, else loop over them."""
    if not needs_no_loop(op.core_op):
        return loop_over_batch(op, node, build, inputs)
    if defined_in_batches(op.core_op):
        n_batch = op.batch_ndim(node)
        patterns = [variable.type.broadcastable[:n_batch] for variable in node.inputs]
        cores = [variable.type.ndim - n_batch for variable in node.inputs]
        inputs = tuple(with_equal_batches(build, inputs, patterns, cores))
    return onnx_funcify(op.core_op, node, build, *inputs)
