"""Fuse a Relu into the bounds of the following Clip."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import Form, constant_of, is_constant
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined


@model_pass(
    family="elementwise",
    purpose="correctness",
    identity="clip(relu(x), a, b) = clip(x, max(a, 0), max(b, 0))",
    begins_at=("Relu",),
    requires="constant bounds",
    ensures="no Clip after a Relu, which ONNX Runtime refuses in float64",
)
def fuse_relu_clip(model: ir.Model, scope: ModelScope) -> int:
    """Fuse a Relu into each Clip with constant bounds."""
    relus = []

    def form_of(node: ir.Node) -> Form | None:
        relu = _relu_before(node)
        if relu is None:
            return None
        relus.append(relu)
        return _fused

    count = Inlined(model).replace(scope, form_of)
    for relu in dict.fromkeys(relus):
        if relu.graph is not None and not (
            relu.outputs[0].uses() or relu.outputs[0].is_graph_output()
        ):
            relu.graph.remove(relu, safe=True)
    return count


def _fused(build: Builder, node: ir.Node) -> ir.Value:
    x, *bounds = node.inputs
    relu = None if x is None else x.producer()
    low, high = map(constant_of, bounds)
    if relu is None or low is None or high is None:
        raise TypeError("no Relu stands before the Clip, or its bounds are not constant")
    return build.Clip(relu.inputs[0], np.clip(np.zeros_like(low), low, high), node.inputs[2])


def _relu_before(node: ir.Node) -> ir.Node | None:
    """Return the Relu directly before a Clip with constant bounds."""
    if node.op_type != "Clip" or node.domain or len(node.inputs) != 3:
        return None
    x, *bounds = node.inputs
    relu = None if x is None else x.producer()
    is_relu = relu is not None and relu.op_type == "Relu" and not relu.domain
    return relu if is_relu and all(map(is_constant, bounds)) else None
