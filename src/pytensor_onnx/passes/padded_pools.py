"""A form of MaxPool for runtimes that let it pad in the place of a Pad before it.

A Pad puts zeros around the values, which are larger than what is negative; a MaxPool pads by
nothing.
"""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.passes.inlined import Inlined
from pytensor_onnx.passes.rewriting import Form


def padded_pool_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a form of a MaxPool that a runtime keeps apart from a Pad, None if there is none."""
    origins = [] if node.inputs[0] is None else inlined.origins(node.inputs[0])
    return _pool_apart if any(_may_move(v, inlined) for v in origins) else None


def _may_move(value: ir.Value, inlined: Inlined) -> bool:
    """Return whether a Pad makes a value for one node only, in place of which it may be moved."""
    node = value.producer()
    if node is None or node.op_type != "Pad" or len(inlined.users(value)) > 1:
        return False
    mode = node.attributes.get("mode")
    return mode is None or mode.as_string() == "constant"


def _pool_apart(onnx: Builder, node: ir.Node) -> ir.Value | list[ir.Value]:
    """Pool the same values, which a Max of one operand hides from the Pad."""
    attributes = {key: a.value for key, a in node.attributes.items()}
    return onnx.op("MaxPool", onnx.Max(node.inputs[0]), outputs=len(node.outputs), **attributes)
