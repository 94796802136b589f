"""LU factorisations with row exchanges."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    BLOCK,
    SHORT,
    as_float,
    batch_first,
    batch_last,
    block_count,
    checked_size,
    diagonals,
    flat,
    less_product,
    nothing,
    padded,
    poison,
    unflat,
    zero,
)
from pytensor_onnx.functions.linalg.triangular import inverted_blocks, refined
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.matrix_parts import NextPivot, PivotPosition, Triangle

_NOT_SQUARE = "expected square matrix"


@define(LUFactor, "(n,n)->(n,n),(n)")
def lu_factor(a: TensorVariable) -> list[TensorVariable]:
    """LU factors of matrices with exchanged rows, and the exchanges.

    The pivot of each column is its first number of the largest magnitude, as LAPACK's. All factors
    are NaN if a pivot is zero, as in PyTensor. The backward error is that of LAPACK.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> factorise = compile_onnx([x], pt.linalg.lu_factor(x), verify=False)
    >>> factorise([[1.0, 3.0], [2.0, 2.0]])
    [array([[2. , 2. ],
           [0.5, 2. ]]), array([1, 1], dtype=int32)]
    """
    (a,) = as_float(a)
    factors, pivots, _ = eliminated(a, checked_size(a, _NOT_SQUARE))
    regular = pt.neq(diagonals(factors), 0).all(axis=-1)
    factors += poison(regular, a.type.dtype)[..., None, None]
    return [factors, pivots.astype("int32")]


@define(LU, own_signature)
def lu(a: TensorVariable, *, permute_l: bool, p_indices: bool) -> list[TensorVariable]:
    """LU factors of matrices and the permutation of their rows, as a matrix or as indices.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> factors = pt.linalg.lu(x, p_indices=True)[:2]
    >>> compile_onnx([x], factors, verify=False)([[1.0, 3.0], [2.0, 2.0]])
    [array([1, 0], dtype=int32), array([[1. , 0. ],
           [0.5, 1. ]])]
    """
    (a,) = as_float(a)
    n, dtype = checked_size(a, _NOT_SQUARE), a.type.dtype
    factors, _, order = eliminated(a, n)
    index = pt.arange(n)
    below, above = index[:, None] > index, index[:, None] <= index
    unit = pt.eq(index[:, None], index).astype(dtype)
    lower = pt.switch(below, factors, unit)
    upper = pt.switch(above, factors, zero(dtype))
    moved = pt.eq(index[:, None], order[..., None, :])
    if permute_l:
        return [pt.matmul(moved.astype(dtype), lower), upper]
    if p_indices:
        return [(moved * index).sum(axis=-1).astype("int32"), lower, upper]
    return [moved.astype(dtype), lower, upper]


@define(PivotToPermutations, "(n)->(n)", batches=False)
def permutation(pivots: TensorVariable, *, inverse: bool) -> TensorVariable:
    """Permutation that exchanges of rows make together.

    Examples
    --------
    >>> from pytensor.tensor.linalg.decomposition.lu import pivot_to_permutation
    >>> from pytensor_onnx import compile_onnx
    >>> pivots = pt.vector("pivots", dtype="int32")
    >>> compile_onnx([pivots], pivot_to_permutation(pivots))([1, 2, 2])
    array([2, 0, 1])
    """
    n = pivots.shape[0]
    index = pt.arange(n)

    def step(
        i: TensorVariable, pivot: TensorVariable, order: TensorVariable
    ) -> list[TensorVariable]:
        both = pt.stack([i, pivot])
        return [pt.set_subtensor(order[both], order[both[::-1]])]

    (order,) = iterate(step, [index], n_steps=n, sequences=[index, pivots.astype("int64")])
    if inverse:
        return order
    return pt.set_subtensor(pt.zeros_like(index)[order], index)


def sign_of_exchanges(pivots: TensorVariable, dtype: str) -> TensorVariable:
    """Return the determinant of the permutation that exchanges make."""
    exchanged = pt.neq(pivots, pt.arange(pivots.shape[-1])).astype("int64").sum(axis=-1)
    return (1 - 2 * (exchanged % 2)).astype(dtype)


@define(Det, "(n,n)->()")
def det(a: TensorVariable) -> TensorVariable:
    """Product of the pivots of matrices, their determinant.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.det(x))([[1.0, 3.0], [2.0, 2.0]])
    array(-4.)
    """
    (a,) = as_float(a)
    n = checked_size(a, _NOT_SQUARE)
    factors, pivots = triangular(a, n)
    product = product_within_range(diagonals(factors), n)
    return product * sign_of_exchanges(pivots, a.type.dtype)


def product_within_range(x: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the products of the n elements of vectors, without overflow in partial products.

    Where partial products may leave the range of numbers, the factors are multiplied without their
    powers of two, which are multiplied in halves.

    Examples
    --------
    >>> x = pt.vector("x")
    >>> product = product_within_range(x, x.shape[0])
    >>> product.eval({x: [-1e-200, 1e-200, 1e300, 2e100]}, mode="ONNX").item()
    -2.0
    """
    # All partial products are between this number to minus and to plus the number of factors.
    largest = (pt.abs(x) + 1 / pt.abs(x)).sum()
    room = np.array(np.finfo(x.type.dtype).maxexp - 2, x.type.dtype)
    is_safe = pt.lt(pt.log2(largest) * n.astype(x.type.dtype), room)
    return ifelse(is_safe, x.prod(axis=-1), _product_of_any(x))


