"""Axes that are not needed between operations."""

import onnx_ir as ir

from pytensor_onnx.digests import content_key
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.operators.dims import constant_ints, dims_of
from pytensor_onnx.operators.entries import ELEMENTWISE
from pytensor_onnx.operators.inference import attribute_of, dtype_of
from pytensor_onnx.operators.reductions import REDUCTIONS
from pytensor_onnx.passes.matching import (
    constant_of,
    is_operator,
    required,
    reshape_constant,
    sole_producer,
)
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder, emit_alike

# Drop leading axes of size one from operands that ONNX broadcasts anyway.
#
# PyTensor gives all operands of an elementwise operation, and of a batched product, the same rank;
# ONNX aligns them at the last axis. So a bias stays a vector, weights stay a matrix, a number stays
# a number, and the node that adds the axes is removed.
#
# A constant of one element is not relied on for the rank of a result: ONNX Runtime fuses such a
# factor into operators that take it for a number, and the axis would be lost.


@model_pass(
    family="shape",
    purpose="size",
    identity="x[None] + y = x + y",
    requires="another operand gives the result its rank",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def drop_leading_axes(model: ir.Model, scope: ModelScope) -> int:
    """Drop leading axes of size one if another operand gives the result its rank."""
    count = 0
    for node in list(nodes_of_model(model)):
        if is_operator(node, "Unsqueeze"):
            count += _bypass(node, model.graph)
    for value in list(model.graph.initializers.values()):
        count += _shrink(value, model.graph, scope)
    return count


def _bypass(node: ir.Node, graph: ir.Graph) -> int:
    """Connect the users of an Unsqueeze that adds leading axes to its operand."""
    (operand, axes), result = map(required, node.inputs), node.outputs[0]
    numbers = constant_ints(axes)
    if numbers is None or result.shape is None:
        return 0
    added = sorted(axis % len(result.shape) for axis in numbers)
    if added != list(range(len(added))):
        return 0
    count = 0
    for user, position in list(result.uses()):
        if _broadcasts_without(user, result, len(result.shape) - len(added)):
            user.replace_input_with(position, operand)
            count += 1
    if not result.uses() and not result.is_graph_output() and node.graph is not None:
        node.graph.remove(node, safe=True)
        if not axes.uses():
            _remove_constant(axes, graph)
    return count


def _remove_constant(value: ir.Value, graph: ir.Graph) -> None:
    """Remove a constant, which in a function is the result of a node."""
    node = value.producer()
    if node is None:
        graph.initializers.pop(str(value.name), None)
    elif node.graph is not None:
        node.graph.remove(node, safe=True)


def _shrink(value: ir.Value, graph: ir.Graph, scope: ModelScope) -> int:
    """Store a constant without its leading axes if none of its users needs them."""
    array = constant_of(value)
    if array is None:
        return 0
    kept = 0 if array.size == 1 else next((i for i, n in enumerate(array.shape) if n != 1), 0)
    shape = () if array.size == 1 else array.shape[kept:]
    uses = list(value.uses())
    if shape == array.shape or not all(
        _broadcasts_without(user, value, len(shape)) for user, _ in uses
    ):
        return 0
    small = array.reshape(shape)
    content = content_key(array)
    other = scope.initializers.get((shape, content))
    if other is None and shape:
        reshape_constant(value, shape, scope)
        return len(uses)
    other = other or Builder(scope).constant(small)
    for user, position in uses:
        user.replace_input_with(position, other)
    del graph.initializers[str(value.name)]
    if other.name not in graph.initializers:
        graph.register_initializer(other)
    return len(uses)


def _broadcasts_without(node: ir.Node, value: ir.Value, rank: int) -> bool:
    """Return whether another operand than this value gives the node its rank."""
    shape = node.outputs[0].shape
    return (
        not node.domain
        and (node.op_type in ELEMENTWISE or (node.op_type == "MatMul" and rank >= 2))
        and shape is not None
        and any(
            other is not None
            and other is not value
            and other.shape is not None
            and len(other.shape) == len(shape)
            and not (other.const_value is not None and other.const_value.size == 1)
            for other in node.inputs
        )
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
    if reduction is None or attribute_of(reduction, "keepdims") != 0:
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
