"""Products and sums of sparse matrices, and their entries merged and selected."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.sparse.basic import Diag
from pytensor.sparse.math import Dot, SpSum, StructuredDot, TrueDot, Usmm
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import EntryRows, ScaledRowSums, SegmentSum, Take
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    dense_of,
    flat_positions,
    from_dense,
    in_precision,
    is_sparse,
    rewrites,
    row_pointers,
    same_size,
)


@rewrites(Dot)
def dot(op: Dot, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the dense product."""
    return [[dense_product(*node.inputs, *inputs, dtype=node.outputs[0].type.dtype)]]


@rewrites(StructuredDot, TrueDot)
def structured_dot(
    op: StructuredDot | TrueDot, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Return the product, sparse if the result is."""
    (result,) = node.outputs
    dtype = result.type.dtype
    if all(map(is_sparse, node.inputs)):
        x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
        products = products_of_entries(x, y, dtype)
        return [summed_entries(result.type.format, *products, (x.n_rows, y.n_cols)).tensors]
    product = dense_product(*node.inputs, *inputs, dtype=dtype)
    return [from_dense(product, result.type.format).tensors if is_sparse(result) else [product]]


@rewrites(Usmm)
def scaled_product_and_sum(op: Usmm, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return ``alpha * x @ y + z``."""
    (alpha,), x, y, (z,) = inputs
    dtype = node.outputs[0].type.dtype
    product = dense_product(node.inputs[1], node.inputs[2], x, y, dtype=dtype)
    return [[product * pt.cast(alpha, dtype) + pt.cast(z, dtype)]]


def dense_product(
    x: Variable, y: Variable, x_tensors: Tensors, y_tensors: Tensors, *, dtype: str
) -> TensorVariable:
    """Return the product of two operands as a dense array; at least one of them is sparse."""
    if is_sparse(x) and is_sparse(y):
        a, b = Compressed.of(x, x_tensors), Compressed.of(y, y_tensors)
        return dense_of(*products_of_entries(a, b, dtype), a.n_rows, b.n_cols)
    if is_sparse(x):
        return matrix_times_dense(Compressed.of(x, x_tensors), y_tensors[0], dtype)
    return matrix_times_dense(Compressed.of(y, y_tensors).transposed, x_tensors[0].T, dtype).T


def matrix_times_dense(a: Compressed, x: TensorVariable, dtype: str) -> TensorVariable:
    """Return the product with a vector or a dense matrix.

    The products of each row are added in the order of its entries, as SciPy does.
    """
    if x.type.ndim == 2 and x.type.shape[1] == 1:
        return matrix_times_dense(a, x[:, 0], dtype)[:, None]
    data, x = (in_precision(factor, dtype) for factor in (a.data, x))
    sizes = [(a.n_cols, x.shape[0])]
    # A check copies its operand, so that the smaller one is checked.
    if x.type.ndim == 2:
        cols = same_size(a.cols, sizes, "dimension mismatch")
        return ScaledRowSums()(data, a.rows, x, cols, a.n_rows)
    gathered = data * Take()(same_size(x, sizes, "dimension mismatch"), a.cols)
    return SegmentSum()(gathered, a.rows, a.n_rows)


def products_of_entries(
    x: Compressed, y: Compressed, dtype: str
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return all products of an entry of one matrix with an entry of another, and their places.

    Each entry ``x[i, k]`` meets the entries of row ``k`` of ``y``, as in Gustavson, Two fast
    algorithms for sparse matrices: multiplication and permuted transposition, ACM TOMS 4 (1978).
    """
    y = in_format(y, "csr")
    inner = same_size(x.cols, [(x.n_cols, y.n_rows)], "dimension mismatch")
    met = take_rows(y, inner)
    factors = (Take()(x.data, met.row_of), Take()(y.data, met.entries))
    data = operator.mul(*(pt.cast(factor, dtype) for factor in factors))
    return data, Take()(x.rows, met.row_of), Take()(y.cols, met.entries)


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


@dataclass(frozen=True)
class Groups:
    """Entries grouped by a key.

    Attributes
    ----------
    firsts
        Position of the first entry of each group, the groups in the order of their keys.
    group_of
        Group of each entry.
    """

    firsts: TensorVariable
    group_of: TensorVariable

    @property
    def count(self) -> TensorVariable:
        """Number of the groups."""
        return self.firsts.shape[0]


def grouped(keys: TensorVariable) -> Groups:
    """Group entries by integer keys, which are sorted.

    Examples
    --------
    >>> keys = pt.lvector("keys")
    >>> groups = grouped(keys)
    >>> [x.eval({keys: [7, 3, 7, 5]}, mode="ONNX") for x in (groups.firsts, groups.group_of)]
    [array([1, 3, 0]), array([2, 0, 2, 1])]
    """
    order = pt.argsort(keys, stable=True)
    ordered = Take()(keys, order)
    starts = pt.neq(ordered[1:], ordered[:-1])
    is_first = pt.concatenate([pt.ones_like(ordered[:1], dtype="bool"), starts])
    groups = pt.cast(is_first, "int64").cumsum() - 1
    group_of = pt.zeros((keys.shape[0],), "int64")[order].set(groups)
    return Groups(order[is_first], group_of)


def by_place(
    format: str,
    rows: TensorVariable,
    cols: TensorVariable,
    shape: Sequence[TensorVariable],
) -> Groups:
    """Group entries by their places, in the order of a format."""
    return grouped(_keys(format, rows, cols, shape))


def _keys(
    format: str,
    rows: TensorVariable,
    cols: TensorVariable,
    shape: Sequence[TensorVariable],
) -> TensorVariable:
    """Return integers that order places as a format does."""
    if format == "csr":
        return flat_positions(rows, cols, shape[1])
    return flat_positions(cols, rows, shape[0])


def compressed(
    format: str,
    data: TensorVariable,
    rows: TensorVariable,
    cols: TensorVariable,
    shape: Sequence[TensorVariable],
) -> Compressed:
    """Return the matrix of entries that are in the order of a format."""
    if format == "csc":
        return compressed("csr", data, cols, rows, shape[::-1]).transposed
    pointers = row_pointers(rows, shape[0])
    return Compressed(format, data, pt.cast(cols, "int32"), pointers, pt.stack(shape))


def summed(x: Compressed) -> Compressed:
    """Return a matrix with one entry for each place, in order."""
    return summed_entries(x.format, x.data, x.rows, x.cols, [x.n_rows, x.n_cols])


def summed_entries(
    format: str,
    data: TensorVariable,
    rows: TensorVariable,
    cols: TensorVariable,
    shape: Sequence[TensorVariable],
) -> Compressed:
    """Return the matrix of entries; entries with the same place are added."""
    groups = by_place(format, rows, cols, shape)
    sums = SegmentSum()(data, groups.group_of, groups.count)
    return compressed(format, sums, Take()(rows, groups.firsts), Take()(cols, groups.firsts), shape)


def sorted_entries(
    format: str,
    data: TensorVariable,
    rows: TensorVariable,
    cols: TensorVariable,
    shape: Sequence[TensorVariable],
) -> Compressed:
    """Return the matrix of entries in any order, and keep each of them."""
    order = pt.argsort(_keys(format, rows, cols, shape), stable=True)
    data, rows, cols = (Take()(x, order) for x in (data, rows, cols))
    return compressed(format, data, rows, cols, shape)


def in_format(x: Compressed, format: str) -> Compressed:
    """Convert a matrix to a format by sorting its entries, unless it has the format."""
    if x.format == format:
        return x
    return sorted_entries(format, x.data, x.rows, x.cols, [x.n_rows, x.n_cols])


def without_zeros(x: Compressed) -> Compressed:
    """Return a matrix without stored zeros."""
    kept = pt.neq(x.data, 0)
    data, rows, cols = x.data[kept], x.rows[kept], x.cols[kept]
    return compressed(x.format, data, rows, cols, [x.n_rows, x.n_cols])


@dataclass(frozen=True)
class TakenRows:
    """Entries of selected rows, one row after the other.

    Attributes
    ----------
    entries
        Positions of the entries in the matrix.
    row_of
        Position of the selected row of each entry.
    indptr
        Position of the first entry of each selected row, and the number of entries.
    """

    entries: TensorVariable
    row_of: TensorVariable
    indptr: TensorVariable


def take_rows(x: Compressed, rows: TensorVariable) -> TakenRows:
    """Return the entries of rows; the row after the last one, or row -1, has none."""
    counts = pt.concatenate([x.indptr[1:] - x.indptr[:-1], np.zeros(1, x.indptr.type.dtype)])
    starts = Take()(x.indptr, rows)
    taken = pt.cast(Take()(counts, rows), "int64")
    indptr = pt.concatenate([np.zeros(1, "int64"), taken.cumsum()])
    # Not up to the last pointer, which other modes take for the zero before the first.
    places = pt.arange(taken.sum())
    row_of = EntryRows()(indptr, places)
    entries = places + Take()(starts - indptr[:-1], row_of)
    return TakenRows(entries, row_of, indptr)
