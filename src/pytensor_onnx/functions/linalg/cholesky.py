"""Cholesky factorisation by blocks of rows."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.batches import batch_first, batch_last, diagonals, flat, unflat
from pytensor_onnx.functions.linalg.blocks import (
    BATCH_BLOCK,
    BLOCK,
    END,
    SHORT,
    as_float,
    block_count,
    checked_size,
    known_late,
    less_product,
    nothing,
    padded,
    plus_product,
    poison,
)
from pytensor_onnx.functions.linalg.small import LARGEST, factor_of_small, is_small
from pytensor_onnx.functions.linalg.triangular import inverted_blocks
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.factorisations import (
    CholeskyPanel,
    EliminateFew,
    EliminateRows,
    RowsBelow,
)
from pytensor_onnx.ops.matrix_parts import Window
from pytensor_onnx.ops.triangles import Triangle

PANEL = 250
"""Columns of a panel, which is complete before the columns to its right are changed."""


@define(Cholesky, "(n,n)->(n,n)", known_up_to=LARGEST)
def cholesky(a: TensorVariable, *, lower: bool, n: int | None) -> TensorVariable:
    """Cholesky factor of symmetric positive definite matrices, read from one triangle.

    Blocks of columns follow from the columns to their left by one product, and from the elimination
    of one row after another of the block on the diagonal (Golub and Van Loan, Matrix Computations,
    4th ed., algorithms 4.2.2 and 4.2.5). The rows below are multiplied by the inverse of that
    block's factor and refined once. All elements are NaN if a pivot is not positive, as in
    PyTensor. The backward error is that of LAPACK. Up to three rows, if the number is known, are
    eliminated without a loop.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.cholesky(x))([[4.0, 2.0], [2.0, 5.0]])
    array([[2., 0.],
           [1., 2.]])
    """
    (a,) = as_float(a)
    if n is not None and is_small(n):
        return factor_of_small(a, n, lower=lower)
    size = checked_size(a, "Input array is expected to be square")
    return lower_factor(a, size) if lower else upper_factor(a, size)


def lower_factor(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factors of matrices of a given order, whose lower triangles are read."""
    if a.type.ndim == 2:
        return _factor_of_one(a, n)
    return upper_factor(a.mT, n).mT


