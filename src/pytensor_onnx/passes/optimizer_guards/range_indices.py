"""Guard Gather against runtimes that replace it by a Slice if its indices are a Range.

A Slice ends where the axis does, and counts a negative end from there: indices beyond the size are
no error, and indices from -2 to 1 select nothing. A runtime also finds the Range in another
function, since it inlines calls first.
"""

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.passes.matching import attributes_of, given, producer_of
from pytensor_onnx.passes.node_walk import Form
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined


def range_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a Gather by a Range, None for other nodes."""
    return _take_by_copy if _takes_range(node, inlined) else None


def _takes_range(node: ir.Node, inlined: Inlined) -> bool:
    return any(producer_of(origin, "Range") for origin in inlined.origins(given(node.inputs[1])))


def _take_by_copy(build: Builder, node: ir.Node) -> ir.Value:
    """Gather by the same indices, hidden from the runtime by a Max of one operand."""
    x, index = node.inputs
    return build.Gather(x, build.Max(index), **attributes_of(node))
