"""Generalised Schur forms of pencils of real matrices."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.linalg.decomposition.schur import QZ
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    as_float,
    behind,
    checked_size,
    diagonals,
    finite,
    flat,
    length,
    lower_diagonal,
    nonzero,
    not_empty,
    power_of_two,
    unflat,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.chases import (
    REAL,
    Bulges,
    Range,
    Unreduced,
    chased_columns,
    chased_rows,
    last_rows,
    most_sweeps,
    range_of_chase,
    reflection,
    shifts,
    unreduced,
)
from pytensor_onnx.functions.linalg.hessenberg_triangular import hessenberg_triangular
from pytensor_onnx.functions.linalg.pencil_ordering import (
    Block,
    Rotation,
    blocks_of,
    eigenvalues,
    order_pencil,
    rotations,
    rounding_errors,
    standard_pencil,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation, performed
from pytensor_onnx.functions.registry import define, own_signature


class Triangle(NamedTuple):
    """Triangular pencils A and B, where B has a diagonal that is not negative.

    Attributes
    ----------
    a, b
        The matrices.
    q, z
        Unitary matrices.
    alpha
        The diagonal of A.
    beta
        The diagonal of B, real.
    """

    a: Parts
    b: Parts
    q: Parts
    z: Parts
    alpha: Parts
    beta: TensorVariable


def triangular_pencil(
    a: TensorVariable, b: TensorVariable, qt: TensorVariable, z: TensorVariable
) -> Triangle:
    """Return triangular forms of pencils of `standard_pencil`.

    The first column of each block with complex eigenvalues becomes an eigenvector of the one with
    the positive imaginary part.
    """
    is_first = pt.neq(lower_diagonal(a), 0.0)
    vector, image = _vectors(blocks_of(a, is_first), blocks_of(b, is_first))
    left, right = (unitary(*x, is_first) for x in (image, vector))
    right = right.adjoint()
    of_a, of_b = (Parts(*(pt.matmul(part, x) for part in left)) @ right for x in (a, b))
    q = Parts(pt.matmul(left.real, qt).mT, -pt.matmul(left.imag, qt).mT)
    return with_positive_diagonal(of_a, of_b, q, Parts(*(pt.matmul(z, x) for x in right)))


def with_positive_diagonal(a: Parts, b: Parts, q: Parts, z: Parts) -> Triangle:
    """Return triangular pencils whose columns have phases for which B has a positive diagonal.

    Elements below the diagonals are rounding errors.
    """
    d = Parts(*(diagonals(part) for part in b))
    beta = length(*d)
    is_zero = pt.eq(beta, 0.0)
    phase = Parts(
        pt.switch(is_zero, 1.0, d.real / nonzero(beta))[:, None], (-d.imag / nonzero(beta))[:, None]
    )
    index = pt.arange(beta.shape[1])
    a, b, z = (x * phase for x in (a, b, z))
    is_kept = pt.ge(index, index[:, None])
    a = Parts(*(pt.switch(is_kept, x, 0.0) for x in a))
    above, is_diagonal = pt.gt(index, index[:, None]), pt.eq(index, index[:, None])
    b = Parts(
        pt.switch(above, b.real, pt.switch(is_diagonal, beta[:, None], 0.0)),
        pt.switch(above, b.imag, 0.0),
    )
    return Triangle(a, b, q, z, Parts(*(diagonals(x) for x in a)), beta)


def _vectors(a: Block, b: Block) -> tuple[tuple[Parts, Parts], tuple[Parts, Parts]]:
    """Return the elements of eigenvectors of blocks, and of their images, of length one."""
    found = eigenvalues(a, b)
    root = pt.sqrt(pt.maximum(-found.square, 0.0))
    s = [Parts(found.divisor * x - found.mean * y, -root * y) for x, y in zip(a, b, strict=True)]
    size = [pt.abs(x.real) + pt.abs(x.imag) for x in s]
    is_above = pt.ge(size[0] + size[1], size[2] + size[3])
    first = Parts(*(pt.switch(is_above, x, y) for x, y in zip(s[1], s[3], strict=True)))
    second = Parts(*(-pt.switch(is_above, x, y) for x, y in zip(s[0], s[2], strict=True)))
    vector = normalised(first, second)
    images = [
        [
            Parts(*(x * u + y * v for u, v in zip(*vector, strict=True)))
            for x, y in ((block.a, block.b), (block.c, block.d))
        ]
        for block in (a, b)
    ]
    sizes = [sum(pt.abs(part) for x in image for part in x) for image in images]
    is_larger = pt.ge(sizes[0], sizes[1])
    image = [
        Parts(*(pt.switch(is_larger, u, v) for u, v in zip(x, y, strict=True)))
        for x, y in zip(*images, strict=True)
    ]
    return vector, normalised(*image)


def normalised(x: Parts, y: Parts) -> tuple[Parts, Parts]:
    """Return vectors of two elements with length one, or zero."""
    largest = nonzero(pt.abs(pt.stack([*x, *y])).max(axis=0))
    x, y = (Parts(*(part / largest for part in z)) for z in (x, y))
    size = nonzero(pt.sqrt(sum(part * part for part in (*x, *y))))
    return Parts(x.real / size, x.imag / size), Parts(y.real / size, y.imag / size)


def unitary(x: Parts, y: Parts, is_first: TensorVariable) -> Parts:
    """Return matrices with the blocks ``[[conj(x), conj(y)], [-y, x]]``, identities elsewhere."""
    imag = pt.switch(is_first, x.imag, 0.0)
    beside = pt.switch(is_first, y.imag, 0.0)
    index = pt.arange(imag.shape[1])
    row, column = index[:, None], index
    diagonal = pt.eq(row, column) * (behind(imag) - imag)[:, :, None]
    upper = pt.eq(row + 1, column) * beside[:, :, None]
    return Parts(rotations(Rotation(x.real, y.real), is_first), diagonal - upper - upper.mT)


# An angle by which the eigenvalues are turned, which no matrix has by chance.
COSINE, SINE = math.cos(0.7390851), math.sin(0.7390851)


class Pencil(NamedTuple):
    """Quasi-triangular A and B, the transposed Q, and Z, of matrices with norms near one.

    Attributes
    ----------
    a, b, qt, z
        The matrices.
    scale_a, scale_b
        Powers of two that the given matrices were multiplied by.
    valid
        A summand of all results, zero or NaN.
    """

    a: TensorVariable
    b: TensorVariable
    qt: TensorVariable
    z: TensorVariable
    scale_a: TensorVariable
    scale_b: TensorVariable
    valid: TensorVariable


@define(QZ, own_signature)
def qz(a: TensorVariable, b: TensorVariable, *, sort: str | None) -> list[TensorVariable]:
    """Matrices ``A = Q @ AA @ Z.T`` and ``B = Q @ BB @ Z.T`` of real pencils.

    AA is quasi-triangular and BB triangular, with no negative element on its diagonal; beside a
    block of two rows of AA, which has complex eigenvalues, it is diagonal. The errors are those of
    LAPACK, relative to the norms of the matrices; the order of the eigenvalues and the signs of
    columns are left free, as those of `schur` are. Elements of the diagonal of BB that are at most
    a few rounding errors of its norm are zero, so that the eigenvalue is infinite. With ``sort``,
    selected eigenvalues come first. All elements are NaN where one of the matrices is not finite,
    the iteration does not converge, or eigenvalues cannot be told apart for their order. float32
    is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b = pt.matrices("ab")
    >>> aa, bb, q, z = compile_onnx([a, b], pt.linalg.qz(a, b), verify=False)(
    ...     [[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]]
    ... )
    >>> (q @ aa @ z.T).round(6)
    array([[1., 2.],
           [3., 4.]])
    >>> sorted(bb.diagonal().round(6).tolist())[0]
    0.0
    """
    return _real_results(a, b, sort)[:4]


def _qz_of_pytensor(
    a: np.ndarray, b: np.ndarray, *, sort: str | None, is_complex: bool = False
) -> list[np.ndarray]:
    op = QZ(complex_output=is_complex, sort=sort, return_eigenvalues=True)
    aa, bb, alpha, beta, q, z = performed(op, a, b)
    matrices = [aa, bb, q, z]
    if is_complex:
        matrices = [part for x in matrices for part in (x.real, x.imag)]
    return [*matrices, alpha.real, alpha.imag, beta.real]


@operation(
    "(m,m),(m,m)->(m,m),(m,m),(m,m),(m,m),(m),(m),(m)", reference=_qz_of_pytensor, name="RealQZ"
)
def real_qz(a: TensorVariable, b: TensorVariable, *, sort: str | None) -> list[TensorVariable]:
    """Schur forms of real pencils as those of `qz`, and the parts of their eigenvalues.

    The results are AA, BB, Q, Z, the real and the imaginary parts of alpha, and beta.

    Examples
    --------
    >>> import pytensor
    >>> a, b = pt.matrices("ab")
    >>> _, _, alpha, beta, _, _ = pt.linalg.qz(a, b, return_eigenvalues=True)
    >>> found = pytensor.function([a, b], alpha / beta, mode="ONNX")
    >>> found([[1.0, 2.0], [-2.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]).round(6)
    array([0.5+1.j, 0.5-1.j])
    """
    return _real_results(a, b, sort)


@operation(
    "(m,m),(m,m)->(m,m),(m,m),(m,m),(m,m),(m,m),(m,m),(m,m),(m,m),(m),(m),(m)",
    reference=partial(_qz_of_pytensor, is_complex=True),
    name="TriangularQZ",
)
def triangular_qz(
    a: TensorVariable, b: TensorVariable, *, sort: str | None
) -> list[TensorVariable]:
    """Parts of complex triangular Schur forms of real pencils, and of their eigenvalues.

    The results are the real and the imaginary parts of AA, BB, Q, Z and alpha, and beta.

    Examples
    --------
    >>> import pytensor
    >>> a, b = pt.matrices("ab")
    >>> aa, *_ = pt.linalg.qz(a, b, output="complex")
    >>> decompose = pytensor.function([a, b], aa, mode="ONNX")
    >>> bool(decompose([[1.0, 2.0], [-2.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]])[1, 0] == 0)
    True
    """
    dtype, n, pencil = _decomposed(a, b, sort)
    found = triangular_pencil(pencil.a, pencil.b, pencil.qt, pencil.z)
    matrices = [
        *(x / pencil.scale_a for x in found.a),
        *(x / pencil.scale_b for x in found.b),
        *found.q,
        *found.z,
    ]
    return _results(matrices, found, pencil, a, n, dtype)


def _real_results(a: TensorVariable, b: TensorVariable, sort: str | None) -> list[TensorVariable]:
    dtype, n, pencil = _decomposed(a, b, sort)
    found = triangular_pencil(pencil.a, pencil.b, pencil.qt, pencil.z)
    matrices = [
        pencil.a / pencil.scale_a,
        pencil.b / pencil.scale_b,
        pencil.qt.mT,
        pencil.z,
    ]
    return _results(matrices, found, pencil, a, n, dtype)


def _results(
    matrices: Sequence[TensorVariable],
    found: Triangle,
    pencil: Pencil,
    like: TensorVariable,
    n: TensorVariable,
    dtype: str,
) -> list[TensorVariable]:
    """Return matrices and the parts of eigenvalues in the given size, batch and dtype."""
    alpha, beta = _eigenvalues(found, pencil.scale_a, pencil.scale_b)
    vectors = [(x + pencil.valid[:, 0])[:, :n] for x in (*alpha, beta)]
    return [
        *(unflat((x + pencil.valid)[:, :n, :n].astype(dtype), like, n, n) for x in matrices),
        *(unflat(x.astype(dtype), like, n) for x in vectors),
    ]


def _eigenvalues(
    found: Triangle, scale_a: TensorVariable, scale_b: TensorVariable
) -> tuple[Parts, TensorVariable]:
    """Return the numerators and denominators of the eigenvalues of the given pencils."""
    alpha = Parts(*(x / scale_a[:, 0] for x in found.alpha))
    return alpha, found.beta / scale_b[:, 0]


def _decomposed(
    a: TensorVariable, b: TensorVariable, sort: str | None
) -> tuple[str, TensorVariable, Pencil]:
    """Return the dtype of the results, the number of rows, and pencils of at least one row."""
    a, b = as_float(a, b)
    dtype = a.type.dtype
    n = checked_size(a, "expected square matrix")
    fits = pt.eq(b.shape[-1], n) & pt.eq(b.shape[-2], n)
    n = CheckAndRaise(ValueError, "incompatible dimensions")(n, fits)
    valid_a, a = finite(flat(a).astype("float64"))
    valid_b, b = finite(flat(b).astype("float64"))
    (a, scale_a), (b, scale_b) = scaled(a), scaled(b)
    (a, _), (b, size) = not_empty(a, n), not_empty(b, n)
    # The eigenvalues are turned, so that none but those of few matrices are infinite.
    rows, z = hessenberg_triangular(COSINE * a + SINE * b, COSINE * b - SINE * a)
    rows, z, failed = quasi_triangular_pencil(rows, z)
    h, t, qt = (rows[:, :, i * size : (i + 1) * size] for i in range(3))
    a, b = is_nonzero(a) * (COSINE * h - SINE * t), is_nonzero(b) * (COSINE * t + SINE * h)
    a, b, qt, z = standard_pencil(a, b, qt, z)
    b = _with_zeros(a, b)
    if sort is not None:
        eigenvalues = _eigenvalues(triangular_pencil(a, b, qt, z), scale_a, scale_b)
        a, b, qt, z, unordered = order_pencil(a, b, qt, z, selected(eigenvalues, sort))
        b = _with_zeros(a, b)
        failed = failed + unordered
    valid = valid_a + valid_b + failed[:, None, None]
    return dtype, n, Pencil(a, b, qt, z, scale_a, scale_b, valid)


def _with_zeros(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return B with zeros for rounding errors on its diagonal, except beside blocks of A."""
    is_first = pt.neq(lower_diagonal(a), 0.0)
    is_kept = is_first | behind(is_first) | pt.gt(diagonals(b), rounding_errors(b)[:, None])
    index = pt.arange(b.shape[1])
    return pt.switch(pt.neq(index[:, None], index) | is_kept[:, :, None], b, 0.0)


def is_nonzero(x: TensorVariable) -> TensorVariable:
    """Return one for each matrix with an element that is not zero, and zero for others.

    The other matrix of a pencil leaves rounding errors in these.
    """
    return pt.neq(x, 0.0).any(axis=(1, 2), keepdims=True).astype("float64")


def scaled(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return matrices with norms near one, and the powers of two that they were multiplied by."""
    first = power_of_two(x, axis=(1, 2))
    x = x * first
    second = power_of_two(pt.sqrt((x * x).sum(axis=(1, 2), keepdims=True)), axis=(1, 2))
    return x * second, first * second


def selected(eigenvalues: tuple[Parts, TensorVariable], sort: str) -> TensorVariable:
    """Return one for the rows of eigenvalues that come first, and zero for others."""
    alpha, beta = eigenvalues
    real, imag = alpha
    is_infinite = pt.eq(beta, 0.0)
    divisor = pt.switch(is_infinite, 1.0, beta)
    part = real / divisor
    size = pt.sqrt(part**2 + (imag / divisor) ** 2)
    has_value = pt.neq(real, 0.0) | pt.neq(imag, 0.0)
    chosen = {
        "lhp": ~is_infinite & pt.lt(part, 0.0),
        "rhp": ~is_infinite & pt.gt(part, 0.0),
        "iuc": ~is_infinite & pt.lt(size, 1.0),
        "ouc": pt.switch(is_infinite, has_value, pt.gt(size, 1.0)),
    }
    return chosen[sort].astype("float64")


@operation("(b,n,k),(b,n,n)->(b,n,k),(b,n,n),(b)")
def quasi_triangular_pencil(rows: TensorVariable, z: TensorVariable) -> list[TensorVariable]:
    """Reduce pencils of Hessenberg and triangular matrices to quasi-triangular form.

    C. B. Moler and G. W. Stewart, An algorithm for generalized matrix eigenvalue problems, SIAM
    Journal on Numerical Analysis 10, 1973. Bulges are chased as those of `quasi_triangular`: from
    row to row, and then from column to column.

    Parameters
    ----------
    rows
        Hessenberg matrices H, triangular matrices T and ``Q.T`` beside each other, finite, with
        norms of at most about one.
    z
        The orthogonal matrices Z.

    Returns
    -------
    list of TensorVariable
        The rows and Z afterwards, and zero, or NaN where the iteration has not converged.
    """
    n = z.shape[1]

    def step(rows: TensorVariable, z: TensorVariable, waits: TensorVariable) -> tuple[list, until]:
        n = z.shape[1]
        rows, blocks = deflated(rows, n)
        first, is_begin, waits = bulges(rows[:, :, :n], rows[:, :, n : 2 * n], blocks, waits, n)
        low, count = range_of_chase(is_begin, blocks)
        rows, z = chase_pencil(rows, z, first, 1.0 - is_begin.astype("float64"), low, count)
        return [rows, z, waits], until(~blocks.is_active.any())

    waits = pt.zeros((rows.shape[0], n))
    rows, z, _ = iterate(step, [rows, z, waits], n_steps=most_sweeps(n))
    rows, blocks = deflated(rows, n)
    return [rows, z, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


@operation("(b,n,k),(b,n,n),(b,r,n),(b,n),(),()->(b,n,k),(b,n,n)")
def chase_pencil(
    rows: TensorVariable,
    z: TensorVariable,
    first: TensorVariable,
    goes_on: TensorVariable,
    low: TensorVariable,
    count: TensorVariable,
) -> list[TensorVariable]:
    """Chase bulges through the pencils of `quasi_triangular_pencil` as `chase_bulges` does."""
    n = rows.shape[1]
    through = Range(first, goes_on, low, count)
    rows, turns = chased_rows(
        rows, through, REAL, matrices=2, turned=reflection, restored=_restored
    )
    columns = pt.concatenate([rows[:, :, :n], rows[:, :, n : 2 * n], z], axis=1)
    index = pt.arange(3 * n)
    steps = low + pt.arange(count)
    is_before = pt.lt(index % n, steps[:, None]) | pt.ge(index, 2 * n)
    columns = chased_columns(columns.mT, turns, through, REAL, is_before.astype("float64")).mT
    both = pt.concatenate([columns[:, :n], columns[:, n : 2 * n], rows[:, :, 2 * n :]], axis=2)
    return [both, columns[:, 2 * n :]]


def _restored(t: TensorVariable) -> TensorVariable:
    """Return the turns of columns that make the rows of T triangular again."""
    turn = reflection(t[:, 2], 2)
    middle = t[:, 1] + pt.matmul(t[:, 1:2], turn)[:, 0]
    before = reflection(middle * np.array([1.0, 1.0, 0.0]), 1)
    return turn + before + pt.matmul(turn, before)


# Divisors that are no larger count as zero; the matrices have norms of at most about one.
_EPS = np.finfo("float64").eps
NEGLIGIBLE = 4 * _EPS
"""Largest element below the diagonal that is set to zero.

Sweeps leave rounding errors of this size where all eigenvalues are equal.
"""


def deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonals to zero, and find the blocks between zeros.

    Parameters
    ----------
    rows
        Hessenberg matrices H and triangular matrices T beside each other, and others.
    n
        Number of rows.
    """
    is_small = pt.le(pt.abs(behind(lower_diagonal(rows[:, :, :n]))), NEGLIGIBLE)
    return pt.switch(below_pencils(is_small, n), 0.0, rows), unreduced(is_small, n, 2)


def below_pencils(is_small: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return which elements of pencils, and of matrices beside them, are set to zero.

    Parameters
    ----------
    is_small
        Whether the element of a row below the diagonal of H counts as zero.
    n
        Number of rows; H, T and the other matrices have n columns each.
    """
    index, column = pt.arange(n), pt.arange(3 * n)
    kept_from = index - pt.switch(is_small, 0, 1)
    is_zero = pt.lt(column, kept_from[:, :, None]) & pt.lt(column, n)
    return is_zero | (pt.ge(column, n) & pt.lt(column - n, index[:, None]))


def bulges(
    h: TensorVariable,
    t: TensorVariable,
    blocks: Unreduced,
    waits: TensorVariable,
    n: TensorVariable,
) -> Bulges:
    """Return the first columns of ``(M - s) (M - conj(s))`` for ``M = H @ inv(T)`` of each block.

    Divisors on the diagonal of T that are zero are replaced: shifts and first columns decide on
    the convergence alone.
    """
    d, e, f = diagonals(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    td, tf = _divisors(diagonals(t)), behind(upper_diagonal(t))
    before = _divisors(behind(td))
    is_last = last_rows(blocks, n)
    a, c = behind(d) / before, e / before
    values = [
        a,
        (d - c * tf) / td,
        c,
        (f - a * tf) / td,
        behind(e) / _divisors(behind(before)),
        waits,
    ]
    at_end = pt.matmul(pt.stack(values, axis=1), is_last.astype("float64"))
    shift, width = shifts(*(at_end[:, i] for i in range(6)))
    following, above = _divisors(ahead(td)), ahead(tf)
    a, c = d / td, ahead(e) / td
    gap = a - shift
    scale = pt.abs(gap) + width + pt.abs(c)
    ratio = c / pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    columns = [
        ratio * ((ahead(f) - a * above) / following)
        + gap * (gap / scale)
        + width * (width / scale),
        ratio * (gap + (ahead(d) - c * above) / following - shift),
        ratio * (ahead(ahead(e)) / following),
    ]
    first = pt.stack(columns, axis=1)
    largest = pt.abs(first).max(axis=1, keepdims=True)
    begins = blocks.is_active & blocks.is_first
    first = pt.switch(begins[:, None, :], first / pt.switch(pt.eq(largest, 0.0), 1.0, largest), 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def _divisors(x: TensorVariable) -> TensorVariable:
    """Return numbers with those near zero moved away from it."""
    return pt.switch(pt.gt(pt.abs(x), _EPS), x, pt.switch(pt.lt(x, 0.0), -_EPS, _EPS))
