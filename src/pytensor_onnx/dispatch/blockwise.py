"""Blockwise: an operation on the last axes, repeated over those before."""

from collections.abc import Sequence

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.batch_loop import batch_size, loop_over_batch
from pytensor_onnx.dispatch.function import batches


def needs_no_loop(op: Op) -> bool:
    """Return whether a batch of an Op is lowered at once.

    Examples
    --------
    >>> from pytensor.tensor.math import Dot
    >>> needs_no_loop(Dot())
    True
    """
    lowering = onnx_funcify.dispatch(type(op))
    return batches(op) or getattr(lowering, "works_on_last_axes", False)


@onnx_funcify.register(Blockwise)
def lower_blockwise(op: Blockwise, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the core Op on all axes where its ONNX form batches by itself, else loop over them."""
    if not needs_no_loop(op.core_op):
        return loop_over_batch(op, node, onnx, inputs)
    if batches(op.core_op):
        inputs = tuple(_with_equal_batches(op, node, onnx, inputs))
    return onnx_funcify(op.core_op, node, onnx, *inputs)


def _with_equal_batches(
    op: Blockwise, node: Apply, onnx: Builder, inputs: Sequence[ir.Value]
) -> Sequence[ir.Value]:
    """Return the operands, their batch axes broadcast where they are not alike."""
    n_batch = op.batch_ndim(node)
    patterns = [variable.type.broadcastable[:n_batch] for variable in node.inputs]
    if len(set(patterns)) <= 1:
        return inputs
    batch = [batch_size(axis, node, onnx, tuple(inputs)) for axis in range(n_batch)]
    whole = tuple(map(all, zip(*patterns, strict=True)))
    return [
        x
        if pattern == whole
        else onnx.Expand(
            x, onnx.Concat(*batch, *([onnx.sizes(x, n_batch, rank)] * (rank > n_batch)), axis=0)
        )
        for x, pattern, rank in zip(
            inputs, patterns, (len(onnx.dims(x)) for x in inputs), strict=True
        )
    ]
