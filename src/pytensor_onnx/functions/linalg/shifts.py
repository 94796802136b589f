"""Deflation and shifts of the QR iteration, as in LAPACK's ``dlahqr``."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    lower_diagonal,
    upper_diagonal,
)

_EPS = np.finfo("float64").eps
# Elements of matrices of a scale near one that count as zero; their squares are no divisors.
_SMALLEST = np.float64(1e-140)
# Sweeps without deflation before an exceptional shift.
_PATIENCE = 10


class Unreduced(NamedTuple):
    """Blocks between zeros below the diagonal.

    Attributes
    ----------
    is_first
        Whether a row is the first of its block.
    is_active
        Whether the block of a row has so many rows that it is reduced further.
    last
        The last row of the block of a row.
    """

    is_first: TensorVariable
    is_active: TensorVariable
    last: TensorVariable


class Bulges(NamedTuple):
    """Bulges that a sweep chases.

    Attributes
    ----------
    first
        The first three elements of the first columns, in the second axis; zero where none begins.
    is_begin
        Whether a bulge begins in a row.
    waits
        The numbers of sweeps that blocks with a last row have seen, after this one.
    """

    first: TensorVariable
    is_begin: TensorVariable
    waits: TensorVariable


def deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonal to zero, and find the blocks between zeros."""
    h = rows[:, :, :n]
    d, e, f = diagonals(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    before = behind(d)
    is_small = negligible(pt.abs(e), pt.abs(f), pt.abs(d), pt.abs(before), pt.abs(before - d))
    return pt.switch(below(is_small, n), 0.0, rows), unreduced(is_small, n, 2)


def negligible(
    below: TensorVariable,
    above: TensorVariable,
    d: TensorVariable,
    before: TensorVariable,
    gap: TensorVariable,
) -> TensorVariable:
    """Return whether elements below the diagonal count as zero (Ahues and Tisseur, 1997).

    Parameters
    ----------
    below, above
        Magnitudes of these elements, and of those in the same place above the diagonal.
    d, before
        Magnitudes of the elements on the diagonal in their rows, and in the rows before.
    gap
        Magnitudes of the differences of both.
    """
    scale = d + before
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    larger, smaller = pt.maximum(below, above), pt.minimum(below, above)
    far, near = pt.maximum(d, gap), pt.minimum(d, gap)
    total = far + larger
    is_harmless = pt.le(
        smaller * (larger / total), pt.maximum(_SMALLEST, _EPS * (near * (far / total)))
    )
    return pt.le(below, _SMALLEST) | (pt.le(below, _EPS * scale) & is_harmless)


def below(is_small: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return which elements of Hessenberg matrices, and of others beside them, are set to zero.

    Parameters
    ----------
    is_small
        Whether the element of a row below the diagonal counts as zero.
    n
        Number of rows.
    """
    column = pt.arange(2 * n)
    kept_from = pt.arange(n)[:, None] - pt.switch(is_small, 0, 1)[:, :, None]
    return pt.lt(column, kept_from) & pt.lt(column, n)


def unreduced(is_small: TensorVariable, n: TensorVariable, least: int) -> Unreduced:
    """Return the blocks between zeros; those with more than ``least`` rows are active."""
    index = pt.arange(n)
    row, column = index[:, None], index[None, :]
    splits = is_small[:, None, :]
    last = pt.switch(pt.gt(column, row) & splits, index, n).min(axis=2) - 1
    first = pt.switch(pt.le(column, row) & splits, index, 0).max(axis=2)
    return Unreduced(is_small, pt.ge(last - first, least), last)


def bulges(
    h: TensorVariable, blocks: Unreduced, waits: TensorVariable, n: TensorVariable
) -> Bulges:
    """Return the first columns of ``(H - s) (H - conj(s))`` with the shifts of each block.

    A bulge begins in the last row that has two small elements below the diagonal beside it, or
    else in the first row of the block.

    Parameters
    ----------
    h
        Hessenberg matrices.
    blocks
        Their unreduced blocks.
    waits
        The numbers of sweeps that blocks with a last row have seen.
    n
        Number of rows.
    """
    d, e, f = diagonals(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    index = pt.arange(n)
    is_last = last_rows(blocks, n)
    ends = is_last.astype("float64")
    at_end = pt.matmul(pt.stack([behind(d), d, e, f, behind(e), waits], axis=1), ends)
    shift, width = shifts(*(at_end[:, i] for i in range(6)))
    below, following = ahead(e), ahead(d)
    gap = d - shift
    scale = pt.abs(gap) + width + pt.abs(below)
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    ratio = below / scale
    columns = [
        ratio * ahead(f) + gap * (gap / scale) + width * (width / scale),
        ratio * (gap + following - shift),
        ratio * ahead(below),
    ]
    around = pt.abs(behind(d)) + pt.abs(d) + pt.abs(following)
    neglected = pt.abs(e) * (pt.abs(columns[1]) + pt.abs(columns[2]))
    fits = blocks.is_active & pt.le(index, blocks.last - 2)
    begins = fits & (blocks.is_first | pt.le(neglected, _EPS * pt.abs(columns[0]) * around))
    is_behind = pt.gt(index, index[:, None]) & pt.le(index, blocks.last[:, :, None])
    begins = begins & ~(is_behind & begins[:, None, :]).any(axis=2)
    first = pt.switch(begins[:, None, :], pt.stack(columns, axis=1), 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def last_rows(blocks: Unreduced, n: TensorVariable) -> TensorVariable:
    """Return which column is the last row of an active block, for each row before it."""
    is_last = pt.eq(pt.arange(n)[:, None], blocks.last[:, None, :])
    return is_last & blocks.is_active[:, None, :]


def is_stuck(waits: TensorVariable) -> TensorVariable:
    """Return whether blocks have waited so long for a zero that the shift is exceptional."""
    return pt.gt(waits, 0.0) & pt.eq(waits - _PATIENCE * pt.floor(waits / _PATIENCE), 0.0)


def shifts(
    a: TensorVariable,
    d: TensorVariable,
    c: TensorVariable,
    b: TensorVariable,
    above: TensorVariable,
    waits: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return the real and the imaginary part of a shift, an eigenvalue of ``[[a, b], [c, d]]``.

    Of two real eigenvalues it is the one next to ``d``; after some sweeps it is exceptional.
    """
    size = pt.abs(c) + pt.abs(above)
    waited = is_stuck(waits)
    d = pt.switch(waited, d + 0.75 * size, d)
    a = pt.switch(waited, d, a)
    product = pt.switch(waited, -0.4375 * size * size, b * c)
    half = 0.5 * (a - d)
    discriminant = half * half + product
    root = pt.sqrt(pt.abs(discriminant))
    mean = d + half
    is_complex = pt.lt(discriminant, 0.0)
    real = mean + pt.switch(pt.gt(half, 0.0), -root, root)
    return pt.switch(is_complex, mean, real), pt.switch(is_complex, root, 0.0)


def most_sweeps(n: TensorVariable) -> TensorVariable:
    """Return the largest number of sweeps: 30 for each row, and for ten rows at least."""
    return 30 * pt.maximum(n, 10)


def range_of_chase(
    is_begin: TensorVariable, blocks: Unreduced
) -> tuple[TensorVariable, TensorVariable]:
    """Return the first row and the number of rows through which bulges of a batch are chased.

    Parameters
    ----------
    is_begin
        Whether a bulge begins in a row.
    blocks
        The blocks that the bulges run through.
    """
    n = is_begin.shape[1]
    low = pt.switch(is_begin.any(axis=0), pt.arange(n), n - 1).min()
    last = pt.switch(blocks.is_active, blocks.last, 0).flatten()
    return low, pt.concatenate([last - low, pt.zeros((1,), "int64")]).max() + 1
