"""Eigenvalues of symmetric matrices by divide and conquer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh
from pytensor.tensor.linalg.solvers.tridiagonal import LUFactorTridiagonal, SolveLUFactorTridiagonal
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import (
    Numbers,
    Parts,
    chosen,
    each,
    extent,
    grouped,
    listed,
    quotient,
)
from pytensor_onnx.functions.linalg.bidiagonal import bidiagonal_vectors, tridiagonalise
from pytensor_onnx.functions.linalg.blocks import (
    as_columns,
    as_float,
    checked_size,
    finite,
    flat,
    from_columns,
    poison,
    power_of_two,
    symmetric,
    unflat,
    zero,
)
from pytensor_onnx.functions.linalg.lu import SMALLEST
from pytensor_onnx.functions.linalg.qr import reflect, signs
from pytensor_onnx.functions.linalg.svd import orthogonal_columns
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.special.arithmetic import is_narrow
from pytensor_onnx.ops.linalg.complex_matrices import OF_PARTS

_SQUARE = "expected square matrix"


def _of_operands(results: str) -> Callable[[Any, int], str]:
    """Return a function that returns the signature for one or two matrices."""
    return lambda _, count: ",".join(["(m,m)"] * count) + "->" + results


@define(Eigh, _of_operands("(m),(m,m)"))
def eigh(
    a: TensorVariable, b: TensorVariable | None = None, *, lower: bool
) -> list[TensorVariable]:
    """Eigenvalues in ascending order and orthonormal eigenvectors, of the triangle that is read.

    Matrices are reduced to tridiagonal form, which is made positive definite by a shift; its
    eigenvectors are the singular vectors of its bidiagonal Cholesky factor. The eigenvalues are
    the Rayleigh quotients of the eigenvectors. The errors are those of LAPACK, relative to the
    norm of the matrix. Eigenvectors have the signs of `signs`; those of an eigenvalue that is
    repeated are any basis. All results are NaN where an element that is
    read is not finite. float32 is computed in float64, and in files without it by rotations in
    float32.

    With a second matrix ``B``, the equation is ``A v = w B v`` and ``v.T B v`` is one: the matrix
    is divided by a Cholesky factor of ``B`` on both sides. All results are NaN if ``B`` is not
    positive definite.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> w, v = compile_onnx([x], pt.linalg.eigh(x))([[2.0, 1.0], [1.0, 2.0]])
    >>> w.round(6)
    array([1., 3.])
    >>> abs(v).round(3)
    array([[0.707, 0.707],
           [0.707, 0.707]])
    """
    a, *others = as_float(a) if b is None else as_float(a, b)
    n = checked_size(a, _SQUARE)
    if others:
        values, vectors = _generalised_eigen(flat(a), flat(others[0]), n, lower=lower)
    else:
        values, vectors = symmetric_eigen(flat(a), n, lower=lower)
    values, vectors = values.astype(a.type.dtype), vectors.mT.astype(a.type.dtype)
    return [unflat(values, a, n), unflat(vectors, a, n, n)]


@define(Eigvalsh, _of_operands("(m)"))
def eigvalsh(a: TensorVariable, b: TensorVariable | None = None, *, lower: bool) -> TensorVariable:
    """Eigenvalues in ascending order, as `eigh` returns them."""
    return eigh(a, b, lower=lower)[0]


def _generalised_eigen(
    a: TensorVariable, b: TensorVariable, n: TensorVariable, *, lower: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and, in rows, eigenvectors of pairs of matrices.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 8.7.1.
    """
    if not is_narrow():
        a, b = a.astype("float64"), b.astype("float64")
    factor = pt.linalg.cholesky(b, lower=lower)
    factor = factor if lower else factor.mT
    divided = pt.linalg.solve_triangular(factor, symmetric(a, n, lower=lower), lower=True, b_ndim=2)
    divided = pt.linalg.solve_triangular(factor, divided.mT, lower=True, b_ndim=2)
    values, vectors = symmetric_eigen(divided, n, lower=True)
    solved = pt.linalg.solve_triangular(factor.mT, vectors.mT, lower=False, b_ndim=2).mT
    return values, solved * signs(solved)


