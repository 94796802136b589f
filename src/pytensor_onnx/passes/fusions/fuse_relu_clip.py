"""Fuse a Relu into the bounds of the following Clip."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.passes.matching import constant_of, producer_of
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder


@node_rule(
    "Clip",
    family="elementwise",
    purpose="correctness",
    identity="clip(relu(x), a, b) = clip(x, max(a, 0), max(b, 0))",
    in_functions=True,
    requires="constant bounds",
    ensures="no Clip after a Relu, which ONNX Runtime refuses in float64",
)
def fuse_relu_clip(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Fuse a Relu into a Clip with constant bounds."""
    if len(node.inputs) != 3:
        return None
    x, low, high = node.inputs
    relu = producer_of(x, "Relu")
    least, most = constant_of(low), constant_of(high)
    if relu is None or least is None or most is None:
        return None
    return build.Clip(relu.inputs[0], np.clip(np.zeros_like(least), least, most), high)
