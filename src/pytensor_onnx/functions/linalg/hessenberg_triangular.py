"""Orthogonal reduction of pencils to Hessenberg and triangular form."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.factorisations import HessenbergTriangular

# Elements of matrices of a scale near one that count as zero; their squares are no divisors.
_SMALLEST = np.float64(1e-140)


@define(HessenbergTriangular, HessenbergTriangular.gufunc_signature)
def hessenberg_triangular(a: TensorVariable, b: TensorVariable) -> list[TensorVariable]:
    """Reduce pencils to Hessenberg matrices ``Q.T @ A @ Z`` and triangular ``Q.T @ B @ Z``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 7.7.4, from the last row
    to the third. The rotations of columns for a row of A depend on this row alone, so that all are
    one product. Then rotations of rows make B triangular again, one after another.

    Parameters
    ----------
    a, b
        Square matrices with one batch axis, in float64 and of a scale near one.
    """
    n = a.shape[1]
    q, r = pt.linalg.qr(b)
    rows = pt.concatenate([r, pt.matmul(q.mT, a), q.mT], axis=2)
    unit = pt.eye(n) + pt.zeros((a.shape[0], 1, 1))
    count = pt.maximum(n - 2, 0)
    rows, z = iterate(
        _without_row,
        [rows, unit],
        n_steps=count,
        sequences=[pt.arange(count)[::-1] + 2],
    )
    below = pt.gt(pt.arange(n)[:, None], pt.arange(n) + 1)
    h = pt.switch(below, 0.0, rows[:, :, n : 2 * n])
    return [pt.concatenate([h, rows[:, :, :n], rows[:, :, 2 * n :]], axis=2), z]


def _without_row(r: TensorVariable, rows: TensorVariable, z: TensorVariable) -> list:
    """Make the elements of row r of A zero that stand before the Hessenberg form."""
    n = z.shape[1]
    turn = column_rotations(rows[:, r, n : n + r], r)
    b = pt.matmul(rows[:, :, :r], turn)
    a = pt.matmul(rows[:, :, n : n + r], turn)
    z = pt.concatenate([pt.matmul(z[:, :, :r], turn), z[:, :, r:]], axis=2)
    rows = pt.concatenate([b, rows[:, :, r:n], a, rows[:, :, n + r :]], axis=2)
    last, finished = pytensor.scan(
        _rotated_rows,
        [pt.arange(r - 1), rows[:, 1:r].transpose(1, 0, 2)],
        [rows[:, 0], None],
        return_updates=False,
        strict=True,
    )
    rows = pt.concatenate([finished.transpose(1, 0, 2), last[-1][:, None], rows[:, r:]], axis=1)
    return [pt.switch(pt.gt(pt.arange(n)[:, None], pt.arange(3 * n)), 0.0, rows), z]


def column_rotations(row: TensorVariable, r: TensorVariable) -> TensorVariable:
    """Return the product of rotations that leave only the last element of rows.

    The rotation of the columns q and q + 1 meets the length of the first q elements.
    """
    row = pt.switch(pt.lt(pt.abs(row), _SMALLEST), 0.0, row)
    length = pt.sqrt(pt.cumsum(row * row, axis=1))
    end = pt.zeros_like(row[:, :1])
    following = pt.concatenate([length[:, 1:], end], axis=1)
    element = pt.concatenate([row[:, 1:], end], axis=1)
    is_zero, is_kept = pt.eq(length, 0.0), pt.eq(following, 0.0)
    cosine = pt.switch(is_kept, 1.0, element / pt.switch(is_kept, 1.0, following))
    sine = pt.switch(is_kept, 0.0, length / pt.switch(is_kept, 1.0, following))
    i, j = pt.arange(r)[:, None], pt.arange(r)
    share = row[:, :, None] / pt.switch(is_zero, 1.0, length)[:, None, :]
    unit = pt.eq(i, j).astype("float64")
    first = pt.switch(is_zero[:, None, :], unit, pt.switch(pt.le(i, j), share, 0.0))
    return first * cosine[:, None, :] - pt.switch(pt.eq(i, j + 1), sine[:, None, :], 0.0)


def _rotated_rows(q: TensorVariable, incoming: TensorVariable, row: TensorVariable) -> list:
    """Rotate two rows so that the second has a zero in column q."""
    above, below = row[:, q], incoming[:, q]
    is_kept = pt.lt(pt.abs(below), _SMALLEST)
    length = pt.switch(is_kept, 1.0, pt.sqrt(above * above + below * below))
    cosine = pt.switch(is_kept, 1.0, above / length)[:, None]
    sine = pt.switch(is_kept, 0.0, below / length)[:, None]
    return [cosine * incoming - sine * row, cosine * row + sine * incoming]
