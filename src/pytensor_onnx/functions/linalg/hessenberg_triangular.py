"""Unitary reduction of pencils, real or complex, to Hessenberg and triangular form."""

from functools import reduce
from operator import add

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import (
    Numbers,
    Parts,
    chosen,
    each,
    extent,
    grouped,
    listed,
)
from pytensor_onnx.functions.linalg.blocks import nonzero
from pytensor_onnx.functions.linalg.complex_factors import interleaved, reflected_rows, reflection
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation

# Elements of matrices of a scale near one that count as zero; their squares are no divisors.
_SMALLEST = np.float64(1e-140)


@operation("(b,n,n),(b,n,n)->(b,n,k),(b,n,n)")
def hessenberg_triangular(a: TensorVariable, b: TensorVariable) -> list[TensorVariable]:
    """Reduce pencils to Hessenberg matrices ``Q.T @ A @ Z`` and triangular ``Q.T @ B @ Z``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 7.7.4, from the last row
    to the third. The rotations of columns for a row of A depend on this row alone, so that all are
    one product. Then rotations of rows make B triangular again, one after another.

    Parameters
    ----------
    a, b
        Square matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        H, T and ``Q.T`` beside each other, and Z.
    """
    n = a.shape[1]
    q, r = pt.linalg.qr(b)
    rows = pt.concatenate([r, pt.matmul(q.mT, a), q.mT], axis=2)
    h, t, q, z = _reduced(rows, pt.eye(n) + pt.zeros((a.shape[0], 1, 1)), n)
    return [pt.concatenate([h, t, q], axis=2), z]


@operation("(b,n,n),(b,n,n),(b,n,n),(b,n,n)->(b,k,l),(b,k,k)")
def complex_hessenberg_triangular(
    a_real: TensorVariable, a_imag: TensorVariable, b_real: TensorVariable, b_imag: TensorVariable
) -> list[TensorVariable]:
    """Reduce complex pencils as `hessenberg_triangular` does real ones.

    Rotations of columns are those of the magnitudes of a row, after the columns were multiplied by
    numbers of magnitude one. The results have the form of `interleaved`.

    Parameters
    ----------
    a_real, a_imag, b_real, b_imag
        Parts of square matrices with one batch axis, in float64 and of a scale near one.
    """
    batch, n = a_real.shape[0], a_real.shape[1]
    unit = pt.eye(n) + pt.zeros((batch, 1, 1))
    zero = pt.zeros_like(unit)
    above = pt.concatenate([b_real, a_real, unit], axis=2)
    below = pt.concatenate([b_imag, a_imag, zero], axis=2)

    def step(k: TensorVariable, rows: TensorVariable) -> list[TensorVariable]:
        n = rows.shape[1] // 2
        return [reflected_rows(rows, reflection(rows[:, :n, k], rows[:, n:, k], k))]

    (rows,) = iterate(
        step, [pt.concatenate([above, below], axis=1)], n_steps=n, sequences=[pt.arange(n)]
    )
    is_zero = pt.gt(pt.arange(n)[:, None], pt.arange(3 * n))
    reduced = each(lambda x: pt.switch(is_zero, 0.0, x), Parts(rows[:, :n], rows[:, n:]))
    *found, z = (interleaved(x, n) for x in _reduced(reduced, Parts(unit, zero), n))
    return [pt.concatenate(found, axis=2), z]


def _reduced(rows: Numbers, z: Numbers, n: TensorVariable) -> list[Numbers]:
    """Return H, T, the adjoint of Q, and Z for the rows of T, A and the adjoint of Q."""
    width = len(listed(z))
    count = pt.maximum(n - 2, 0)

    def step(r: TensorVariable, *states: TensorVariable) -> list[TensorVariable]:
        return listed(*_without_row(r, *grouped(states, width)))

    found = iterate(step, listed(rows, z), n_steps=count, sequences=[pt.arange(count)[::-1] + 2])
    rows, z = grouped(found, width)
    below = pt.gt(pt.arange(n)[:, None], pt.arange(n) + 1)
    h = each(lambda x: pt.switch(below, 0.0, x), rows[:, :, n : 2 * n])
    return [h, rows[:, :, :n], rows[:, :, 2 * n :], z]


def _without_row(r: TensorVariable, rows: Numbers, z: Numbers) -> list[Numbers]:
    """Make the elements of row r of A zero that stand before the Hessenberg form."""
    width, n = len(listed(z)), listed(z)[0].shape[1]
    turn = _turn(rows[:, r, n : n + r], r)
    b = rows[:, :, :r] @ turn
    a = rows[:, :, n : n + r] @ turn
    z = each(_beside, z[:, :, :r] @ turn, z[:, :, r:])
    rows = each(_beside, b, rows[:, :, r:n], a, rows[:, :, n + r :])

    def step(q: TensorVariable, *values: TensorVariable) -> list[TensorVariable]:
        return listed(*_rotated_rows(q, *grouped(values, width)))

    found = pytensor.scan(
        step,
        [pt.arange(r - 1), *listed(each(lambda x: x.transpose(1, 0, 2), rows[:, 1:r]))],
        [*listed(rows[:, 0]), *[None] * width],
        return_updates=False,
        strict=True,
    )
    last, finished = grouped(found, width)
    is_below = pt.gt(pt.arange(n)[:, None], pt.arange(3 * n))

    def joined(last: TensorVariable, finished: TensorVariable, x: TensorVariable) -> TensorVariable:
        before = [finished.transpose(1, 0, 2), last[-1][:, None]]
        return pt.switch(is_below, 0.0, pt.concatenate([*before, x[:, r:]], axis=1))

    return [each(joined, last, finished, rows), z]


def _beside(*columns: TensorVariable) -> TensorVariable:
    return pt.concatenate(columns, axis=2)


def _turn(row: Numbers, r: TensorVariable) -> Numbers:
    """Return unitary matrices that leave only the last element of rows."""
    if not isinstance(row, Parts):
        return column_rotations(row, r)
    size = pt.sqrt(row.real * row.real + row.imag * row.imag)
    size = pt.switch(pt.lt(size, _SMALLEST), 0.0, size)
    is_zero = pt.eq(size, 0.0)
    phase = Parts(pt.switch(is_zero, 1.0, row.real / nonzero(size)), -row.imag / nonzero(size))
    return phase[:, :, None].scaled(column_rotations(size, r))


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


def _rotated_rows(q: TensorVariable, incoming: Numbers, row: Numbers) -> list[Numbers]:
    """Rotate two rows so that the second has a zero in column q."""
    above, below = row[:, q], incoming[:, q]
    width = len(listed(above))
    one, zero = grouped([1.0, 0.0][:width], width)[0], grouped([0.0, 0.0][:width], width)[0]
    is_kept = pt.lt(extent(below), _SMALLEST)
    size = pt.sqrt(reduce(add, (x * x for x in listed(above, below))))
    length = pt.switch(is_kept, 1.0, size)
    cosine = chosen(is_kept, one, each(lambda x: x / length, above))[:, None]
    sine = chosen(is_kept, zero, each(lambda x: x / length, below))[:, None]
    rotated = cosine.conj() * row + sine.conj() * incoming
    return [cosine * incoming - sine * row, rotated]
