"""Cholesky factorisations, and small matrices written out."""

from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    BATCH_BLOCK,
    BLOCK,
    END,
    SHORT,
    as_float,
    batch_first,
    batch_last,
    block_count,
    checked_size,
    flat,
    less_product,
    nothing,
    plus_product,
    poison,
    unflat,
    zero,
)
from pytensor_onnx.functions.linalg.triangular import inverted_blocks
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.shape import zeros
from pytensor_onnx.ops.linalg.matrix_parts import Triangle, Window

# Factors, inverses and solutions of small matrices, written out.
#
# Factorisation and substitution are the algorithms of larger matrices and as accurate. Cramer's
# rule is not (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.10.1), so
# that general systems and inverses have no form here.

LARGEST = 3
"""Number of rows up to which loops are written out."""


def is_small(n: int | None) -> bool:
    """Return whether a size is known, small and not zero.

    Examples
    --------
    >>> [is_small(n) for n in (None, 0, 1, 3, 4)]
    [False, False, True, True, False]
    """
    return n is not None and 0 < n <= LARGEST


def factor_of_small(a: TensorVariable, n: int, *, lower: bool) -> TensorVariable:
    """Return Cholesky factors, computed from one triangle of each matrix.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> factor_of_small(x, 2, lower=False).eval({x: [[4.0, 2.0], [0.0, 5.0]]}, mode="ONNX")
    array([[2., 1.],
           [0., 2.]])
    """
    elements = a.reshape((-1, n * n)).T

    def element(i: int, j: int) -> TensorVariable:
        return elements[[i * n + j if lower else j * n + i]]

    factor: dict[tuple[int, int], TensorVariable] = {}
    for j in range(n):
        for i in range(j, n):
            rest = element(i, j)
            for k in range(j):
                rest = rest - factor[i, k] * factor[j, k]
            factor[i, j] = pt.sqrt(rest) if i == j else rest / factor[j, j]
    roots = pt.concatenate([factor[j, j] for j in range(n)], axis=0)
    # Also false for the root of a negative number.
    positive = ((roots > 0) & (roots < np.inf)).all(axis=0)
    none = pt.zeros_like(factor[0, 0])
    places = [(i, j) if lower else (j, i) for i in range(n) for j in range(n)]
    rows = pt.concatenate([factor.get(place, none) for place in places], axis=0)
    return (rows + poison(positive, a.type.dtype)).T.reshape(a.shape, ndim=a.type.ndim)


def solution_of_small(
    a: TensorVariable, b: TensorVariable, n: int, *, lower: bool, unit_diagonal: bool
) -> TensorVariable:
    """Return the solutions of triangular systems, read from one triangle of each matrix.

    Examples
    --------
    >>> a, b = pt.matrix("a"), pt.matrix("b")
    >>> x = solution_of_small(a, b, 2, lower=True, unit_diagonal=False)
    >>> x.eval({a: [[2.0, 9.0], [1.0, 1.0]], b: [[4.0], [5.0]]}, mode="ONNX")
    array([[2.],
           [3.]])
    """
    found: dict[int, TensorVariable] = {}
    for i in range(n) if lower else reversed(range(n)):
        rest = b[..., [i], :]
        for j, x in found.items():
            rest = rest - a[..., [i], :][..., [j]] * x
        found[i] = rest if unit_diagonal else rest / a[..., [i], :][..., [i]]
    x = pt.concatenate([found[i] for i in range(n)], axis=-2)
    if unit_diagonal:
        return x
    regular = pt.neq(pt.diagonal(a, axis1=-2, axis2=-1), zero(a.type.dtype)).all(axis=-1)
    return x + poison(regular, a.type.dtype)[..., None, None]


class PairInverse(NamedTuple):
    """``α + β N + γ M + δ N M``, the inverse of ``Y -> σ Y + N Y + Y M``.

    N and M are the elements of blocks in standard form beside the diagonal; their squares are
    negative numbers -ω² and -ν².

    Attributes
    ----------
    alpha, beta, gamma, delta
        The factors.
    distance
        The smallest magnitude ``|σ + i (ω - ν)|`` of an eigenvalue.
    """

    alpha: TensorVariable
    beta: TensorVariable
    gamma: TensorVariable
    delta: TensorVariable
    distance: TensorVariable


