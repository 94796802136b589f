"""Replace a reduction and an Unsqueeze of the reduced axes by a reduction with `keepdims`."""

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import replace_node


@model_pass(
    family="reductions",
    purpose="size",
    identity="unsqueeze(sum(x)) = sum(x, keepdims=1)",
    begins_at=("Unsqueeze",),
    requires="the reduced axes",
)
def keep_reduced_axes(model: ir.Model, scope: ModelScope) -> int:
    """Replace a reduction, and the Unsqueeze that restores the reduced axes, by one reduction."""
    count = 0
    for node in list(model.graph):
        reduction = _reduction_of_added_axes(node)
        if reduction is None:
            continue
        builder = Builder(scope)
        builder.provenance = dict(reduction.metadata_props)
        attributes = {k: v.value for k, v in reduction.attributes.items()} | {"keepdims": 1}
        result = builder.op(reduction.op_type, *reduction.inputs, **attributes)
        between = _cast_of(node.inputs[0])
        if between is not None:
            result = builder.cast(result, dtype_of(node.outputs[0]))
        replace_node(model.graph, node, builder, [result], scope.names)
        model.graph.remove([n for n in (between, reduction) if n is not None], safe=True)
        count += 1
    return count


def _reduction_of_added_axes(node: ir.Node) -> ir.Node | None:
    if node.op_type != "Unsqueeze" or node.domain or node.inputs[0] is None:
        return None
    cast = _cast_of(node.inputs[0])
    if cast is not None and not _is_used_by(cast.outputs[0], node):
        return None
    reduced = node.inputs[0] if cast is None else cast.inputs[0]
    reduction = None if reduced is None else reduced.producer()
    added = constant_ints(node.inputs[1])
    if (
        reduced is None
        or reduction is None
        or added is None
        or reduction.domain
        or not reduction.op_type.startswith(("Reduce", "Arg"))
        or not _is_used_by(reduced, node if cast is None else cast)
    ):
        return None
    dims = dims_of(reduction.inputs[0])
    axes = _reduced_axes(reduction)
    keepdims = reduction.attributes.get("keepdims")
    if dims is None or axes is None or keepdims is None or keepdims.as_int():
        return None
    if len(axes) != len(added):
        return None
    rank = len(dims)
    return reduction if {a % rank for a in axes} == {a % rank for a in added} else None


def _cast_of(value: ir.Value | None) -> ir.Node | None:
    """Return the Cast that produces a value, as for a sum accumulated in another dtype."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == "Cast" else None


def _is_used_by(value: ir.Value, node: ir.Node) -> bool:
    """Return whether a value has one use, by the given node."""
    producer = value.producer()
    is_beside = producer is not None and producer.graph is node.graph
    return is_beside and not value.is_graph_output() and len(value.uses()) == 1


def _reduced_axes(reduction: ir.Node) -> list[int] | None:
    axis = reduction.attributes.get("axis")
    if axis is not None:
        return [axis.as_int()]
    return constant_ints(reduction.inputs[1]) if len(reduction.inputs) > 1 else None
