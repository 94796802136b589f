"""Sort the entries of sparse matrices, and merge those with the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.sparse import SegmentSum, Take
from pytensor_onnx.rewriting.sparse.sparse_parts import Compressed, flat_positions, row_pointers


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
