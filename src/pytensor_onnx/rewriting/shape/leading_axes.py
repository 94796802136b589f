"""Move leading axes behind elementwise operations, where ONNX needs no node for them."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Elemwise],
    family="shape",
    purpose="size",
    identity="f(x[None]) = f(x)[None]",
    requires="an elementwise operation of one operand",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def add_leading_axes_last(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Add leading axes after an elementwise operation of one operand, not before.

    The size by which a mean divides is then a number without axes.
    """
    if len(node.inputs) != 1 or len(node.outputs) != 1:
        return None
    added = made_by(node.inputs[0], DimShuffle)
    if added is None or not added.op.is_left_expand_dims:
        return None
    result = added.op(node.op(*added.inputs))
    copy_stack_trace(node.outputs[0], result)
    return [result]
