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
    as_float,
    block_count,
    checked_size,
    less_product,
    nothing,
    padded,
    poison,
)
from pytensor_onnx.functions.linalg.small import LARGEST, factor_of_small, is_small
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.triangles import Triangle


@define(Cholesky, "(n,n)->(n,n)", known_up_to=LARGEST)
def cholesky(a: TensorVariable, *, lower: bool, n: int | None) -> TensorVariable:
    """Cholesky factor of symmetric positive definite matrices, read from one triangle.

    Blocks of rows of the upper factor follow from the blocks above by one product, and within a
    block by elimination of one row after another (Golub and Van Loan, Matrix Computations,
    4th ed., algorithms 4.2.2 and 4.2.5). All elements are NaN if a pivot is not positive, as in
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


def upper_factor(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the upper factors of matrices of a given order, whose upper triangles are read."""
    if a.type.ndim == 2:
        return _factor_of_one(a, n, lower=False)
    return unflat(_factors_of_batch(flat(a), n), a, n, n)


def lower_factor(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factors of matrices of a given order, whose lower triangles are read."""
    if a.type.ndim == 2:
        return _factor_of_one(a.mT, n, lower=True)
    return upper_factor(a.mT, n).mT


def _factor_of_one(a: TensorVariable, n: TensorVariable, *, lower: bool) -> TensorVariable:
    """Return the upper factor of one matrix, or its transpose, by unrolled blocks of padded rows.

    The rows added at the end are zero. Their elimination divides by zero, and no other row reads
    the results.
    """
    dtype = a.type.dtype
    count = block_count(n)
    size = count * BLOCK
    a = padded(a, n, n, size)

    def step(k: TensorVariable, above: TensorVariable, a: TensorVariable) -> list[TensorVariable]:
        above_here = above[:, k:]
        rest = less_product(a[k : k + BLOCK, k:], above_here[:, :BLOCK].T, above_here)
        rows = pt.concatenate([pt.zeros((BLOCK, k), dtype), _eliminated_block(rest)], axis=1)
        return [pt.concatenate([above, rows], axis=0)]

    start = pt.zeros((nothing(n), size), dtype)
    starts = pt.arange(count) * BLOCK
    (factor,) = iterate(step, [start], [a], n_steps=count, sequences=[starts])
    positive = pt.gt(pt.diagonal(factor)[:n], 0).all()
    # A branch takes no time, a sum with NaN that of a copy of the factor.
    factor = factor[:n, :n].T if lower else factor[:n, :n]
    return ifelse(positive, factor, pt.full((n, n), np.full((), np.nan, dtype)))


def _eliminated_block(rest: TensorVariable) -> TensorVariable:
    """Return eliminated rows, whose first columns are an upper triangle."""
    rows, pivots = [], []
    # An index array selects a few elements in less time than a slice.
    first = np.arange(BLOCK)
    for j in range(BLOCK):
        here = np.array([j])
        row = rest[here]
        pivot = row[:, here]
        rows.append(row)
        pivots.append(pivot)
        if j < BLOCK - 1:
            rest = less_product(rest, (row[:, first] / pivot).T, row)
    scaled = pt.concatenate(rows, axis=0) / pt.sqrt(pt.concatenate(pivots, axis=0))
    return Triangle(lower=False)(scaled)


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