def pair_inverse(sigma: TensorVariable, omega: TensorVariable, nu: TensorVariable) -> PairInverse:
    """Return the inverse for sums of diagonal elements and for the numbers ω and ν.

    It is the product of ``σ ± N ± M`` with the three other choices of signs, divided by the
    determinant, which is a number.

    Examples
    --------
    >>> numbers = [pt.scalar(name) for name in "abc"]
    >>> inverse = pair_inverse(*numbers)
    >>> [float(x.eval(dict(zip(numbers, (2.0, 1.0, 0.0))))) for x in inverse[:2]]
    [0.4, -0.2]
    """
    largest = pt.abs(sigma) + omega + nu
    divisor = pt.switch(pt.eq(largest, 0.0), 1.0, largest)
    s, w, v = sigma / divisor, omega / divisor, nu / divisor
    apart, together = w - v, w + v
    smallest = s * s + apart * apart
    determinant = smallest * (s * s + together * together)
    return PairInverse(
        s * (s * s + w * w + v * v) / determinant / divisor,
        -(s * s + apart * together) / determinant / divisor / divisor,
        -(s * s - apart * together) / determinant / divisor / divisor,
        2.0 * s / determinant / divisor / divisor / divisor,
        largest * pt.sqrt(smallest),
    )


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
    return unflat(_factors_of_batch(flat(a), n, lower=True), a, n, n)


