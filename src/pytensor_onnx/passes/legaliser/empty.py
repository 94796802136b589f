"""Forms of operators that are correct for arrays without elements.

Forms are written in ONNX operators and not with `define`: a definition would be lowered to the very
operators that they replace.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints


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
