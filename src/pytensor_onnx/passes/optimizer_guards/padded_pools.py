"""Guard MaxPool against runtimes that fuse a Pad into it.

A Pad inserts zeros, which are larger than negative values; the padding of a MaxPool is minus
infinity.
"""

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.passes.matching import attributes_of, producer_of
from pytensor_onnx.passes.node_walk import Form
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined


def padded_pool_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a MaxPool after a Pad, None for other nodes."""
    origins = [] if node.inputs[0] is None else inlined.origins(node.inputs[0])
    return _pool_apart if any(_may_move(v, inlined) for v in origins) else None


def _may_move(value: ir.Value, inlined: Inlined) -> bool:
    """Return whether a value is a Pad with a single use, which a runtime may fuse."""
    node = producer_of(value, "Pad")
    if node is None or len(inlined.users(value)) > 1:
        return False
    return node.attributes.get_string("mode", "constant") == "constant"


def _pool_apart(build: Builder, node: ir.Node) -> ir.Value | list[ir.Value]:
    """Pool the same values, hidden from the Pad by a Max of one operand."""
    attributes = attributes_of(node)
    return build.op("MaxPool", build.Max(node.inputs[0]), outputs=len(node.outputs), **attributes)
