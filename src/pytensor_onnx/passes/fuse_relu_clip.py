"""Fusion of a Relu into the bounds of the Clip after it.

ONNX Runtime's optimizer does the same, and refuses the whole model where the bounds are float64. It
sees a Relu and bounds through the functions of the model too, which it puts in the place of their
calls first: a Max of one operand keeps them apart.
"""

from functools import partial

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.passes.inlined import Inlined
from pytensor_onnx.passes.rewriting import Form
from pytensor_onnx.scope import ModelScope


def fuse_relu_clip(model: ir.Model, scope: ModelScope) -> int:
    """Let each Clip with constant bounds take what a Relu before it takes."""
    inlined = Inlined(model)
    relus = []

    def form_of(node: ir.Node) -> Form | None:
        if not _may_fuse(node, inlined):
            return None
        relu = _relu_before(node)
        if relu is not None:
            relus.append(relu)
            return partial(_fused, relu=relu)
        return _apart if node.outputs[0].dtype in (None, ir.DataType.DOUBLE) else None

    count = inlined.replace(scope, form_of)
    for relu in dict.fromkeys(relus):
        if relu.graph is not None and not (
            relu.outputs[0].uses() or relu.outputs[0].is_graph_output()
        ):
            relu.graph.remove(relu, safe=True)
    return count


def _fused(onnx: Builder, node: ir.Node, relu: ir.Node) -> ir.Value:
    low, high = (_constant(bound) for bound in node.inputs[1:])
    return onnx.Clip(relu.inputs[0], np.clip(np.zeros_like(low), low, high), node.inputs[2])


def _apart(onnx: Builder, node: ir.Node) -> ir.Value:
    x, low, high = node.inputs
    return onnx.Clip(onnx.Max(x), low, high)


def _may_fuse(node: ir.Node, inlined: Inlined) -> bool:
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


def _constant(value: ir.Value | None) -> np.ndarray:
    if value is None or value.const_value is None:
        raise TypeError(f"{value} is not constant")
    return value.const_value.numpy()
