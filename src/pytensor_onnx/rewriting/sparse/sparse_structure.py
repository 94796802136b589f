"""Indices, diagonals and joins of sparse matrices.

Their entries are sorted by place; a place has one entry, and none where the result is zero.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse.basic import (
    ConstructSparseFromList,
    CSMGrad,
    EnsureSortedIndices,
    GetItem2d,
    GetItem2Lists,
    GetItem2ListsGrad,
    GetItemList,
    GetItemListGrad,
    GetItemScalar,
    HStack,
    Remove0,
    VStack,
)
from pytensor.sparse.linalg import SparseBlockDiagonal
from pytensor.sparse.math import (
    AddSparseSparse,
    GreaterThanSparseSparse,
    LessThanSparseSparse,
    MultiplySparseSparse,
    NotEqualSparseSparse,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import EntryRows, SegmentSum, Take
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    flat_positions,
    from_dense,
    greater,
    is_sparse,
    less,
    rewrites,
    same_size,
)
from pytensor_onnx.rewriting.sparse.sparse_products import (
    by_place,
    compressed,
    grouped,
    in_format,
    sorted_entries,
    take_rows,
    without_zeros,
)

Function = Callable[[TensorVariable, TensorVariable], TensorVariable]


# Infinity times a zero that is not stored is NaN.
_FUNCTIONS: dict[type[Op], Function] = {
    AddSparseSparse: operator.add,
    MultiplySparseSparse: operator.mul,
    NotEqualSparseSparse: pt.neq,
    LessThanSparseSparse: less,
    GreaterThanSparseSparse: greater,
}
"""Function of two numbers, zero for two zeros, by the Op that applies it to two matrices."""


@rewrites(*_FUNCTIONS)
def combine(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Apply a function of two numbers to the elements of two matrices."""
    x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
    result = node.outputs[0].type
    dtype = ps.upcast(x.data.type.dtype, y.data.type.dtype)
    sizes = [(x.shape[0], y.shape[0]), (x.shape[1], y.shape[1])]
    rows = pt.concatenate([same_size(x.rows, sizes, "inconsistent shapes"), y.rows])
    cols = pt.concatenate([x.cols, y.cols])
    shape = [x.n_rows, x.n_cols]
    groups = by_place(result.format, rows, cols, shape)
    count = x.data.shape[0]
    places = (groups.group_of[:count], groups.group_of[count:])
    sums = (
        SegmentSum()(pt.cast(z.data, dtype), at, groups.count)
        for z, at in zip((x, y), places, strict=True)
    )
    data = pt.cast(_FUNCTIONS[type(op)](*sums), result.dtype)
    kept = pt.neq(data, 0)
    firsts = groups.firsts[kept]
    rows, cols = Take()(rows, firsts), Take()(cols, firsts)
    return [compressed(result.format, data[kept], rows, cols, shape).tensors]


