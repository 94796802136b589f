"""Guard of Clip against runtimes that fuse a Relu into its bounds, in float32 only.

`fuse_relu_clip` does the same for a Relu directly before the Clip. A runtime finds the Relu and the
bounds through functions too, and refuses the model if the bounds are float64.
"""

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.passes.matching import producer_of
from pytensor_onnx.passes.node_walk import Form
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined


def bounded_relu_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a Clip after a Relu, None for other nodes."""
    if len(node.inputs) != 3 or node.outputs[0].dtype not in (None, ir.DataType.DOUBLE):
        return None
    x, *bounds = ([] if v is None else inlined.origins(v) for v in node.inputs)
    is_fused = any(producer_of(v, "Relu") for v in x) and all(
        any(v in inlined.folded for v in bound) for bound in bounds
    )
    return _clip_apart if is_fused else None


def _clip_apart(build: Builder, node: ir.Node) -> ir.Value:
    """Clip the same values, hidden from the runtime by a Max of one operand."""
    x, low, high = node.inputs
    return build.Clip(build.Max(x), low, high)
