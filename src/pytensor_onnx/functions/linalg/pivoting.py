"""LU factorisation with partial pivoting, by blocks of columns."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.batch_pivoting import (
    SMALLEST,
    eliminated_batch,
    reduced_batch,
)
from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import (
    BLOCK,
    SHORT,
    block_count,
    less_product,
    nothing,
    padded,
)
from pytensor_onnx.functions.linalg.triangular import inverted_blocks, refined
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.linalg.pivot_ops import NextPivot, PivotPosition
from pytensor_onnx.ops.linalg.triangle_ops import Triangle


def eliminated(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return factors of matrices, the pivots, and the order in which they leave the rows.

    The factors are those of ``a[order]``: U in the upper triangle, and L, without its diagonal of
    ones, below. ``pivots[i]`` is the row that was exchanged with row i, as in LAPACK. Both are
    int64. A zero pivot leaves zeros below it.

    Parameters
    ----------
    a
        Square matrices of float32 or float64.
    n
        Their order.
    """
    if a.type.ndim == 2:
        size = block_count(n) * BLOCK
        whole = ifelse(pt.eq(size, n), a, padded(a, n, size))
        factors, order, positions = _eliminated_one(whole, n, size, _panel)
        return [factors[:n, :n], positions + pt.arange(n), order]
    factors, pivots, order = eliminated_batch(flat(a), n)
    return [unflat(factors, a, n, n), unflat(pivots, a, n), unflat(order, a, n)]


