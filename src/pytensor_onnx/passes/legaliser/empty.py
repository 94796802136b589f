"""Forms of operators that are correct for arrays without elements."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.node_flags import mark_guarded
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.matching import required


def expands_to_nothing(node: ir.Node) -> bool:
    """Return whether an Expand is known to broadcast to a size of zero."""
    return 0 in (constant_ints(node.inputs[1]) or ())


def expand_to_nothing(build: Builder, node: ir.Node) -> ir.Value:
    """Broadcast to an empty shape: expand to size one, then take an empty slice."""
    x, shape = node.inputs
    sizes = np.array(constant_ints(shape), dtype="int64")
    expanded = build.Expand(x, build.constant(np.maximum(sizes, 1)))
    axes = (np.flatnonzero(sizes == 0) - sizes.size).tolist()
    nothing = build.ints([0] * len(axes))
    return build.Slice(expanded, nothing, nothing, build.ints(axes))


def reduces_added_axes(node: ir.Node) -> bool:
    """Return whether a reduction drops the axes of size one that its operand gets for it."""
    added = required(node.inputs[0]).producer()
    if added is None or added.op_type != "Unsqueeze" or node.attributes.get_int("keepdims", 1) != 0:
        return False
    axes = [constant_ints(x) for x in (*node.inputs[1:2], added.inputs[1])]
    return len(axes) == 2 and axes[0] is not None and axes[0] == axes[1]


def reduce_then_squeeze(build: Builder, node: ir.Node) -> ir.Value:
    """Reduce with the axes kept, then drop them."""
    x, axes = node.inputs
    reduced = build.op(node.op_type, x, axes, keepdims=1)
    mark_guarded(reduced)
    return build.Squeeze(reduced, axes)