@rewrites(CSMGrad)
def gradient_at_entries(op: CSMGrad, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the elements of a gradient at the entries of a matrix."""
    _, indices, indptr, shape, g_data, g_indices, g_indptr, _ = (x[0] for x in inputs)
    # The larger size serves both formats, which the Op does not know.
    n_minor = pt.cast(pt.max(shape), "int64")
    own, other = (
        flat_positions(EntryRows()(pointers, minor), minor, n_minor)
        for pointers, minor in ((indptr, indices), (g_indptr, g_indices))
    )
    groups = grouped(pt.concatenate([own, other]))
    count = indices.shape[0]
    sums = SegmentSum()(g_data, groups.group_of[count:], groups.count)
    return [[Take()(sums, groups.group_of[:count])]]


@rewrites(EnsureSortedIndices)
def sort_indices(op: EnsureSortedIndices, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Sort the entries of each row or column."""
    x = Compressed.of(node.inputs[0], inputs[0])
    return [sorted_entries(x.format, x.data, x.rows, x.cols, [x.n_rows, x.n_cols]).tensors]


@rewrites(Remove0)
def remove_zeros(op: Remove0, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Drop the entries that are zero."""
    return [without_zeros(Compressed.of(node.inputs[0], inputs[0])).tensors]


@rewrites(GetItemList)
def rows_of_list(op: GetItemList, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the rows of a list."""
    x, (rows,) = Compressed.of(node.inputs[0], inputs[0]), inputs[1]
    rows = _position(rows, x.n_rows)
    return [_rows(x, rows, rows.shape[0], x.format).tensors]


@rewrites(GetItemListGrad)
def gradient_of_list(op: GetItemListGrad, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Set rows of zeros to the rows of a gradient; of several for one row the last is kept."""
    x, (rows,) = Compressed.of(node.inputs[0], inputs[0]), inputs[1]
    gradient = Compressed.of(node.inputs[2], inputs[2])
    source = _positions_by_place(_position(rows, x.n_rows), x.n_rows)
    set_ = _rows(gradient, source, x.n_rows, x.format)
    return [set_.with_data(pt.cast(set_.data, x.data.type.dtype)).tensors]


def _positions_by_place(places: TensorVariable, size: TensorVariable) -> TensorVariable:
    """Return for each place the last position in a list of places, -1 if it has none."""
    nowhere = pt.full((size,), np.int64(-1))
    return nowhere[places].set(pt.arange(places.shape[0]))


def _rows(x: Compressed, rows: TensorVariable, count: TensorVariable, format: str) -> Compressed:
    """Return rows of a matrix as a matrix of a format; row -1 is empty."""
    x = in_format(x, "csr")
    taken = take_rows(x, rows)
    data, cols = Take()(x.data, taken.entries), Take()(x.indices, taken.entries)
    result = Compressed("csr", data, cols, taken.indptr, pt.stack([count, x.n_cols]))
    return in_format(result, format)


@rewrites(GetItem2d)
def slices(op: GetItem2d, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the entries within a slice of rows and one of columns."""
    x = Compressed.of(node.inputs[0], inputs[0])
    rows, cols = (
        slice(*(None if _is_none(v) else t[0] for v, t in zip(bounds, tensors, strict=True)))
        for bounds, tensors in (
            (node.inputs[1:4], inputs[1:4]),
            (node.inputs[4:7], inputs[4:7]),
        )
    )
    major, minor = (rows, cols) if x.is_by_rows else (cols, rows)
    axes = [(x.major, x.n_major, major), (x.indices, x.n_minor, minor)]
    sliced = [_sliced(positions, size, bounds) for positions, size, bounds in axes]
    kept = reduce(operator.and_, [pt.ge(places, 0) for places, _ in sliced])
    data, own, other = (values[kept] for values in (x.data, *(places for places, _ in sliced)))
    # A step backwards changes the order of the compressed rows or columns.
    build = compressed if major.step is None else sorted_entries
    result = build("csr", data, own, other, [size for _, size in sliced])
    return [(result if x.is_by_rows else result.transposed).tensors]


def _is_none(variable: object) -> bool:
    return isinstance(variable, Constant) and variable.data is None


def _sliced(
    positions: TensorVariable, size: TensorVariable, bounds: slice
) -> tuple[TensorVariable, TensorVariable]:
    """Return the positions within a slice, -1 outside of it, and the length of the slice."""
    if bounds == slice(None):
        return positions, size
    selected = pt.arange(size)[bounds]
    return Take()(_positions_by_place(selected, size), positions), selected.shape[0]


@rewrites(GetItemScalar)
def element(op: GetItemScalar, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sum of the entries at one place."""
    x, (row,), (col,) = Compressed.of(node.inputs[0], inputs[0]), *inputs[1:]
    row, col = _position(row, x.n_rows), _position(col, x.n_cols)
    is_there = pt.eq(x.rows, row) & pt.eq(x.cols, col)
    found = pt.switch(is_there, x.data, pt.zeros((), x.data.type.dtype))
    return [[found.sum(dtype=x.data.type.dtype)]]


@rewrites(GetItem2Lists)
def elements(op: GetItem2Lists, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the elements at the places of two lists."""
    x, (rows,), (cols,) = Compressed.of(node.inputs[0], inputs[0]), *inputs[1:]
    rows, cols = _position(rows, x.n_rows), _position(cols, x.n_cols)
    keys = pt.concatenate([x.places(), flat_positions(rows, cols, x.n_cols)])
    groups, count = grouped(keys), x.data.shape[0]
    sums = SegmentSum()(x.data, groups.group_of[:count], groups.count)
    found = Take()(sums, groups.group_of[count:])
    return [[pt.cast(found, node.outputs[0].type.dtype)]]


@rewrites(GetItem2ListsGrad)
def gradient_of_elements(
    op: GetItem2ListsGrad, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Set elements of zeros to a gradient; of several for one place the last is kept."""
    x = Compressed.of(node.inputs[0], inputs[0])
    (rows,), (cols,), (gradient,) = inputs[1:]
    rows, cols = _position(rows, x.n_rows), _position(cols, x.n_cols)
    shape = [x.n_rows, x.n_cols]
    groups = by_place(x.format, rows, cols, shape)
    data = pt.zeros((groups.count,), x.data.type.dtype)
    data = data[groups.group_of].set(pt.cast(gradient, x.data.type.dtype))
    rows, cols = (Take()(axis, groups.firsts) for axis in (rows, cols))
    return [compressed(x.format, data, rows, cols, shape).tensors]


def _position(index: TensorVariable, size: TensorVariable) -> TensorVariable:
    """Return checked indices, those from the end as indices from the start."""
    index = pt.cast(index, "int64")
    valid = pt.ge(index, -size) & pt.lt(index, size)
    index = CheckAndRaise(IndexError, "index out of range")(index, pt.all(valid))
    return pt.switch(index < 0, index + size, index)


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
