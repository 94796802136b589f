"""A form of Gather for runtimes that make a Slice of one whose indices are a Range.

A Slice ends where the axis does, and counts a negative end from there: indices beyond the size are
no error to it, and those from -2 to 1 select nothing. A runtime finds the Range of another function
too, since it puts functions in the place of their calls first.
"""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.passes.inlined import Inlined
from pytensor_onnx.passes.rewriting import Form


def range_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a form of a Gather by a Range that the runtime leaves alone, None for others."""
    return _take_by_copy if _takes_range(node, inlined) else None


def _takes_range(node: ir.Node, inlined: Inlined) -> bool:
    if node.inputs[1] is None:
        return False
    makers = [origin.producer() for origin in inlined.origins(node.inputs[1])]
    return any(n is not None and n.op_type == "Range" and not n.domain for n in makers)


def _take_by_copy(onnx: Builder, node: ir.Node) -> ir.Value:
    """Gather by the same indices, which a Max of one operand hides from the runtime."""
    x, index = node.inputs
    return onnx.Gather(x, onnx.Max(index), **{key: a.value for key, a in node.attributes.items()})
