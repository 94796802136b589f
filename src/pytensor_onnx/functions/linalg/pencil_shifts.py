"""Deflation and shifts of the QZ iteration, as those of the QR iteration in `shifts`."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.shifts import (
    Bulges,
    Unreduced,
    last_rows,
    shifts,
    unreduced,
)
from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    lower_diagonal,
    upper_diagonal,
)

# Divisors that are no larger count as zero; the matrices have norms of at most about one.
_EPS = np.finfo("float64").eps
NEGLIGIBLE = 4 * _EPS
"""Largest element below the diagonal that is set to zero.

Sweeps leave rounding errors of this size where all eigenvalues are equal.
"""


def deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonals to zero, and find the blocks between zeros.

    Parameters
    ----------
    rows
        Hessenberg matrices H and triangular matrices T beside each other, and others.
    n
        Number of rows.
    """
    is_small = pt.le(pt.abs(behind(lower_diagonal(rows[:, :, :n]))), NEGLIGIBLE)
    return pt.switch(below_pencils(is_small, n), 0.0, rows), unreduced(is_small, n, 2)


def below_pencils(is_small: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return which elements of pencils, and of matrices beside them, are set to zero.

    Parameters
    ----------
    is_small
        Whether the element of a row below the diagonal of H counts as zero.
    n
        Number of rows; H, T and the other matrices have n columns each.
    """
    index, column = pt.arange(n), pt.arange(3 * n)
    kept_from = index - pt.switch(is_small, 0, 1)
    is_zero = pt.lt(column, kept_from[:, :, None]) & pt.lt(column, n)
    return is_zero | (pt.ge(column, n) & pt.lt(column - n, index[:, None]))


def bulges(
    h: TensorVariable,
    t: TensorVariable,
    blocks: Unreduced,
    waits: TensorVariable,
    n: TensorVariable,
) -> Bulges:
    """Return the first columns of ``(M - s) (M - conj(s))`` for ``M = H @ inv(T)`` of each block.

    Divisors on the diagonal of T that are zero are replaced: shifts and first columns decide on
    the convergence alone.
    """
    d, e, f = diagonals(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    td, tf = _divisors(diagonals(t)), behind(upper_diagonal(t))
    before = _divisors(behind(td))
    is_last = last_rows(blocks, n)
    a, c = behind(d) / before, e / before
    values = [
        a,
        (d - c * tf) / td,
        c,
        (f - a * tf) / td,
        behind(e) / _divisors(behind(before)),
        waits,
    ]
    at_end = pt.matmul(pt.stack(values, axis=1), is_last.astype("float64"))
    shift, width = shifts(*(at_end[:, i] for i in range(6)))
    following, above = _divisors(ahead(td)), ahead(tf)
    a, c = d / td, ahead(e) / td
    gap = a - shift
    scale = pt.abs(gap) + width + pt.abs(c)
    ratio = c / pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    columns = [
        ratio * ((ahead(f) - a * above) / following)
        + gap * (gap / scale)
        + width * (width / scale),
        ratio * (gap + (ahead(d) - c * above) / following - shift),
        ratio * (ahead(ahead(e)) / following),
    ]
    first = pt.stack(columns, axis=1)
    largest = pt.abs(first).max(axis=1, keepdims=True)
    begins = blocks.is_active & blocks.is_first
    first = pt.switch(begins[:, None, :], first / pt.switch(pt.eq(largest, 0.0), 1.0, largest), 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def _divisors(x: TensorVariable) -> TensorVariable:
    """Return numbers with those near zero moved away from it."""
    return pt.switch(pt.gt(pt.abs(x), _EPS), x, pt.switch(pt.lt(x, 0.0), -_EPS, _EPS))