def _product_of_any(x: TensorVariable) -> TensorVariable:
    two = np.array(2, x.type.dtype)
    exponents = _within_range(pt.round(pt.log2(pt.abs(x))))
    exponent = exponents.sum(axis=-1)
    first = pt.floor(exponent / two)
    second = exponent - first
    near_one = (x / two**exponents).prod(axis=-1)
    return near_one * two ** _within_range(first) * two ** _within_range(second)


def _within_range(exponents: TensorVariable) -> TensorVariable:
    """Return exponents of powers of two that are neither zero nor infinite."""
    info = np.finfo(exponents.type.dtype)
    bounds = np.log2(info.smallest_subnormal), info.maxexp - 1
    return pt.clip(exponents, *(np.array(bound, exponents.type.dtype) for bound in bounds))


@define(SLogDet, "(n,n)->(),()")
def slogdet(a: TensorVariable) -> list[TensorVariable]:
    """Signs of the determinants of matrices, and logarithms of their magnitudes.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> from pytensor.tensor.linalg.summary import SLogDet
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], SLogDet()(x))([[1.0, 3.0], [2.0, 2.0]])
    [array(-1.), array(1.38629436)]
    """
    (a,) = as_float(a)
    factors, pivots = triangular(a, checked_size(a, _NOT_SQUARE))
    diagonal = diagonals(factors)
    sign = pt.sign(diagonal).prod(axis=-1) * sign_of_exchanges(pivots, a.type.dtype)
    return [sign, pt.log(pt.abs(diagonal)).sum(axis=-1)]


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


SMALLEST = {
    dtype: np.finfo(dtype).smallest_subnormal.astype(dtype) for dtype in ("float32", "float64")
}
"""The smallest positive numbers, which replace pivots of zero; other pivots round them away."""


def eliminated_batch(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Eliminate the columns of a batch of matrices; return factors, pivots and orders of rows.

    Each step eliminates one column of all matrices.
    """
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


def reduced_batch(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return the rows of upper triangular factors, and the pivots that `eliminated_batch` returns.

    Multipliers are not kept, so that no step has columns that are done.

    Parameters
    ----------
    a
        Matrices with any columns of right-hand sides.
    n
        Number of their rows.
    """
    dtype, count = a.type.dtype, a.shape[0]

    def step(j: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        position = PivotPosition(axis=0)(rest[:, 0])
        chosen = pt.eq(pt.arange(rest.shape[0])[:, None], position)[:, None]
        pivot_row = pt.switch(chosen, rest, zero(dtype)).sum(axis=0)
        moved = pt.switch(chosen[1:], rest[:1], rest[1:])
        multipliers = moved[:, 0] / (pivot_row[0] + np.array(SMALLEST[dtype]))
        following = moved[:, 1:] - multipliers[:, None] * pivot_row[1:]
        whole = pt.concatenate([pt.zeros((j, rest.shape[2]), dtype), pivot_row], axis=0)
        return [following, whole, position + j]

    _, rows, pivots = iterate(step, [batch_last(a)], n_steps=n, sequences=[pt.arange(n)])
    # The runtime's stack of no rows forgets their sizes.
    rows = batch_first(rows).reshape((count, n, a.shape[2]))
    return [rows, pivots.reshape((n, count)).T]