def reduced(a: TensorVariable, b: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return upper triangular matrices and right-hand sides that have the solutions of others.

    These are U and ``inv(L) @ b[order]``, whose columns are eliminated with those of the matrix.
    The lower triangle is not zero.

    Parameters
    ----------
    a, b
        Square matrices and matrices of right-hand sides, of one dtype and with equal batch axes.
    n
        Number of rows of both.
    """
    if a.type.ndim == 2:
        size = block_count(n) * BLOCK
        whole = _padded_by_ones(a, n, size, b)
        factors, _ = _eliminated_one(whole, n, size, _free_panel)
        return [factors[:n, :n], factors[:n, size:]]
    rows, _ = reduced_batch(pt.concatenate([flat(a), flat(b)], axis=2), n)
    # The runtime's Concat forgets the columns of an empty batch.
    right = rows[:, :, n:].reshape(b.shape, ndim=b.type.ndim)
    return [unflat(rows[:, :, :n], a, n, n), right]


def triangular(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return matrices with the upper triangles of LU factors, and the pivots.

    The parameters and the pivots are those of `eliminated`.
    """
    if a.type.ndim == 2:
        return eliminated(a, n)[:2]
    rows, pivots = reduced_batch(flat(a), n)
    return [unflat(rows, a, n, n), unflat(pivots, a, n)]


def _padded_by_ones(
    a: TensorVariable, n: TensorVariable, size: TensorVariable, b: TensorVariable
) -> TensorVariable:
    """Return a system of equations with its right-hand sides, padded by equations ``x = 0``."""
    dtype = a.type.dtype
    wide = pt.concatenate([a, pt.zeros((n, size - n), dtype), b], axis=1)
    diagonal = pt.eq(pt.arange(n, size)[:, None], pt.arange(wide.shape[1])).astype(dtype)
    return pt.concatenate([wide, diagonal], axis=0)


def _eliminated_one(
    a: TensorVariable,
    n: TensorVariable,
    size: TensorVariable,
    panel: Callable[[TensorVariable, TensorVariable], list[TensorVariable]],
) -> list[TensorVariable]:
    """Eliminate blocks of columns, each after a product of the factors that are known.

    In Crout's order (Golub and Van Loan, Matrix Computations, 4th ed., section 3.2.9) no step
    copies the rest of the matrix. Rows behind the first n are never exchanged with others.

    Parameters
    ----------
    a
        Matrix with rows and columns of zeros behind the first n, and columns of right-hand sides.
    n, size
        Numbers of rows without those of zeros, and with them.
    panel
        Elimination of a block of columns.

    Returns
    -------
    list[TensorVariable]
        The factors, the order of the rows, and the positions of the pivots if the panel has them.
    """
    dtype, width = a.type.dtype, a.shape[1]

    def step(
        k: TensorVariable,
        lower: TensorVariable,
        upper: TensorVariable,
        rows: TensorVariable,
        a: TensorVariable,
        n: TensorVariable,
    ) -> list[TensorVariable]:
        end = k + BLOCK
        columns = less_product(a[:, k:end][rows], lower, upper[:, :BLOCK])
        chosen, others, multipliers, triangle, *positions = panel(columns.T, n - k)
        lower = pt.concatenate([lower, multipliers.T], axis=1)
        done, upper = lower[chosen], upper[:, BLOCK:]
        left, unit = done[:, :k], Triangle(lower=True, diagonal=-1)(done[:, k:])
        right = _solved_unit(unit, less_product(a[rows[chosen]][:, end:], left, upper))
        return [
            lower[others],
            pt.concatenate([upper, right], axis=0),
            rows[others],
            pt.concatenate([left, unit + Triangle(lower=False)(triangle), right], axis=1),
            rows[chosen],
            *positions,
        ]

    none = nothing(n)
    _, _, _, factors, *found = iterate(
        step,
        [pt.zeros((size, none), dtype), pt.zeros((none, width), dtype), pt.arange(size)],
        [a, n],
        n_steps=block_count(n),
        sequences=[pt.arange(block_count(n)) * BLOCK],
    )
    return [factors.reshape((size, width)), *(x.reshape((size,))[:n] for x in found)]


def _panel(columns: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
    """Eliminate a block of columns, given as the rows of its transpose.

    Returns the pivots' rows and the other rows in the order of LAPACK's exchanges; the multipliers,
    as rows; the upper triangle; and the positions of the pivots among the candidates. Rows are not
    moved: they are not read after they were pivots.

    No more columns are eliminated than are no padding, or `SHORT`.
    """
    size, dtype = columns.shape[1], columns.type.dtype
    first = _eliminated_columns(columns, pt.arange(size), SHORT)
    rest, others = first[:2]
    more = BLOCK - SHORT
    second = ifelse(
        pt.gt(count, SHORT),
        _eliminated_columns(rest, others, more)[1:],
        [
            others[more:],
            pt.constant(np.zeros(more, "int64")),
            others[np.arange(more)],
            pt.zeros((more, size), dtype),
            pt.constant(np.zeros((more, more), dtype)),
        ],
    )
    positions, chosen, multipliers = (
        pt.concatenate([x, y], axis=0) for x, y in zip(first[2:5], second[1:4], strict=True)
    )
    below = pt.concatenate([np.zeros((more, SHORT), dtype), second[4]], axis=1)
    triangle = pt.concatenate([first[5], below], axis=0)
    return [chosen, second[0], multipliers, triangle, positions]


def _eliminated_columns(
    columns: TensorVariable, others: TensorVariable, count: int
) -> list[TensorVariable]:
    """Eliminate the first columns of a block, given as the rows of its transpose.

    Returns the columns and the rows that are left; the positions and rows of the pivots, the
    multipliers as rows, and the rows of the triangle.
    """
    found = []
    for j in range(count):
        column = columns[j]
        position, row, others = NextPivot()(column, others)
        pivot_row = columns[:, row]
        pivot = pivot_row[np.array([j])]
        # The smallest number changes no other one than zero, whose column is zero.
        multiplier = column / (pivot + np.array(SMALLEST[columns.type.dtype]))
        found.append((position, row, multiplier, pivot_row))
        columns = less_product(columns, pivot_row, multiplier)
    joined = [pt.concatenate(x, axis=0) for x in zip(*found, strict=True)]
    # To join columns beside each other would copy them number by number.
    joined[3] = joined[3].reshape((count, -1))
    return [columns[count:], others, *joined]


def _free_panel(columns: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
    """Eliminate a block of columns with any pivots of the largest magnitude.

    Returns the results of `_panel` without positions. A column takes seven operators in place of
    thirteen. Rows that were pivots are zero, so that none of them is chosen again; if a pivot is
    zero, it is the first one, and all behind it is NaN.
    """
    size, dtype = columns.shape[1], columns.type.dtype
    more = BLOCK - SHORT
    rest, *first = _freely_eliminated(columns, SHORT)
    second = ifelse(
        pt.gt(count, SHORT),
        _freely_eliminated(rest, more)[1:],
        [
            pt.constant(np.zeros(more, "int64")),
            pt.zeros((more, size), dtype),
            pt.constant(np.zeros((more, more), dtype)),
        ],
    )
    chosen, multipliers = (pt.concatenate([first[i], second[i]], axis=0) for i in (0, 1))
    below = pt.concatenate([np.zeros((more, SHORT), dtype), second[2]], axis=1)
    triangle = pt.concatenate([first[2], below], axis=0)
    left = pt.set_subtensor(pt.ones((size,), "int64")[chosen], 0)
    # More rows are left where a pivot is zero.
    others = left.nonzero()[0][: size - BLOCK]
    return [chosen, others, multipliers, triangle]


def _freely_eliminated(columns: TensorVariable, count: int) -> list[TensorVariable]:
    """Eliminate the first columns of a block, given as the rows of its transpose.

    Returns the columns that are left, the rows of the pivots, the multipliers as rows, and the rows
    of the triangle.
    """
    found = []
    for j in range(count):
        here = np.array([j])
        column = columns[here]
        row = PivotPosition(axis=1)(column)
        pivot_row = columns[:, row]
        multiplier = column / pivot_row[here]
        found.append((row, multiplier, pivot_row))
        columns = less_product(columns, pivot_row, multiplier)
    rows, multipliers, triangle = (pt.concatenate(x, axis=0) for x in zip(*found, strict=True))
    return [columns[count:], rows, multipliers, triangle.reshape((count, -1))]


def _solved_unit(unit: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Solve a block of equations, given the part of their unit triangle below its diagonal."""
    whole = unit + np.eye(BLOCK, dtype=b.type.dtype)
    return refined(b, whole, inverted_blocks(unit))
