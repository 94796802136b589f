"""Sum the entries of sparse matrices, and read their diagonals."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.sparse.basic import Diag
from pytensor.sparse.math import SpSum
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import SegmentSum
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    rewrites,
    same_size,
)


@rewrites(SpSum)
def add(op: SpSum, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sum of all entries, of each row, or of each column."""
    x = Compressed.of(node.inputs[0], inputs[0])
    if op.axis is None:
        return [[x.data.sum(dtype=x.data.type.dtype)]]
    if op.axis == 0:
        return [[SegmentSum()(x.data, x.cols, x.n_cols)]]
    return [[SegmentSum()(x.data, x.rows, x.n_rows)]]


@rewrites(Diag)
def diagonal(op: Diag, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sums of the entries on the diagonal."""
    x = Compressed.of(node.inputs[0], inputs[0])
    size = same_size(x.n_rows, [(x.n_rows, x.n_cols)], "Diag only apply on square matrix")
    return [[SegmentSum()(_where(pt.eq(x.rows, x.cols), x.data), x.rows, size)]]


def _where(condition: TensorVariable, data: TensorVariable) -> TensorVariable:
    return pt.switch(condition, data, pt.zeros((), data.type.dtype))
