"""Fusion of a Relu into the bounds of the Clip after it.

ONNX Runtime's optimizer does the same, and refuses the whole model where the bounds are float64. It
sees a Relu and bounds through the functions of the model too, which it puts in the place of their
calls first: a Max of one operand keeps them apart.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.passes.inlined import Inlined
from pytensor_onnx.passes.rewriting import replace_node
from pytensor_onnx.scope import ModelScope, names_in


def fuse_relu_clip(model: ir.Model, scope: ModelScope) -> int:
    """Let each Clip with constant bounds take what a Relu before it takes."""
    inlined = Inlined(model)
    count = 0
    for owner in inlined.owners:
        in_function = isinstance(owner, ir.Function)
        names = names_in(owner) if isinstance(owner, ir.Function) else scope.names
        for node in list(owner.all_nodes()):
            if not _is_refused(node, inlined):
                continue
            assert node.graph is not None
            onnx = Builder(scope, in_function=in_function)
            onnx.provenance = dict(node.metadata_props)
            x, low, high = node.inputs
            relu = _relu_before(node)
            if relu is None and node.outputs[0].dtype not in (None, ir.DataType.DOUBLE):
                continue
            if relu is None:
                result = onnx.Clip(onnx.Max(x), low, high)
            else:
                raised = np.clip(0, _constant(low), _constant(high))
                result = onnx.Clip(relu.inputs[0], raised.astype(_constant(low).dtype), high)
            replace_node(node.graph, node, onnx, [result], names)
            if relu is not None:
                _remove_unused(relu)
            count += 1
    return count


def _is_refused(node: ir.Node, inlined: Inlined) -> bool:
    """Return whether a Clip may take the result of a Relu, and constant bounds."""
    if node.op_type != "Clip" or node.domain or len(node.inputs) != 3:
        return False
    x, *bounds = ([] if v is None else inlined.origins(v) for v in node.inputs)
    return any(_is_relu(v.producer()) for v in x) and all(
        any(v in inlined.folded for v in bound) for bound in bounds
    )


def _relu_before(node: ir.Node) -> ir.Node | None:
    """Return the Relu just before a Clip, if the bounds are known there."""
    x, *bounds = node.inputs
    relu = None if x is None else x.producer()
    known = all(b is not None and b.const_value is not None for b in bounds)
    return relu if known and _is_relu(relu) else None


def _is_relu(node: ir.Node | None) -> bool:
    return node is not None and node.op_type == "Relu" and not node.domain


def _remove_unused(node: ir.Node) -> None:
    result = node.outputs[0]
    if node.graph is not None and not (result.uses() or result.is_graph_output()):
        node.graph.remove(node, safe=True)


def _constant(value: ir.Value | None) -> np.ndarray:
    if value is None or value.const_value is None:
        raise TypeError(f"{value} is not constant")
    return value.const_value.numpy()
