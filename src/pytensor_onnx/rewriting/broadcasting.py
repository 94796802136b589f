"""Axes that only serve broadcasting are added late, where ONNX needs no node for them."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from pytensor_onnx.rewriting.query import register_onnx


@register_onnx
@node_rewriter([Elemwise])
def add_leading_axes_last(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Compute an operation of one operand before leading axes are added to it, not after.

    The size that a mean divides by is then a number, which needs no axes.
    """
    if len(node.inputs) != 1 or len(node.outputs) != 1:
        return None
    added = node.inputs[0].owner
    if added is None or not isinstance(added.op, DimShuffle) or not added.op.is_left_expand_dims:
        return None
    result = added.op(node.op(*added.inputs))
    copy_stack_trace(node.outputs[0], result)
    return [result]
