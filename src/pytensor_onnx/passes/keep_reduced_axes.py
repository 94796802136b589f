"""Reductions keep an axis as size one where a node after them would add it again."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import constant_ints, dims_of
from pytensor_onnx.passes.rewriting import replace_node
from pytensor_onnx.scope import ModelScope


def keep_reduced_axes(model: ir.Model, scope: ModelScope) -> int:
    """Replace a reduction and the Unsqueeze that adds the reduced axes again by one reduction."""
    count = 0
    for node in list(model.graph):
        reduction = _reduction_of_added_axes(node)
        if reduction is None:
            continue
        builder = Builder(scope)
        builder.provenance = dict(reduction.metadata_props)
        attributes = {k: v.value for k, v in reduction.attributes.items()} | {"keepdims": 1}
        result = builder.op(reduction.op_type, *reduction.inputs, **attributes)
        replace_node(model.graph, node, builder, [result], scope.names)
        model.graph.remove(reduction, safe=True)
        count += 1
    return count


def _reduction_of_added_axes(node: ir.Node) -> ir.Node | None:
    if node.op_type != "Unsqueeze" or node.domain or node.inputs[0] is None:
        return None
    reduced = node.inputs[0]
    reduction, added = reduced.producer(), constant_ints(node.inputs[1])
    if (
        reduction is None
        or added is None
        or reduction.domain
        or not reduction.op_type.startswith(("Reduce", "Arg"))
        or reduction.graph is not node.graph
        or reduced.is_graph_output()
        or len(reduced.uses()) > 1
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


def _reduced_axes(reduction: ir.Node) -> list[int] | None:
    axis = reduction.attributes.get("axis")
    if axis is not None:
        return [axis.as_int()]
    return constant_ints(reduction.inputs[1]) if len(reduction.inputs) > 1 else None
