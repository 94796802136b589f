"""Deflation and shifts of the QR iteration, as those of LAPACK's ``dlahqr``."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    diagonal,
    lower_diagonal,
    upper_diagonal,
)

_EPS = np.finfo("float64").eps
# Elements of matrices of a scale near one that count as zero.
_SMALLEST = np.finfo("float64").tiny / _EPS
# Sweeps without deflation before an exceptional shift.
_PATIENCE = 10


class Unreduced(NamedTuple):
    """Blocks between zeros below the diagonal.

    Attributes
    ----------
    is_active
        Whether a row is the first of a block of more than two rows.
    last
        The last row of the block that begins with a row, for first rows.
    """

    is_active: TensorVariable
    last: TensorVariable


def deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonal to zero, and find the blocks between zeros."""
    h = rows[:, :, :n]
    d, e, f = diagonal(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    before = behind(d)
    size = pt.abs(e)
    scale = pt.abs(d) + pt.abs(before)
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    larger, smaller = pt.maximum(size, pt.abs(f)), pt.minimum(size, pt.abs(f))
    gap = pt.abs(before - d)
    far, near = pt.maximum(pt.abs(d), gap), pt.minimum(pt.abs(d), gap)
    total = far + larger
    is_harmless = pt.le(
        smaller * (larger / total), pt.maximum(_SMALLEST, _EPS * (near * (far / total)))
    )
    is_small = pt.le(size, _SMALLEST) | (pt.le(size, _EPS * scale) & is_harmless)
    index = pt.arange(n)
    kept_from = index[:, None] - pt.switch(is_small, 0, 1)[:, :, None]
    rows = pt.switch(pt.lt(pt.arange(2 * n), kept_from) & pt.lt(pt.arange(2 * n), n), 0.0, rows)
    is_later = pt.gt(index[None, :], index[:, None]) & is_small[:, None, :]
    last = pt.switch(is_later, index, n).min(axis=2) - 1
    return rows, Unreduced(is_small & pt.ge(last - index, 2), last)


def first_columns(
    h: TensorVariable, blocks: Unreduced, waits: TensorVariable, n: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the first columns of ``(H - s) (H - conj(s))`` with the shifts of each block.

    Parameters
    ----------
    h
        Hessenberg matrices.
    blocks
        Their unreduced blocks.
    waits
        The number of sweeps that blocks with a last row have seen.
    n
        Number of rows.

    Returns
    -------
    tuple of TensorVariable
        The first three elements of the columns, in the second axis, for each first row, zero for
        other rows; and the numbers of sweeps after this one.
    """
    d, e, f = diagonal(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    is_last = pt.eq(pt.arange(n)[:, None], blocks.last[:, None, :]) & blocks.is_active[:, None, :]
    ends = is_last.astype("float64")
    at_end = pt.matmul(pt.stack([behind(d), d, e, f, behind(e), waits], axis=1), ends)
    shift, width = _shifts(*(at_end[:, i] for i in range(6)))
    below = ahead(e)
    gap = d - shift
    scale = pt.abs(gap) + width + pt.abs(below)
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    ratio = below / scale
    columns = [
        ratio * ahead(f) + gap * (gap / scale) + width * (width / scale),
        ratio * (gap + ahead(d) - shift),
        ratio * ahead(below),
    ]
    first = pt.switch(blocks.is_active[:, None, :], pt.stack(columns, axis=1), 0.0)
    return first, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0)


def _shifts(
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
    is_stuck = pt.gt(waits, 0.0) & pt.eq(waits - _PATIENCE * pt.floor(waits / _PATIENCE), 0.0)
    d = pt.switch(is_stuck, d + 0.75 * size, d)
    a = pt.switch(is_stuck, d, a)
    product = pt.switch(is_stuck, -0.4375 * size * size, b * c)
    half = 0.5 * (a - d)
    discriminant = half * half + product
    root = pt.sqrt(pt.abs(discriminant))
    mean = d + half
    is_complex = pt.lt(discriminant, 0.0)
    real = mean + pt.switch(pt.gt(half, 0.0), -root, root)
    return pt.switch(is_complex, mean, real), pt.switch(is_complex, root, 0.0)
