"""Fusion of a Relu into the bounds of the Clip after it.

ONNX Runtime's optimizer does the same, and refuses the whole model where the bounds are float64.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.passes.rewriting import GraphLike, replace_node
from pytensor_onnx.scope import ModelScope, Names


def fuse_relu_clip(model: ir.Model, scope: ModelScope) -> int:
    """Let each Clip with constant bounds take what a Relu before it takes."""
    count = _fuse(model.graph, scope, scope.names)
    for function in model.functions.values():
        names = Names()
        for value in (*function.inputs, *(v for n in function.all_nodes() for v in n.outputs)):
            names.reserve(str(value.name))
        count += _fuse(function, scope, names, in_function=True)
    return count


def _fuse(owner: GraphLike, scope: ModelScope, names: Names, *, in_function: bool = False) -> int:
    count = 0
    for node in list(owner):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                count += _fuse(attribute.as_graph(), scope, names, in_function=in_function)
        relu = _relu_before(node)
        if relu is None:
            continue
        low, high = (_constant(bound) for bound in node.inputs[1:])
        builder = Builder(scope, in_function=in_function)
        builder.provenance = dict(node.metadata_props)
        raised = np.minimum(np.maximum(low, np.zeros_like(low)), high)
        replace_node(
            owner, node, builder, [builder.Clip(relu.inputs[0], raised, node.inputs[2])], names
        )
        rectified = relu.outputs[0]
        if relu.graph is not None and not (rectified.uses() or rectified.is_graph_output()):
            relu.graph.remove(relu, safe=True)
        count += 1
    return count


def _relu_before(node: ir.Node) -> ir.Node | None:
    """Return the Relu whose result a Clip with constant bounds takes."""
    if node.op_type != "Clip" or node.domain or len(node.inputs) != 3:
        return None
    x, *bounds = node.inputs
    relu = None if x is None else x.producer()
    is_relu = relu is not None and relu.op_type == "Relu" and not relu.domain
    return (
        relu
        if is_relu and all(b is not None and b.const_value is not None for b in bounds)
        else None
    )


def _constant(value: ir.Value | None) -> np.ndarray:
    if value is None or value.const_value is None:
        raise TypeError(f"{value} is not constant")
    return value.const_value.numpy()
