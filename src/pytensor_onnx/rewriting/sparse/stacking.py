"""Join sparse matrices, and build them of rows and blocks."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.sparse.basic import ConstructSparseFromList, HStack, VStack
from pytensor.sparse.linalg import SparseBlockDiagonal
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.rewriting.sparse.merging import sorted_entries
from pytensor_onnx.rewriting.sparse.sparse_conversions import from_dense
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    is_sparse,
    rewrites,
    same_size,
)


@rewrites(VStack)
def stack_rows(op: VStack, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Join the rows of all blocks."""
    return [_stacked(_blocks(node, inputs, op.dtype), op.format).tensors]


@rewrites(HStack)
def stack_columns(op: HStack, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Join the columns of all blocks."""
    blocks = [block.transposed for block in _blocks(node, inputs, op.dtype)]
    return [_stacked(blocks, _OTHER[op.format]).transposed.tensors]


_OTHER = {"csr": "csc", "csc": "csr"}


def _blocks(node: Apply, inputs: Sequence[Tensors], dtype: str) -> list[Compressed]:
    blocks = [
        Compressed.of(v, t) if is_sparse(v) else from_dense(t[0], "csr")
        for v, t in zip(node.inputs, inputs, strict=True)
    ]
    return [block.with_data(pt.cast(block.data, dtype)) for block in blocks]


def _stacked(blocks: Sequence[Compressed], format: str) -> Compressed:
    """Join the rows of blocks, without sorting where all blocks are compressed by rows."""
    n_cols = blocks[0].n_cols
    sizes = [(block.n_cols, n_cols) for block in blocks[1:]]
    data = pt.concatenate([block.data for block in blocks])
    cols = same_size(
        pt.concatenate([block.cols for block in blocks]),
        sizes,
        "blocks have incompatible dimensions",
    )
    shape = [sum(block.n_rows for block in blocks), n_cols]
    if format == "csr" and all(block.format == "csr" for block in blocks):
        placed = _with_starts(blocks, [block.data.shape[0] for block in blocks])
        pointers = [blocks[0].indptr, *(b.indptr[1:] + start for b, start in placed[1:])]
        return Compressed(format, data, cols, pt.concatenate(pointers), pt.stack(shape))
    rows = [block.rows + start for block, start in _with_starts(blocks, [b.n_rows for b in blocks])]
    return sorted_entries(format, data, pt.concatenate(rows), cols, shape)


def _with_starts(
    blocks: Sequence[Compressed], sizes: Sequence[TensorVariable]
) -> list[tuple[Compressed, TensorVariable]]:
    starts = [pt.constant(0, dtype="int64")]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return list(zip(blocks, starts, strict=True))


@rewrites(SparseBlockDiagonal)
def block_diagonal(
    op: SparseBlockDiagonal, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Join the entries of all blocks, each below and to the right of the one before."""
    blocks = _blocks(node, inputs, node.outputs[0].type.dtype)
    heights, widths = [b.n_rows for b in blocks], [b.n_cols for b in blocks]
    data = pt.concatenate([block.data for block in blocks])
    rows = [block.rows + start for block, start in _with_starts(blocks, heights)]
    cols = [block.cols + start for block, start in _with_starts(blocks, widths)]
    places = (pt.concatenate(rows), pt.concatenate(cols))
    return [sorted_entries(op.format, data, *places, [sum(heights), sum(widths)]).tensors]


@rewrites(ConstructSparseFromList)
def from_rows(op: ConstructSparseFromList, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return a matrix of columns whose rows of a list have values."""
    (shape,), (values,), (rows,) = inputs
    count, n_cols = values.shape[0], values.shape[1]
    rows = same_size(rows, [(rows.shape[0], count)], "each row of values needs an index")
    indices = pt.tile(rows, n_cols)
    result = Compressed("csc", values.T.flatten(), indices, pt.arange(n_cols + 1) * count, shape)
    data = pt.cast(result.data, node.outputs[0].type.dtype)
    return [result.with_data(data).tensors]
