"""Replace a reduction and an Unsqueeze of the reduced axes by a reduction with `keepdims`."""

import onnx_ir as ir

from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.matching import sole_producer
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder, emit_alike

REDUCTIONS = (
    *("ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)


@node_rule(
    "Unsqueeze",
    family="reductions",
    purpose="size",
    identity="unsqueeze(sum(x)) = sum(x, keepdims=1)",
    requires="the reduced axes",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def keep_reduced_axes(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Replace a reduction, and the Unsqueeze that restores the reduced axes, by one reduction.

    A Cast may stand in between, as for a sum that is accumulated in another dtype.
    """
    cast = sole_producer(node.inputs[0], "Cast")
    reduction = sole_producer((node if cast is None else cast).inputs[0], *REDUCTIONS)
    if reduction is None or reduction.attributes.get_int("keepdims", 1) != 0:
        return None
    reduced, added = _reduced_axes(reduction), constant_ints(node.inputs[1])
    rank = len(dims_of(reduction.inputs[0]) or ())
    if not rank or reduced is None or added is None or len(reduced) != len(added):
        return None
    if {axis % rank for axis in reduced} != {axis % rank for axis in added}:
        return None
    build.credit(node, reduction)
    (result,) = emit_alike(build, reduction, reduction.inputs, keepdims=1)
    return build.cast(result, dtype_of(node.outputs[0]))


def _reduced_axes(reduction: ir.Node) -> list[int] | None:
    if "axis" in reduction.attributes:
        return [reduction.attributes["axis"].as_int()]
    return constant_ints(reduction.inputs[1]) if len(reduction.inputs) > 1 else None