def symmetric_eigen(
    a: TensorVariable, n: TensorVariable, *, lower: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and, in rows, eigenvectors of matrices with one batch axis."""
    a = a if is_narrow() else a.astype("float64")
    valid, a = finite(symmetric(a, n, lower=lower))
    scale = power_of_two(a, axis=(1, 2))
    values, vectors = (_by_rotations if is_narrow() else _by_tridiagonal_form)(a * scale)
    order = pt.argsort(values, axis=1) + pt.arange(a.shape[0])[:, None] * n
    values = values.flatten()[order] / scale[:, :, 0]
    vectors = vectors.reshape((a.shape[0] * n, n))[order]
    return values + valid[:, :, 0], vectors * signs(vectors) + valid


def _by_tridiagonal_form(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and eigenvectors in any order."""
    batch, n = a.shape[0], a.shape[1]
    diagonal, beside, *reflectors = tridiagonalise(a)
    vectors = bidiagonal_vectors(*_shifted_root(diagonal, beside, batch), with_left=False)
    zero = pt.zeros((batch, n, 1))
    next_elements = pt.concatenate([vectors[:, :, 1:], zero], axis=2)[:, :, :n]
    products = diagonal[:, None] * vectors + 2.0 * beside[:, None] * next_elements
    values = (vectors * products).sum(axis=2)
    vectors = reflect(pt.concatenate([vectors, zero], axis=2), *reflectors)[:, :, :n]
    return values, vectors


def _by_rotations(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and eigenvectors in any order, without float64.

    The right singular vectors of a positive definite matrix are its eigenvectors, so the matrix is
    made positive definite by a shift.
    """
    dtype = a.type.dtype
    batch, n = a.shape[0], a.shape[1]
    places = pt.arange(n)
    norm = pt.abs(a).sum(axis=2)
    norm = pt.concatenate([norm, pt.ones((batch, 1), dtype)], axis=1).max(axis=1)
    shift = (norm + norm)[:, None, None] * pt.eq(places[:, None], places).astype(dtype)
    _, vectors = orthogonal_columns(a + shift)
    return (vectors * pt.matmul(vectors, a)).sum(axis=2), vectors


def _shifted_root(
    diagonal: TensorVariable, beside: TensorVariable, batch: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the Cholesky factor of tridiagonal matrices, made positive definite by a shift.

    The right singular vectors of the factor are the eigenvectors.
    """
    before = pt.concatenate([pt.zeros((batch, 1)), pt.abs(beside)], axis=1)[:, :-1]
    norm = pt.abs(diagonal) + pt.abs(beside) + before
    norm = pt.concatenate([norm, pt.zeros((batch, 1))], axis=1).max(axis=1, keepdims=True)
    shifted = diagonal + pt.switch(pt.gt(norm, 0.0), 1.125 * norm, 1.0)

    def step(d: TensorVariable, e: TensorVariable, above: TensorVariable) -> list[TensorVariable]:
        root = pt.sqrt(d - above * above)
        return [e / root, root]

    above, root = pytensor.scan(
        step,
        [shifted.T, beside.T],
        [pt.zeros((batch,)), None],
        return_updates=False,
    )
    sizes = diagonal.shape[1], batch
    return root.reshape(sizes).T, above.reshape(sizes).T


@define(LUFactorTridiagonal, "(dl),(d),(dl)->(dl),(d),(dl),(du2),(d)")
def tridiagonal_lu_factor(
    dl: TensorVariable, d: TensorVariable, du: TensorVariable
) -> list[TensorVariable]:
    """LU factors of tridiagonal matrices with partial pivoting, as LAPACK's ``gttrf``.

    Two rows are exchanged if the first has the smaller pivot, which fills a second diagonal above
    the main one. The loop has a step for each row, in all matrices of a batch.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers.tridiagonal import tridiagonal_lu_factor
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], tridiagonal_lu_factor(x)[1], verify=False)([[1.0, 3.0], [2.0, 2.0]])
    array([2., 2.])
    """
    return _factorised(*as_float(dl, d, du))


@define(OF_PARTS[LUFactorTridiagonal], own_signature)
def tridiagonal_lu_factor_of_parts(*diagonals: TensorVariable) -> list[TensorVariable]:
    """Parts of LU factors of complex tridiagonal matrices, as LAPACK's ``zgttrf``.

    Rows are exchanged by the sums of the magnitudes of both parts.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers.tridiagonal import tridiagonal_lu_factor
    >>> z = pt.zmatrix("z")
    >>> factorise = pytensor.function([z], tridiagonal_lu_factor(z)[1], mode="ONNX")
    >>> factorise([[1.0, 3.0], [2j, 2.0]])
    array([0.+2.j, 3.+1.j])
    """
    return _factorised(*grouped(diagonals, 2))


def _factorised(dl: Numbers, d: Numbers, du: Numbers) -> list[TensorVariable]:
    dl, d, du = (each(lambda x: pt.moveaxis(x, -1, 0), diagonal) for diagonal in (dl, d, du))
    like, width = listed(d)[0], len(listed(d))
    dtype = like.type.dtype
    above = each(lambda x: pt.concatenate([x, pt.zeros_like(like[:1])], axis=0), du)

    def step(row: TensorVariable, *states: TensorVariable) -> list[TensorVariable]:
        below, diagonal, beside = grouped([row[i] for i in range(3 * width)], width)
        pivot, right = grouped(states, width)
        swaps = ~(extent(pivot) >= extent(below))
        large, small = chosen(swaps, below, pivot), chosen(swaps, pivot, below)
        multiplier = _multiplier(small, large)
        first, second = chosen(swaps, diagonal, right), chosen(swaps, right, diagonal)
        following = second - multiplier * first
        filled = each(lambda x: pt.switch(swaps, x, zero(dtype)), beside)
        stored = [*listed(multiplier, large, first, filled), swaps.astype(dtype)]
        right = chosen(swaps, -multiplier * beside, beside)
        return [*listed(following, right), pt.stack([*stored, *listed(following)])]

    *_, rows = pytensor.scan(
        step,
        [pt.stack(listed(dl, d[1:], above[1:]), axis=1)],
        [*listed(d[0], above[0]), None],
        return_updates=False,
        strict=True,
    )
    multiplier, large, first, filled = grouped([rows[:, i] for i in range(4 * width)], width)
    (following,) = grouped([rows[:, 4 * width + 1 + i] for i in range(width)], width)
    swaps = pt.concatenate([rows[:, 4 * width], pt.zeros_like(like[:1])], axis=0)
    swaps = pt.moveaxis(swaps, 0, -1)
    last = each(_last, d[:1], following)
    results = listed(multiplier, each(_joined, large, last), first, filled[:-1])
    # LAPACK counts these from one.
    pivots = swaps.astype("int32") + pt.arange(1, like.shape[0] + 1).astype("int32")
    return [*(pt.moveaxis(result, 0, -1) for result in results), pivots]


def _multiplier(x: Numbers, y: Numbers) -> Numbers:
    """Return quotients of numbers that are not larger than the divisors, zero for a zero."""
    if isinstance(y, Parts):
        return quotient(x, y)
    # The smallest number changes no other one than zero.
    return x / (y + np.array(SMALLEST[y.type.dtype]))


@define(SolveLUFactorTridiagonal, own_signature)
def tridiagonal_lu_solve(
    dl: TensorVariable,
    d: TensorVariable,
    du: TensorVariable,
    du2: TensorVariable,
    ipiv: TensorVariable,
    b: TensorVariable,
    *,
    b_ndim: int,
    transposed: bool,
) -> TensorVariable:
    """Solution of systems with LU factors of tridiagonal matrices, as LAPACK's ``gttrs``.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers import tridiagonal
    >>> from pytensor_onnx import compile_onnx
    >>> x, b = pt.matrix("x"), pt.vector("b")
    >>> factors = tridiagonal.tridiagonal_lu_factor(x)
    >>> solution = tridiagonal.tridiagonal_lu_solve(factors, b, b_ndim=1)
    >>> compile_onnx([x, b], solution, verify=False)([[1.0, 3.0], [2.0, 2.0]], [7.0, 6.0])
    array([1., 2.])
    """
    *factors, b = as_float(dl, d, du, du2, b)
    return _solved(factors, ipiv, b, b_ndim, transposed)


@define(OF_PARTS[SolveLUFactorTridiagonal], own_signature)
def tridiagonal_lu_solve_of_parts(
    *operands: TensorVariable, b_ndim: int, transposed: bool
) -> list[TensorVariable]:
    """Parts of solutions of systems with LU factors of complex tridiagonal matrices.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers import tridiagonal
    >>> z, b = pt.zmatrix("z"), pt.zvector("b")
    >>> factors = tridiagonal.tridiagonal_lu_factor(z)
    >>> solution = tridiagonal.tridiagonal_lu_solve(factors, b, b_ndim=1)
    >>> solve = pytensor.function([z, b], solution, mode="ONNX")
    >>> solve([[1.0, 3.0], [2j, 2.0]], [3.0, 2.0]).round(6) + 0
    array([0.+0.j, 1.+0.j])
    """
    *factors, pivots, real, imag = operands
    return listed(_solved(grouped(factors, 2), pivots, Parts(real, imag), b_ndim, transposed))


def _solved(
    factors: list[Numbers], pivots: TensorVariable, b: Numbers, b_ndim: int, transposed: bool
) -> Numbers:
    columns = each(lambda x: pt.moveaxis(as_columns(x, b_ndim), -2, 0), b)
    exchanged = pt.neq(pivots, pt.arange(1, pivots.shape[-1] + 1))
    dl, d, du, du2, swaps = (
        each(lambda x: pt.moveaxis(x, -1, 0)[..., None], z) for z in (*factors, exchanged)
    )
    like = listed(d)[0]
    none = pt.zeros_like(like[:1])

    def moved(z: Numbers, by: int) -> Numbers:
        rows = each(lambda x: pt.concatenate([*before * by, x, *behind * by], axis=0), z)
        return rows[: like.shape[0]] if by == 2 else rows

    if transposed:
        # An unknown depends on the two before it.
        before, behind = [none], []
        x = _substituted(columns, d, moved(du, 1), moved(du2, 2))
        x = _exchanged_up(x, dl, swaps)
    else:
        before, behind = [], [none]
        x = _exchanged_down(columns, dl, swaps)
        first, second = moved(du, 1), moved(du2, 2)
        x = _substituted(x[::-1], d[::-1], first[::-1], second[::-1])[::-1]
    return each(lambda x: from_columns(pt.moveaxis(x, 0, -2), b_ndim), x)


def solved_tridiagonal(a: TensorVariable, b: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the solutions of tridiagonal systems, read from the three diagonals of each matrix.

    A last equation, of one more unknown alone, makes the loops have a first row for empty systems
    too. All unknowns are NaN if a pivot is zero.
    """
    dtype = a.type.dtype
    below, diagonal, above = (
        pt.diagonal(a, offset=offset, axis1=-2, axis2=-1) for offset in (-1, 0, 1)
    )
    batch = [a.shape[axis] for axis in range(a.type.ndim - 2)]
    none = pt.zeros((*batch, 1), dtype)
    below, above = (pt.concatenate([x, none], axis=-1)[..., :n] for x in (below, above))
    diagonal = pt.concatenate([diagonal, pt.ones_like(none)], axis=-1)
    sides = pt.concatenate([b, pt.zeros((*batch, 1, b.shape[-1]), dtype)], axis=-2)
    dl, d, du, du2, pivots = tridiagonal_lu_factor(below, diagonal, above)
    x = tridiagonal_lu_solve(dl, d, du, du2, pivots, sides, b_ndim=2, transposed=False)
    regular = pt.neq(d, 0).all(axis=-1)
    return x[..., :n, :] + poison(regular, dtype)[..., None, None]


def _substituted(b: Numbers, d: Numbers, first: Numbers, second: Numbers) -> Numbers:
    """Substitute rows in order, with the coefficients of the two rows found before each."""
    width = len(listed(b))

    def step(*values: TensorVariable) -> list[TensorVariable]:
        b, d, first, second, last, before = grouped(values, width)
        x = _divided(b - first * last - second * before, d)
        return listed(x, last, x)

    start = each(pt.zeros_like, b[0])
    found = pytensor.scan(
        step,
        listed(b, d, first, second),
        [*listed(start, start), *[None] * width],
        return_updates=False,
        strict=True,
    )
    return grouped(found, width)[2]


def _divided(x: Numbers, y: Numbers) -> Numbers:
    """Return quotients, infinite or NaN for a divisor of zero."""
    if not isinstance(y, Parts):
        return x / y
    nan = poison(pt.neq(extent(y), 0.0), y.real.type.dtype)
    return each(lambda part: part + nan, quotient(x, y))


def _exchanged_down(b: Numbers, dl: Numbers, swaps: TensorVariable) -> Numbers:
    """Apply the exchanges and multipliers of the elimination, from the first row on."""
    width = len(listed(b))

    def step(*values: TensorVariable) -> list[TensorVariable]:
        following, multiplier = grouped(values[: 2 * width], width)
        swaps, (row,) = values[2 * width], grouped(values[2 * width + 1 :], width)
        first, second = chosen(swaps, following, row), chosen(swaps, row, following)
        return listed(second - multiplier * first, first)

    found = pytensor.scan(
        step,
        listed(b[1:], dl, swaps[:-1]),
        [*listed(b[0]), *[None] * width],
        return_updates=False,
        strict=True,
    )
    rests, rows = grouped(found, width)
    return each(_joined, rows, each(_last, b[:1], rests))


def _exchanged_up(b: Numbers, dl: Numbers, swaps: TensorVariable) -> Numbers:
    """Apply them transposed, from the last row on."""
    width = len(listed(b))

    def step(*values: TensorVariable) -> list[TensorVariable]:
        row, multiplier = grouped(values[: 2 * width], width)
        swaps, (below,) = values[2 * width], grouped(values[2 * width + 1 :], width)
        rest = row - multiplier * below
        return listed(chosen(swaps, below, rest), chosen(swaps, rest, below))

    found = pytensor.scan(
        step,
        listed(b[:-1][::-1], dl[::-1], swaps[:-1][::-1]),
        [*listed(b[-1]), *[None] * width],
        return_updates=False,
        strict=True,
    )
    firsts, rows = grouped(found, width)
    return each(_joined, each(_last, b[-1:], firsts), rows[::-1])


def _last(first: TensorVariable, others: TensorVariable) -> TensorVariable:
    """Return the last row of all, which is the first where there are no others."""
    return _joined(first, others)[-1:]


def _joined(first: TensorVariable, second: TensorVariable) -> TensorVariable:
    """Return the rows of both."""
    return pt.concatenate([first, second], axis=0)
