"""LU factorisation with partial pivoting, by blocks of columns or of a batch at once."""

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.batches import batch_first, batch_last, flat, unflat
from pytensor_onnx.functions.linalg.blocks import (
    BLOCK,
    SHORT,
    block_count,
    less_product,
    nothing,
    padded,
    zero,
)
from pytensor_onnx.functions.linalg.triangular import inverted_blocks
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.pivots import PivotPosition
from pytensor_onnx.ops.triangles import Triangle

SMALLEST = {
    dtype: np.finfo(dtype).smallest_subnormal.astype(dtype) for dtype in ("float32", "float64")
}
"""The smallest numbers, which change no other one than zero when they are added."""


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
        return _eliminated_one(a, n)
    factors, pivots, order = _eliminated_batch(flat(a), n)
    return [unflat(factors, a, n, n), unflat(pivots, a, n), unflat(order, a, n)]


def _eliminated_one(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Eliminate blocks of columns (Golub and Van Loan, Matrix Computations, section 3.4.7).

    Rows and columns of zeros are added at the end; these rows are never exchanged with others.
    The multipliers of a block have the order of the rows of the given matrix until all is
    eliminated, so that no step moves those of blocks before.
    """
    dtype, count = a.type.dtype, block_count(n)
    size = count * BLOCK

    def step(
        k: TensorVariable,
        rest: TensorVariable,
        rows: TensorVariable,
        size: TensorVariable,
        n: TensorVariable,
    ) -> list[TensorVariable]:
        positions, chosen, others, multipliers, diagonal = _panel(rest[:, :BLOCK].T, n - k)
        beside = rest[:, BLOCK:]
        right = _solved_unit(multipliers[:, chosen].T, beside[chosen])
        following = less_product(beside[others], multipliers[:, others].T, right)
        upper = pt.concatenate(
            [pt.zeros((BLOCK, k), dtype), Triangle(lower=False)(diagonal), right], axis=1
        )
        # Rows that are known already get any multipliers, above the diagonal.
        places = pt.zeros((size,), "int64")[rows].set(pt.arange(size - k))
        return [
            following,
            rows[others],
            positions + k,
            rows[chosen],
            multipliers[:, places],
            upper,
        ]

    _, _, pivots, order, lower, upper = iterate(
        step,
        [padded(a, n, n, size), pt.arange(size)],
        [size, n],
        n_steps=count,
        sequences=[pt.arange(count) * BLOCK],
    )
    pivots, order = (x.reshape((size,))[:n] for x in (pivots, order))
    lower, upper = (x.reshape((size, size))[:n] for x in (lower, upper))
    factors = Triangle(lower=True, diagonal=-1)(lower.T[order]) + upper[:, :n]
    return [factors, pivots, order]


def _panel(columns: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
    """Eliminate a block of columns, given as the rows of its transpose.

    Returns the positions of the pivots among the rows as they were exchanged, the pivots' rows and
    the other rows in that order; the multipliers, as rows, and the upper triangle. Rows are not
    moved: what becomes of them after they were pivots is not read.

    No more columns are eliminated than are no padding, or `SHORT`.
    """
    size = columns.shape[1]
    first = _eliminated_columns(columns, pt.arange(size), range(SHORT))
    rest, others = first[:2]
    more = BLOCK - SHORT
    none = np.zeros((BLOCK, more), columns.type.dtype)
    second = ifelse(
        pt.gt(count, SHORT),
        _eliminated_columns(rest, others, range(SHORT, BLOCK))[1:],
        [
            others[more:],
            pt.constant(np.zeros(more, "int64")),
            others[np.arange(more)],
            pt.zeros((more, size), columns.type.dtype),
            pt.constant(none),
        ],
    )
    positions, chosen, multipliers, pivot_rows = (
        pt.concatenate([x, y], axis=-1 if i == 3 else 0)
        for i, (x, y) in enumerate(zip(first[2:], second[1:], strict=True))
    )
    return [positions + np.arange(BLOCK), chosen, second[0], multipliers, pivot_rows.T]


def _eliminated_columns(
    columns: TensorVariable, others: TensorVariable, indices: range
) -> list[TensorVariable]:
    """Eliminate some of the columns of a block.

    Returns the columns and the rows that are no pivots; the positions and rows of the pivots, the
    multipliers and the rows of the triangle.
    """
    positions, chosen, multipliers, pivot_rows = [], [], [], []
    for j in indices:
        here = np.array([j])
        column = columns[here]
        position = PivotPosition(axis=1)(column[:, others])
        row = others[position]
        others = pt.switch(pt.eq(others, row), others[:1], others)[1:]
        pivot_row = columns[:, row]
        # The smallest number changes no other one than zero, whose column is zero.
        multiplier = column / (pivot_row[here] + np.array(SMALLEST[columns.type.dtype]))
        positions.append(position)
        chosen.append(row)
        multipliers.append(multiplier)
        pivot_rows.append(pivot_row)
        if j < BLOCK - 1:
            columns = less_product(columns, pivot_row, multiplier)
    return [
        columns,
        others,
        pt.concatenate(positions),
        pt.concatenate(chosen),
        pt.concatenate(multipliers, axis=0),
        pt.concatenate(pivot_rows, axis=1),
    ]


def _solved_unit(unit: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Solve a block of equations whose unit lower triangle has no large numbers."""
    dtype = b.type.dtype
    block = pt.switch(np.tri(BLOCK, k=-1, dtype=bool), unit, zero(dtype))
    inverse = inverted_blocks(block)
    first = pt.dot(inverse, b)
    residual = less_product(b - first, block, first)
    return first + pt.dot(inverse, residual)


def _eliminated_batch(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Eliminate the columns of a batch, one after another in all matrices."""
    dtype = a.type.dtype

    def step(
        j: TensorVariable,
        done: TensorVariable,
        pivots: TensorVariable,
        order: TensorVariable,
        rest: TensorVariable,
        rows: TensorVariable,
    ) -> list[TensorVariable]:
        position = PivotPosition(axis=0)(rest[:, j])
        chosen = pt.eq(pt.arange(rest.shape[0])[:, None], position)
        pivot_row = pt.switch(chosen[:, None], rest, zero(dtype)).sum(axis=0)
        moved = pt.switch(chosen[:, None], rest[:1], rest)[1:]
        pivot = pivot_row[j] + np.array(SMALLEST[dtype])
        multipliers = moved[:, j] / pivot
        following = moved[:, j + 1 :] - multipliers[:, None] * pivot_row[j + 1 :]
        row = pt.switch(chosen, rows, np.int64(0)).sum(axis=0)
        return [
            pt.concatenate([done, pivot_row[None]], axis=0),
            pt.concatenate([pivots, position[None] + j], axis=0),
            pt.concatenate([order, row[None]], axis=0),
            pt.concatenate([moved[:, :j], multipliers[:, None], following], axis=1),
            pt.switch(chosen, rows[:1], rows)[1:],
        ]

    count = a.shape[0]
    start = [
        pt.zeros((nothing(n), n, count), dtype),
        pt.zeros((nothing(n), count), "int64"),
        pt.zeros((nothing(n), count), "int64"),
        batch_last(a),
        pt.arange(n)[:, None] + pt.zeros((1, count), "int64"),
    ]
    done, pivots, order, _, _ = iterate(step, start, n_steps=n, sequences=[pt.arange(n)])
    return [batch_first(done), pivots.T, order.T]
