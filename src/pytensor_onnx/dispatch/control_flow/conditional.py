"""Lower conditionals to If, which computes only the selected branch."""

import onnx_ir as ir
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints


@onnx_funcify.register(LazyIfElse)
def lower_lazy_if_else(
    op: LazyIfElse, node: Apply, build: Builder, condition: ir.Value, *inputs: ir.Value
) -> list[ir.Value]:
    """Convert each branch to a subgraph that refers to outer values directly.

    A constant condition leaves one branch.
    """
    condition = build.cast(condition, "bool")
    known = constant_ints(condition)
    if known is not None:
        chosen = op.true_branch if known[0] else op.false_branch
        return convert_inner(chosen.fgraph, build, inputs)
    return build.cond(
        condition,
        lambda then: convert_inner(op.true_branch.fgraph, then, inputs),
        lambda otherwise: convert_inner(op.false_branch.fgraph, otherwise, inputs),
    )


@onnx_funcify.register(IfElse)
def lower_if_else(
    op: IfElse, node: Apply, build: Builder, condition: ir.Value, *values: ir.Value
) -> list[ir.Value]:
    """Choose between computed values."""
    n = op.n_outs
    condition = build.cast(condition, "bool")
    known = constant_ints(condition)
    if known is not None:
        return list(values[:n] if known[0] else values[n:])
    return build.cond(condition, lambda then: values[:n], lambda otherwise: values[n:])
