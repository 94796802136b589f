"""Hessenberg forms, and the QR iteration along them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.bidiagonal import with_zeros
from pytensor_onnx.functions.linalg.chases import (
    REAL,
    Range,
    bulges,
    chased_columns,
    chased_rows,
    deflated,
    most_sweeps,
    range_of_chase,
    reflection,
)
from pytensor_onnx.functions.linalg.qr import behind_zeros, in_blocks, orthogonal_columns, reflector
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation


@operation("(b,n,n)->(b,n,n),(b,n,n)")
def hessenberg(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of matrices ``A`` to the Hessenberg form ``Q.T @ A @ Q``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 7.4.2. A row and a
    column of zeros at the end give the last step a reflector, the identity.

    Parameters
    ----------
    a
        Square matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        The Hessenberg matrices and the orthogonal matrices ``Q``.
    """

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        vector, scale, _ = reflector(rest[:, k + 1 :, k])
        row = behind_zeros(vector, k + 1)
        column = row[:, :, None]
        along, across = pt.matmul(rest, column), pt.matmul(row[:, None], rest)
        twice = pt.matmul(row[:, None], along)
        factor = scale[:, :, None]
        left = pt.concatenate([column, along - factor * twice * column], axis=2)
        right = pt.concatenate([across, row[:, None]], axis=1)
        return [rest - pt.matmul(left, factor * right), row, scale[:, 0]]

    batch, n = a.shape[0], a.shape[1]
    result, vectors, scales = pytensor.scan(
        step, [pt.arange(n)], [with_zeros(a), None, None], return_updates=False, strict=True
    )
    index = pt.arange(n)
    below = pt.lt(index[None, :], index[:, None] - 1)
    blocks, factors = in_blocks(vectors, scales, (n, batch, n + 1))
    return [pt.switch(below, 0.0, result[-1][:, :n, :n]), orthogonal_columns(blocks, factors, n, n)]


# Sweeps over all rows, as few matrices need more than four.
_SWEEPS = 20
# The gain for which a row is scaled, as in LAPACK.
_GAIN = 0.95
_LIMIT = np.float64(2.0**200)


def balance(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the powers of two ``d`` for which ``a * d / d[:, None]`` is balanced.

    R. James, J. Langou and B. Lowery, On matrix balancing and eigenvector computation, 2014: one
    row after another is scaled so that the lengths of its row and its column become nearly equal,
    until no scale changes. The diagonal counts, as in LAPACK, so that errors of the eigenvalues
    do not become large beside the matrix.

    Parameters
    ----------
    a
        Matrices of at least one row with one batch axis.
    n
        Number of rows.
    """
    count = _SWEEPS * n

    def step(
        k: TensorVariable,
        d: TensorVariable,
        idle: TensorVariable,
        rows: TensorVariable,
        columns: TensorVariable,
    ) -> tuple[list[TensorVariable], until]:
        own = d[:, k]
        row = pt.sqrt(((rows[k] * d) ** 2).sum(axis=1)) / own
        column = pt.sqrt(((columns[k] / d) ** 2).sum(axis=1)) * own
        is_scaled = pt.gt(row, 0.0) & pt.gt(column, 0.0)
        ratio = pt.switch(is_scaled, row, 1.0) / pt.switch(is_scaled, column, 1.0)
        factor = 2.0 ** pt.round(0.5 * pt.log2(ratio))
        gains = pt.lt(column * factor + row / factor, _GAIN * (column + row))
        factor = pt.switch(is_scaled & gains, factor, 1.0)
        is_own = pt.eq(pt.arange(d.shape[1]), k)
        scaled = pt.clip(
            pt.switch(is_own, (own * factor)[:, None], d), np.float64(1 / _LIMIT), _LIMIT
        )
        idle = pt.switch(pt.neq(scaled, d).any(), 0, idle + 1)
        return [scaled, idle], until(pt.ge(idle, d.shape[1]))

    d, _ = iterate(
        step,
        [pt.ones((a.shape[0], n)), pt.constant(np.int64(0))],
        [a.transpose(1, 0, 2), a.transpose(2, 0, 1)],
        n_steps=count,
        sequences=[pt.arange(count) % n],
    )
    return d


@operation("(b,n,k)->(b,n,k),(b)")
def quasi_triangular(rows: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of Hessenberg matrices to quasi-triangular form.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 7.5. Each sweep chases
    a bulge through every block between two zeros below the diagonal, in all matrices of the batch:
    first from row to row, and then, in the rows that the chase has left behind, from column to
    column. So the loops carry three rows and not the matrix.

    Parameters
    ----------
    rows
        Hessenberg matrices ``H`` of at least one row, of a scale near one and finite, and beside
        them ``Q.T``, which takes part in the operations on rows.

    Returns
    -------
    list of TensorVariable
        The rows afterwards, and zero, or NaN where the iteration has not converged.
    """
    n = rows.shape[1]

    def step(rows: TensorVariable, waits: TensorVariable) -> tuple[list[TensorVariable], until]:
        n = rows.shape[1]
        rows, blocks = deflated(rows, n)
        first, is_begin, waits = bulges(rows[:, :, :n], blocks, waits, n)
        low, count = range_of_chase(is_begin, blocks)
        rows = chase_bulges(rows, first, 1.0 - is_begin.astype("float64"), low, count)
        return [rows, waits], until(~blocks.is_active.any())

    waits = pt.zeros((rows.shape[0], n))
    rows, _ = iterate(step, [rows, waits], n_steps=most_sweeps(n))
    rows, blocks = deflated(rows, n)
    return [rows, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


@operation("(b,n,k),(b,r,n),(b,n),(),()->(b,n,k)")
def chase_bulges(
    rows: TensorVariable,
    first: TensorVariable,
    goes_on: TensorVariable,
    low: TensorVariable,
    count: TensorVariable,
) -> TensorVariable:
    """Chase the bulges that reflections of first columns make through a range of rows.

    The operands are Hessenberg matrices beside others, and the fields of `Range`.
    """
    n = rows.shape[1]
    through = Range(first, goes_on, low, count)
    rows, turns = chased_rows(rows, through, REAL, matrices=1, turned=reflection)
    is_before = pt.lt(pt.arange(n), (low + pt.arange(count))[:, None]).astype("float64")
    columns = chased_columns(rows[:, :, :n].mT, turns, through, REAL, is_before)
    return pt.concatenate([columns.mT, rows[:, :, n:]], axis=2)
