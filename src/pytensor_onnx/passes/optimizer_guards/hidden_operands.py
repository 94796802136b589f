"""Guards that hide an operand from the runtime's optimizer, by a Max of the operand alone.

- A Relu becomes part of the bounds of a Clip after it, which must be float32 for that: a model in
  float64 is refused. `fuse_relu_clip` fuses them where they are side by side.
- A Pad becomes part of a MaxPool. It inserts zeros, which are larger than negative values; the
  padding of a MaxPool is minus infinity.
- A Gather by a Range becomes a Slice. It ends where the axis does, and counts a negative end from
  there: indices beyond the size are no error, and indices from -2 to 1 select nothing.
"""

from functools import partial

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.passes.matching import producer_of, required
from pytensor_onnx.passes.node_walk import Form, emit_alike
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined


def bounded_relu_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a Clip after a Relu, None for other nodes."""
    if len(node.inputs) != 3 or node.outputs[0].dtype not in (None, ir.DataType.DOUBLE):
        return None
    x, *bounds = ([] if v is None else inlined.origins(v) for v in node.inputs)
    is_fused = any(producer_of(v, "Relu") for v in x) and all(
        any(v in inlined.folded for v in bound) for bound in bounds
    )
    return _HIDE_FIRST if is_fused else None


def padded_pool_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a MaxPool after a Pad, None for other nodes."""
    origins = inlined.origins(required(node.inputs[0]))
    return _HIDE_FIRST if any(_is_fused_pad(v, inlined) for v in origins) else None


def range_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a Gather by a Range, None for other nodes."""
    makers = (producer_of(origin, "Range") for origin in inlined.origins(required(node.inputs[1])))
    return _HIDE_SECOND if any(makers) else None


def _is_fused_pad(value: ir.Value, inlined: Inlined) -> bool:
    """Return whether a value is a Pad with a single use, which a runtime may fuse."""
    node = producer_of(value, "Pad")
    if node is None or len(inlined.users(value)) > 1:
        return False
    return node.attributes.get_string("mode", "constant") == "constant"


def _hide(build: Builder, node: ir.Node, position: int) -> list[ir.Value]:
    operands = [build.Max(x) if i == position else x for i, x in enumerate(node.inputs)]
    return emit_alike(build, node, operands)


_HIDE_FIRST, _HIDE_SECOND = (partial(_hide, position=position) for position in (0, 1))
