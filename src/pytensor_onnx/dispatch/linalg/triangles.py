"""Lower triangles of matrices."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.linalg.triangle_ops import Triangle


@onnx_funcify.register(Triangle)
def lower_triangle(op: Triangle, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the triangle by Trilu."""
    diagonal = [build.constant(np.int64(op.diagonal))] if op.diagonal else []
    return build.Trilu(x, *diagonal, upper=int(not op.lower))
