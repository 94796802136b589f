"""Select rows, slices and elements of sparse matrices."""

import operator
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse.basic import (
    GetItem2d,
    GetItem2Lists,
    GetItem2ListsGrad,
    GetItemList,
    GetItemListGrad,
    GetItemScalar,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import SegmentSum, Take
from pytensor_onnx.rewriting.sparse.merging import (
    by_place,
    compressed,
    grouped,
    in_format,
    sorted_entries,
)
from pytensor_onnx.rewriting.sparse.selected_rows import take_rows
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    flat_positions,
    rewrites,
)


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
