"""Sizes above which nodes stay with ONNX Runtime, as measured."""

from __future__ import annotations

from math import prod

import onnx

from pytensor_onnx.kernels.graph_scope import Scope

UNKNOWN = 64
"""Size that is assumed for an axis of unknown size."""
PRODUCT = 100_000
"""Multiplications of the largest product of matrices in a region."""
ELEMENTS = 1_000_000
"""Elements of the largest array in a region."""


def is_large(node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether a kernel of ONNX Runtime is faster for a node than a region."""
    shapes = [scope.shape(name) for name in (*node.input, *node.output) if name]
    sizes = [[UNKNOWN if d is None else d for d in shape] for shape in shapes if shape is not None]
    if any(prod(shape) > ELEMENTS for shape in sizes):
        return True
    if node.op_type in ("MatMul", "Gemm"):
        left, right = scope.shape(node.input[0]), scope.shape(node.input[1])
        if left is None or right is None:
            return True
        inner = left[-1 if node.op_type == "MatMul" or not _transposed(node) else 0]
        result = scope.shape(node.output[0]) or []
        work = prod(UNKNOWN if d is None else d for d in (*result, inner))
        return work > PRODUCT
    return False


def _transposed(node: onnx.NodeProto) -> bool:
    return any(x.name == "transA" and x.i for x in node.attribute)
