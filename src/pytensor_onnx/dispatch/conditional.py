"""Conditionals, which become If: the branch that is not taken is not computed."""

import onnx_ir as ir
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import convert_inner, onnx_funcify


@onnx_funcify.register(LazyIfElse)
def lower_lazy_if_else(
    op: LazyIfElse, node: Apply, onnx: Builder, condition: ir.Value, *inputs: ir.Value
) -> list[ir.Value]:
    """Convert each branch into a subgraph, which refers to the values outside."""

    def branch(graph: OpFromGraph) -> ir.Graph:
        builder = onnx.subgraph()
        return builder.graph([], convert_inner(graph.fgraph, builder, inputs))

    return onnx.if_else(
        onnx.cast(condition, "bool"), branch(op.true_branch), branch(op.false_branch)
    )


@onnx_funcify.register(IfElse)
def lower_if_else(
    op: IfElse, node: Apply, onnx: Builder, condition: ir.Value, *values: ir.Value
) -> list[ir.Value]:
    """Choose between values that are computed already."""

    def branch(chosen: tuple[ir.Value, ...]) -> ir.Graph:
        builder = onnx.subgraph()
        return builder.graph([], [builder.Identity(x) for x in chosen])

    n = op.n_outs
    return onnx.if_else(
        onnx.cast(condition, "bool"),
        branch(values[:n]),
        branch(values[n:]),
    )