def upper_factor(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the upper factors of matrices of a given order, whose upper triangles are read."""
    if a.type.ndim == 2:
        return lower_factor(a.mT, n).mT
    return unflat(_factors_of_batch(flat(a), n), a, n, n)


def _factor_of_one(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factor of one matrix, with no more loops than its size needs.

    The factors of full blocks are cut to size in the branch that returns them.
    """
    small = ifelse(pt.le(n, SHORT), *(_factor_of_block(a, n, size) for size in (SHORT, BLOCK)))
    factor = ifelse(
        pt.gt(n, 0) & pt.le(n, PANEL),
        ifelse(
            known_late(pt.le(n, 2 * BLOCK), a),
            ifelse(pt.le(n, BLOCK), small, _factor_of_two_blocks(a, n)),
            _factor_of_panel(a, n),
        ),
        _factor_of_panels(a, n),
    )
    index = pt.arange(n)
    positive = pt.gt(factor[index, index], 0).all()
    # A branch takes no time, a sum with NaN that of a copy of the factor.
    return ifelse(positive, factor[:n, :n], pt.full((n, n), np.full((), np.nan, a.type.dtype)))


def _factor_of_panel(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factor of a matrix of at most `PANEL` rows, and of one at least.

    Each branch factorises its own matrix, as a branch that returned this one would copy it.
    """
    count = block_count(n)
    size = count * BLOCK
    return ifelse(
        known_late(pt.eq(size, n), a),
        CholeskyPanel()(a, n, n, count)[0],
        CholeskyPanel()(padded(a, n, size), n, size, count)[0],
    )


def _factor_of_block(a: TensorVariable, n: TensorVariable, size: int) -> TensorVariable:
    """Return the lower factor of a matrix of at most so many rows, and of one at least.

    The last row and column are repeated up to that size; no row of the factor reads them.
    """
    places = pt.minimum(np.arange(size), n - 1)
    block = a[places][:, places].T
    if size == BLOCK:
        rows = EliminateRows()(block)
    else:
        rows = Triangle(lower=False)(EliminateFew()(block)[0])
    return (rows / pt.sqrt(_diagonal(rows, size))).T


def _factor_of_two_blocks(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factor of a matrix of more than `BLOCK` rows, and at most twice as many."""
    # The runtime loads this branch for larger matrices of a known size too.
    a = padded(a, n, pt.maximum(n, 2 * BLOCK))
    first, second = slice(BLOCK), slice(BLOCK, 2 * BLOCK)
    upper, roots = _factor_and_roots(a[first, first])
    left = RowsBelow()(a[second, first], upper, roots)
    corner, _ = _factor_and_roots(less_product(a[second, second], left, left.T))
    top = pt.concatenate([upper.T, pt.zeros_like(left)], axis=1)
    return pt.concatenate([top, pt.concatenate([left, corner.T], axis=1)], axis=0)


def _factor_of_panels(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factor of a matrix of any size, or an empty one, by panels of columns.

    The state is the part of the known columns in the rows that are not known yet, so that each
    step writes rows of the factor at their full length.
    """
    dtype = a.type.dtype
    count = block_count(n)
    size = count * BLOCK
    # Elimination of rows of zeros divides by zero, and no other row reads the results.
    a = ifelse(pt.eq(size, n), a, padded(a, n, size))

    def step(
        first: TensorVariable,
        factor: TensorVariable,
        left: TensorVariable,
        a: TensorVariable,
        zeros: TensorVariable,
        count: TensorVariable,
        n: TensorVariable,
    ) -> list[TensorVariable]:
        k, more = first * BLOCK, count - first
        top = left[:PANEL]
        panel = less_product(a[k:, k : k + PANEL], left, top.T)
        here = pt.minimum(more, PANEL // BLOCK)
        triangle, below = CholeskyPanel()(panel, n - k, more * BLOCK, here)
        rows = pt.concatenate([top, triangle, zeros[: here * BLOCK, k + PANEL :]], axis=1)
        left = pt.concatenate([left[PANEL:], below], axis=1)
        return [pt.concatenate([factor, rows], axis=0), left]

    panels = block_count(n, PANEL)
    none = nothing(n)
    (factor, _) = iterate(
        step,
        [pt.zeros((none, size), dtype), pt.zeros((size, none), dtype)],
        [a, pt.zeros((PANEL, size), dtype), count, n],
        n_steps=panels,
        sequences=[pt.arange(panels) * (PANEL // BLOCK)],
    )
    return factor


@define(CholeskyPanel, CholeskyPanel.gufunc_signature)
def cholesky_panel(
    panel: TensorVariable, n: TensorVariable, size: TensorVariable, count: TensorVariable
) -> list[TensorVariable]:
    """Return the lower triangle of a panel's first rows, and the rows below it.

    Parameters
    ----------
    panel
        Columns on and below the diagonal.
    n, size, count
        Numbers of rows that are no padding, of all rows, and of blocks of columns.
    """
    dtype = panel.type.dtype
    width = count * BLOCK
    first = (pt.arange(count) * BLOCK)[:, None]
    starts, ends = first * np.array([1, 1]), first * np.array([0, 1]) + np.array([END, BLOCK])

    def step(
        start: TensorVariable,
        end: TensorVariable,
        left: TensorVariable,
        panel: TensorVariable,
        zeros: TensorVariable,
        n: TensorVariable,
    ) -> list[TensorVariable]:
        top, k = left[:BLOCK], start[0]
        columns = less_product(Window()(panel, start, end), left, top.T)
        upper, roots = _factor_and_roots(columns[:BLOCK])
        others = columns[BLOCK:]
        # The last block has no rows below.
        below = ifelse(pt.gt(n - k, BLOCK), RowsBelow()(others, upper, roots), others)
        rows = pt.concatenate([top, upper.T, zeros[:, k:]], axis=1)
        return [pt.concatenate([left[BLOCK:], below], axis=1), rows]

    below, rows = iterate(
        step,
        [pt.zeros((size, nothing(size)), dtype)],
        [panel, pt.zeros((BLOCK, width - BLOCK), dtype), n],
        n_steps=count,
        sequences=[starts, ends],
    )
    return [rows.reshape((width, width)), below]


def _factor_and_roots(block: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the upper factor of a block, whose lower triangle is read, and its diagonal."""
    found = EliminateRows()(block.T)
    roots = pt.sqrt(_diagonal(found))
    return found / roots, roots


@define(RowsBelow, RowsBelow.gufunc_signature)
def rows_below(b: TensorVariable, upper: TensorVariable, roots: TensorVariable) -> TensorVariable:
    """Return ``b @ inv(upper)``, refined once."""
    inverse = inverted_blocks(upper / roots) / roots.T
    first = pt.dot(b, inverse)
    return plus_product(first, less_product(b, first, upper), inverse)


@define(EliminateRows, EliminateRows.gufunc_signature)
def eliminate_rows(block: TensorVariable) -> TensorVariable:
    """Return the upper triangle of a block after elimination."""
    first, rest = EliminateFew()(block)
    others, _ = _without_rows(rest, range(SHORT, BLOCK))
    return Triangle(lower=False)(pt.concatenate([first, others], axis=0))


@define(EliminateFew, EliminateFew.gufunc_signature)
def eliminate_few_rows(block: TensorVariable) -> list[TensorVariable]:
    """Return the first `SHORT` rows of a block after elimination, and the rest of the block."""
    return _without_rows(block, range(SHORT))


def _without_rows(rest: TensorVariable, indices: range) -> list[TensorVariable]:
    """Eliminate rows of a block. Return these rows, and the block less their products."""
    rows = []
    for j in indices:
        # An index array selects a few elements in less time than a slice.
        here = np.array([j])
        row = rest[here]
        rows.append(row)
        rest = less_product(rest, (row / row[:, here]).T, row)
    return [pt.concatenate(rows, axis=0), rest]


def _diagonal(rows: TensorVariable, size: int = BLOCK) -> TensorVariable:
    """Return the diagonal of a matrix of so many rows as a column."""
    return rows.reshape((size * size, 1))[np.arange(size) * (size + 1)]


def _factors_of_batch(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the upper factors of a batch of matrices, all at once."""
    dtype = a.type.dtype

    def step(
        k: TensorVariable, factors: TensorVariable, rest: TensorVariable
    ) -> list[TensorVariable]:
        count = pt.minimum(rest.shape[1], BATCH_BLOCK)
        rows = batch_first(_eliminated_rows(batch_last(rest[:, :BATCH_BLOCK]), count))
        right = rows[:, :, BATCH_BLOCK:]
        padded = pt.concatenate([pt.zeros((rest.shape[0], count, k), dtype), rows], axis=2)
        following = less_product(rest[:, BATCH_BLOCK:, BATCH_BLOCK:], right.mT, right)
        return [pt.concatenate([factors, padded], axis=1), following]

    empty = pt.zeros((a.shape[0], nothing(n), n), dtype)
    count = block_count(n, BATCH_BLOCK)
    starts = pt.arange(count) * BATCH_BLOCK
    factors, _ = iterate(step, [empty, a], n_steps=count, sequences=[starts])
    positive = pt.gt(diagonals(factors), 0).all(axis=1)
    return factors + poison(positive, dtype)[:, None, None]


def _eliminated_rows(rest: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Return so many eliminated rows of a batch, whose axis is the last."""
    dtype = rest.type.dtype

    def step(j: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        row = rest[0]
        multipliers = row[1 : rest.shape[0]] / row[:1]
        following = rest[1:, 1:] - multipliers[:, None] * row[1:]
        zeros = pt.zeros((j, rest.shape[2]), dtype)
        return [following, pt.concatenate([zeros, row / pt.sqrt(row[:1])], axis=0)]

    _, rows = pytensor.scan(
        step, [pt.arange(count)], [rest, None], return_updates=False, strict=True
    )
    return rows
