"""Conditionals, which become If: the branch that is not taken is not computed."""

import onnx_ir as ir
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import constant_ints
from pytensor_onnx.dispatch.basic import convert_inner, onnx_funcify


@onnx_funcify.register(LazyIfElse)
def lower_lazy_if_else(
    op: LazyIfElse, node: Apply, onnx: Builder, condition: ir.Value, *inputs: ir.Value
) -> list[ir.Value]:
    """Convert each branch into a subgraph, which refers to the values outside.

    Where the condition is known, there is one branch only.
    """
    condition = onnx.cast(condition, "bool")
    known = constant_ints(condition)
    if known is not None:
        chosen = op.true_branch if known[0] else op.false_branch
        return convert_inner(chosen.fgraph, onnx, inputs)

    def branch(graph: OpFromGraph) -> ir.Graph:
        builder = onnx.subgraph()
        return builder.graph([], convert_inner(graph.fgraph, builder, inputs))

    return onnx.if_else(condition, branch(op.true_branch), branch(op.false_branch))


@onnx_funcify.register(IfElse)
def lower_if_else(
    op: IfElse, node: Apply, onnx: Builder, condition: ir.Value, *values: ir.Value
) -> list[ir.Value]:
    """Choose between values that are computed already."""
    n = op.n_outs
    condition = onnx.cast(condition, "bool")
    known = constant_ints(condition)
    if known is not None:
        return list(values[:n] if known[0] else values[n:])

    def branch(chosen: tuple[ir.Value, ...]) -> ir.Graph:
        builder = onnx.subgraph()
        return builder.graph([], [builder.Identity(x) for x in chosen])

    return onnx.if_else(condition, branch(values[:n]), branch(values[n:]))