def upper_factor(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the upper factors of matrices of a given order, whose upper triangles are read."""
    if a.type.ndim == 2:
        return lower_factor(a.mT, n).mT
    return unflat(_factors_of_batch(flat(a.mT), n, lower=False), a, n, n)


def _factor_of_one(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factor of one matrix."""
    small, poisoned = _factor_of_block(a, n, SHORT)
    small = ifelse(pt.gt(n, 0), small + poisoned, a)
    return ifelse(pt.le(n, SHORT), small, _factor_by_blocks(a, n))


def _factor_by_blocks(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the lower factor of one matrix: its full blocks in a loop, then the last rows.

    The last block has at least one row, so that all other blocks have rows below. A pivot that is
    not positive makes all elements in the rows below its block NaN.
    """
    count = block_count(n) - 1
    k = count * BLOCK
    rows, left = _full_blocks(a, n, count)
    last, poisoned = _factor_of_block(less_product(a[k:, k:], left, left.T), n - k, BLOCK)
    # A branch takes no time, a sum with NaN that of a copy of the factor.
    return ifelse(
        pt.eq(poisoned, 0),
        pt.concatenate([rows, pt.concatenate([left, last], axis=1)], axis=0),
        pt.full((n, n), np.full((), np.nan, a.type.dtype)),
    )


def _factor_of_block(
    block: TensorVariable, n: TensorVariable, size: int
) -> tuple[TensorVariable, TensorVariable]:
    """Return the lower factor of a matrix of at most so many rows, and of one at least.

    The last row and column are repeated up to that size; no row of the factor reads them. The
    second result is zero, or NaN if a pivot is not positive.
    """
    places = pt.minimum(np.arange(size), n - 1)
    # Rows are selected in less time than columns.
    block = block[places].T[places]
    if size == BLOCK:
        rows = eliminate_rows(block)
    else:
        rows = Triangle(lower=False)(eliminate_few(block)[0])
    roots = pt.sqrt(_diagonal(rows, size))
    valid = pt.gt(roots[:n], 0) & pt.lt(roots[:n], np.inf)
    return (rows / roots).T[:n, :n], poison(valid, block.type.dtype).sum()


def _full_blocks(
    a: TensorVariable, n: TensorVariable, count: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the rows of so many blocks of a factor, and the known columns of the rows below.

    The state is the part of the known columns in the rows that are not known yet.
    """
    dtype, index = a.type.dtype, pt.arange(count)

    def step(
        start: TensorVariable,
        left: TensorVariable,
        a: TensorVariable,
        behind: TensorVariable,
    ) -> list[TensorVariable]:
        top, end = left[:BLOCK], start + np.array([END, BLOCK])
        columns = less_product(Window()(a, start, end), left, top.T)
        upper, roots = _factor_and_roots(columns[:BLOCK])
        below = rows_below(columns[BLOCK:], upper, roots)
        row = pt.concatenate([top, upper.T, behind[:, end[1] :]], axis=1)
        return [pt.concatenate([left[BLOCK:], below], axis=1), row]

    left, rows = iterate(
        step,
        [zeros((n, nothing(n)), dtype)],
        [a, zeros((BLOCK, n), dtype)],
        n_steps=index.shape[0],
        sequences=[index[:, None] * np.array([BLOCK, BLOCK])],
    )
    return rows.reshape((count * BLOCK, n)), left


def _factor_and_roots(block: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the upper factor of a block, whose lower triangle is read, and its diagonal."""
    found = eliminate_rows(block.T)
    roots = pt.sqrt(_diagonal(found))
    return found / roots, roots


@operation("(m,w),(w,w),(w,l)->(m,w)")
def rows_below(b: TensorVariable, upper: TensorVariable, roots: TensorVariable) -> TensorVariable:
    """Return ``b @ inv(upper)``, refined once; ``roots`` is the factor's diagonal, a column."""
    inverse = inverted_blocks(upper / roots) / roots.T
    first = pt.dot(b, inverse)
    return plus_product(first, less_product(b, first, upper), inverse)


@operation("(w,w)->(w,w)")
def eliminate_rows(block: TensorVariable) -> TensorVariable:
    """Return the upper triangle of a block after elimination."""
    first, rest = eliminate_few(block)
    others, _ = _without_rows(rest, range(SHORT, BLOCK))
    return Triangle(lower=False)(pt.concatenate([first, others], axis=0))


@operation("(w,w)->(s,w),(w,w)")
def eliminate_few(block: TensorVariable) -> list[TensorVariable]:
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


def _factors_of_batch(a: TensorVariable, n: TensorVariable, *, lower: bool) -> TensorVariable:
    """Return the factors of a batch of matrices, whose lower triangles are read, all at once.

    A loop eliminates the blocks that have rows below, if any, and the last rows follow it: small
    matrices have no products of blocks and are joined to nothing. NaN in a block reaches all rows
    below.
    """
    dtype, size = a.type.dtype, a.shape[0]
    count = pt.maximum(block_count(n, BATCH_BLOCK) - 1, 0)

    def step(
        k: TensorVariable, factors: TensorVariable, rest: TensorVariable
    ) -> list[TensorVariable]:
        columns = _eliminated_columns(batch_last(rest[:, :, :BATCH_BLOCK]), BATCH_BLOCK)
        rows = batch_first(columns + poison(_has_factors(columns), dtype))
        right = rows[:, :, BATCH_BLOCK:]
        following = less_product(rest[:, BATCH_BLOCK:, BATCH_BLOCK:], right.mT, right)
        before = zeros((rows.shape[0], BATCH_BLOCK, k), dtype)
        return [_with_rows(factors, before, rows), following]

    empty = zeros((size, nothing(n), n), dtype)
    starts = pt.arange(count) * BATCH_BLOCK
    factors, rest = iterate(step, [empty, a], n_steps=count, sequences=[starts])
    # PyTensor takes the shape of a state for that of its first value.
    k = count * BATCH_BLOCK
    left = n - k
    last = _eliminated_columns(batch_last(rest), left, square=True)
    valid = _has_factors(last)
    invalid = poison(valid, dtype)
    several = _with_rows(factors, zeros((size, left, k), dtype), batch_first(last))
    several = several + invalid[:, None, None]
    return ifelse(
        pt.gt(count, 0),
        several.mT if lower else several,
        # A branch takes less time than a sum with zeros.
        ifelse(valid.all(), *(_triangles(x, size, n, lower) for x in (last, last + invalid))),
    )


def _triangles(
    columns: TensorVariable, size: TensorVariable, n: TensorVariable, lower: bool
) -> TensorVariable:
    """Return so many lower or upper factors of order n from their columns, batch axis last.

    Columns of no steps have no batch axis to read the size from.
    """
    if not lower:
        return batch_first(columns.reshape((n, n, size)))
    # Rows of a batch are selected in less time than three axes are reversed.
    places = pt.arange(n) * n + pt.arange(n)[:, None]
    return batch_first(columns.reshape((n * n, size))[places])


def _with_rows(
    factors: TensorVariable, before: TensorVariable, rows: TensorVariable
) -> TensorVariable:
    """Return factors and the rows below, with the zeros before these rows."""
    return pt.concatenate([factors, pt.concatenate([before, rows], axis=2)], axis=1)


def _has_factors(columns: TensorVariable) -> TensorVariable:
    """Return which matrices have positive pivots alone, given their columns."""
    index = pt.arange(columns.shape[0])
    return pt.gt(columns[index, index], 0).all(axis=0)


def _eliminated_columns(
    rest: TensorVariable, count: TensorVariable | int, *, square: bool = False
) -> TensorVariable:
    """Return so many eliminated columns of a batch, whose axis is the last, one after another.

    A column has an element for each row, and there are more rows than columns unless `square`.
    """
    dtype = rest.type.dtype

    def step(j: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        column = rest[:, 0]
        column = column / pt.sqrt(column[:1])
        below = column[1:]
        across = below if square else below[: rest.shape[1] - 1]
        following = rest[1:, 1:] - below[:, None] * across
        before = zeros((j, rest.shape[2]), dtype)
        return [following, pt.concatenate([before, column], axis=0)]

    _, columns = pytensor.scan(
        step, [pt.arange(count)], [rest, None], return_updates=False, strict=True
    )
    return columns
