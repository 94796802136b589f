"""Singular values."""

from collections.abc import Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import as_float, finite, flat, power_of_two, unflat
from pytensor_onnx.functions.linalg.eigh import differences, svd_by_rotations
from pytensor_onnx.functions.linalg.qr import behind_zeros, in_blocks, reflector, signed, signs
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.special.arithmetic import is_narrow
from pytensor_onnx.ops.linalg.factorisations import (
    Bidiagonalise,
    BidiagonalVectors,
    Eliminate,
    Reflect,
    SecularRoots,
    Tridiagonalise,
)


@define(SVD, own_signature)
def svd(a: TensorVariable, *, full_matrices: bool, compute_uv: bool) -> list[TensorVariable]:
    """Singular values in descending order, and orthonormal singular vectors.

    Matrices with more columns than rows are transposed. A QR factorisation makes them square, a
    bidiagonal form follows, and its singular vectors by divide and conquer. The errors are those
    of LAPACK, relative to the norm of the matrix; vectors of singular values that are zero are
    orthonormal too. Pairs of singular vectors have the signs of `signs` of the left ones; those
    of a value that is repeated are any basis. All results are NaN where an element is not finite.
    float32 is computed in float64, and in files without it by rotations in float32.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> factors = pt.linalg.svd(x, full_matrices=False)
    >>> u, s, vt = compile_onnx([x], factors)([[3.0], [4.0]])
    >>> s.round(6)
    array([5.])
    >>> (u * s @ vt).round(6)
    array([[3.],
           [4.]])
    """
    (a,) = as_float(a)
    m, n = a.shape[-2], a.shape[-1]
    k = pt.minimum(m, n)
    matrices = flat(a) if is_narrow() else flat(a).astype("float64")
    tall = ifelse(pt.ge(m, n), matrices, matrices.mT)
    factorise = svd_by_rotations if is_narrow() else svd_of_tall
    u, s, v = factorise(tall, full_matrices=full_matrices)
    u, v = ifelse(pt.ge(m, n), [u, v], [v, u])
    left = signs(u)
    u, v, s = u * left, signed(v, left, s), s.astype(a.type.dtype)
    rows, columns = (m, n) if full_matrices else (k, k)
    u, v = u.mT.astype(a.type.dtype), v.astype(a.type.dtype)
    results = [unflat(u, a, m, rows), unflat(s, a, k), unflat(v, a, columns, n)]
    return results if compute_uv else results[1:2]


def svd_of_tall(
    a: TensorVariable, *, full_matrices: bool
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return left vectors, singular values and right vectors of matrices with one batch axis."""
    batch, m, n = a.shape[0], a.shape[1], a.shape[2]
    valid, a = finite(a)
    scale = power_of_two(a, axis=(1, 2))
    *first, _, rows = Eliminate()(a * scale)
    diagonal, above, *reflectors = Bidiagonalise()(rows)
    v, u = BidiagonalVectors(with_left=True)(diagonal, above)
    zero = pt.zeros((batch, n, 1))
    next_elements = pt.concatenate([v[:, :, 1:], zero], axis=2)[:, :, :n]
    values = (u * (diagonal[:, None] * v + above[:, None] * next_elements)).sum(axis=2)
    order = pt.argsort(-values, axis=1) + pt.arange(batch)[:, None] * n
    values = pt.maximum(values.flatten()[order] / scale[:, :, 0], 0.0)
    u, v = (x.reshape((batch * n, n))[order] for x in (u, v))
    u = Reflect()(pt.concatenate([u, zero], axis=2), *reflectors[:2])[:, :, :n]
    v = Reflect()(pt.concatenate([v, zero], axis=2), *reflectors[2:])[:, :, :n]
    length = first[0].shape[3]
    u = pt.concatenate([u, pt.zeros((batch, n, length - n))], axis=2)
    if full_matrices:
        unit = pt.eq(pt.arange(n, m)[:, None], pt.arange(length)[None, :]).astype("float64")
        u = pt.concatenate([u, unit + pt.zeros((batch, 1, 1))], axis=1)
    u = Reflect()(u, *first)[:, :, :m]
    return u + valid, values + valid[:, :, 0], v + valid


# Singular values and vectors of bidiagonal matrices, by divide and conquer.
#
# M. Gu and S. C. Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM Journal on
# Matrix Analysis and Applications 16 (1995), with matrices of ``2**k - 1`` rows at level ``k``.
# There is no deflation: singular values of the parts that are equal are set apart by a rounding
# error, and zeros of the secular equation become tiny numbers, so that all merges of a level are
# one.

# Singular values are brought below one, and those of padding are larger.
_PADDING = 1.25
_APART = _PADDING * np.finfo("float64").eps
_TINY = 1e-30
# Numbers whose squares underflow.
_NEGLIGIBLE = 1e-140
_POWERS = 2 ** np.arange(31)


@define(BidiagonalVectors, own_signature)
def singular_vectors(
    diagonal: TensorVariable, above: TensorVariable, *, with_left: bool
) -> list[TensorVariable]:
    """Return the right, and the left, singular vectors of upper bidiagonal matrices, in rows.

    The rows are sorted by ascending singular values. Their orthogonality and the backward error
    are a few rounding errors. The singular values are not returned, since those computed from the
    vectors are more accurate.

    Parameters
    ----------
    diagonal, above
        Elements on the diagonal and above it, a matrix in each row, in float64. The last element
        of ``above`` is zero.
    with_left
        Whether left singular vectors are wanted.
    """
    batch, n = diagonal.shape[0], diagonal.shape[1]
    zero = pt.zeros((batch, 1))
    size = pt.abs(above)
    before = pt.concatenate([zero, size], axis=1)[:, :n]
    size = pt.abs(diagonal) + pt.maximum(size, before)
    norm = pt.concatenate([size, zero], axis=1).max(axis=1, keepdims=True)
    norm = pt.switch(pt.gt(norm, 0.0), norm, 1.0)
    level = pt.gt(n + 1, _POWERS).sum()
    size = pt.constant(_POWERS)[level]
    filling = pt.zeros((batch, size - n))
    rows = pt.concatenate([diagonal / norm, filling + _PADDING], axis=1)
    couplings = pt.concatenate([above / norm, filling], axis=1)

    one = pt.minimum(size, 1)
    kinds = 2 if with_left else 1
    values = pt.zeros((batch * size, one))
    vectors = pt.ones((kinds, batch * size, one, one))
    _, merged = iterate(
        _merge,
        [values, vectors],
        [rows, couplings],
        n_steps=level,
        sequences=[pt.constant(_POWERS)[:level]],
    )
    merged = merged.reshape((kinds, batch, size, size))[:, :, 1 : n + 1, :n]
    return [merged[kind] for kind in range(kinds)]


def _merge(
    size: TensorVariable,
    values: TensorVariable,
    vectors: TensorVariable,
    diagonal: TensorVariable,
    above: TensorVariable,
) -> list[TensorVariable]:
    """Merge each two neighbouring parts and the row between them.

    A part has one row less than columns. Its first right vector is that of the kernel, its first
    value zero. Left vectors have the row below the part as their last element, and the first of
    them is the unit vector of this row.
    """
    kinds, pairs, count = vectors.type.shape[0], values.shape[0] // 2, 2 * size - 1
    values = values.reshape((pairs, 2, size))
    blocks = vectors.reshape((kinds, pairs, 2, size, size))
    upper = diagonal.reshape((pairs, 2 * size))[:, size - 1, None] * blocks[0, :, 0, :, size - 1]
    lower = above.reshape((pairs, 2 * size))[:, size - 1, None] * blocks[0, :, 1, :, 0]
    length = pt.sqrt(upper[:, :1] * upper[:, :1] + lower[:, :1] * lower[:, :1])
    is_zero = pt.lt(length, _NEGLIGIBLE)
    divisor = pt.switch(is_zero, 1.0, length)
    cosine, sine = pt.switch(is_zero, 1.0, upper[:, :1] / divisor), lower[:, :1] / divisor

    z = pt.concatenate([length, upper[:, 1:], lower[:, 1:]], axis=1)
    poles = pt.concatenate([values[:, 0], values[:, 1, 1:]], axis=1)
    order = pt.argsort(poles, axis=1)
    place = pt.argsort(order, axis=1)
    first = pt.arange(pairs)[:, None] * count
    ascending = _apart(poles.flatten()[order + first], count)
    z = pt.switch(pt.lt(pt.abs(z), _TINY), pt.switch(pt.lt(z, 0.0), -_TINY, _TINY), z)
    nearest, shift = SecularRoots()(ascending, z.flatten()[order + first])
    weights = _weights(ascending, nearest, shift, count).flatten()[place + first]
    weights = pt.switch(pt.lt(z, 0.0), -weights, weights)
    poles = ascending.flatten()[place + first]

    right = weights[:, None, :] / (differences(nearest, poles) - shift[:, :, None])
    parts = [_halves(_normalised(right), cosine, sine, size)]
    if kinds > 1:
        is_first = pt.eq(pt.arange(count), 0)
        left = pt.switch(is_first, -1.0, poles[:, None, :] * right)
        parts.append(_halves(_normalised(left), pt.ones_like(sine), pt.zeros_like(sine), size))
        cosine = pt.stack([cosine, pt.ones_like(sine)])
        sine = pt.stack([sine, pt.zeros_like(sine)])
    else:
        cosine, sine = cosine[None], sine[None]
    products = pt.matmul(pt.stack(parts), blocks)
    kernel = [-sine * blocks[:, :, 0, 0], cosine * blocks[:, :, 1, 0]]
    merged = pt.concatenate(
        [
            pt.concatenate(kernel, axis=2)[:, :, None],
            pt.concatenate([products[:, :, 0], products[:, :, 1]], axis=3),
        ],
        axis=2,
    )
    root = pt.sqrt(nearest * nearest + shift)
    return [pt.concatenate([pt.zeros((pairs, 1)), root], axis=1), merged]


def _apart(poles: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Move poles that are equal apart, by one rounding error each; the first stays zero."""
    rows = pt.arange(count)
    steps = rows.astype("float64") * _APART
    shifted = poles - steps
    is_after = pt.gt(rows[None, :], rows[:, None])
    running = pt.switch(is_after, -np.inf, shifted[:, None, :]).max(axis=2)
    return pt.switch(pt.eq(rows, 0), 0.0, running + steps)


def _weights(
    poles: TensorVariable, nearest: TensorVariable, shift: TensorVariable, count: TensorVariable
) -> TensorVariable:
    """Return the absolute values of ``z`` for which the roots are exact, by Löwner's formula."""
    rows = pt.arange(count)
    to_roots = differences(poles, nearest) + shift[:, None, :]
    to_poles = differences(poles, poles)
    last = pt.zeros_like(to_poles[:, :, :1]) + 1.0
    to_next = pt.concatenate([to_poles[:, :, 1:], last], axis=2)
    is_below = pt.lt(rows[None, :], rows[:, None])
    ratios = to_roots / pt.switch(is_below, to_poles, to_next)
    return pt.sqrt(ratios.prod(axis=2))


def _normalised(rows: TensorVariable) -> TensorVariable:
    """Return rows of length one."""
    return rows / pt.sqrt((rows * rows).sum(axis=2, keepdims=True))


def _halves(
    rows: TensorVariable, cosine: TensorVariable, sine: TensorVariable, size: TensorVariable
) -> TensorVariable:
    """Return the coefficients of the vectors of both parts; the first ones are combined."""
    first = rows[:, :, :1]
    upper = pt.concatenate([first * cosine[:, :, None], rows[:, :, 1:size]], axis=2)
    lower = pt.concatenate([first * sine[:, :, None], rows[:, :, size:]], axis=2)
    return pt.stack([upper, lower], axis=1)


@define(Tridiagonalise, Tridiagonalise.gufunc_signature)
def tridiagonal(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of symmetric matrices ``A`` to the tridiagonal form ``Q.T @ A @ Q``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 8.3.1. A row and a
    column of zeros at the end give the last step a reflector, the identity.

    Parameters
    ----------
    a
        Symmetric matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        The diagonals; the elements beside them, followed by a zero; both in rows. Then the
        reflectors of ``Q``, which have one element more than ``A`` has rows.
    """

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        vector, scale, length = reflector(rest[:, 0, 1:])
        along = scale * pt.matmul(rest[:, 1:, 1:], vector[:, :, None])[:, :, 0]
        half = 0.5 * scale * (along * vector).sum(axis=1, keepdims=True)
        along = along - half * vector
        following = rest[:, 1:, 1:] - _outer([vector, along], [along, vector])
        unit = behind_zeros(vector, k + 1)
        return [following, rest[:, 0, 0], length[:, 0], unit, scale[:, 0]]

    steps = pytensor.scan(
        step,
        [pt.arange(a.shape[1])],
        [with_zeros(a), None, None, None, None],
        return_updates=False,
        strict=True,
    )
    _, diagonal, beside, vectors, scales = steps
    sizes = a.shape[1], a.shape[0], a.shape[1] + 1
    return [*_in_rows(diagonal, beside, sizes), *in_blocks(vectors, scales, sizes)]


@define(Bidiagonalise, Bidiagonalise.gufunc_signature)
def bidiagonal(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of square matrices ``A`` to the upper bidiagonal form ``Q.T @ A @ P``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 5.4.2, with the row
    and the column of zeros of `tridiagonal`.

    Parameters
    ----------
    a
        Square matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        The diagonals; the elements above them, followed by a zero; both in rows. Then the
        reflectors of ``Q`` and ``P``, which have one element more than ``A`` has rows.
    """

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        left, left_scale, diagonal = reflector(rest[:, :, 0])
        rest = rest[:, :, 1:]
        across = left_scale * pt.matmul(left[:, None], rest)[:, 0]
        right, right_scale, above = reflector(rest[:, 0] - across)
        along = pt.matmul(rest, right[:, :, None])[:, :, 0]
        along = along - left * (across * right).sum(axis=1, keepdims=True)
        along = (right_scale * along)[:, 1:]
        following = rest[:, 1:] - _outer([left[:, 1:], along], [across, right])
        return [
            following,
            diagonal[:, 0],
            above[:, 0],
            behind_zeros(left, k),
            left_scale[:, 0],
            behind_zeros(right, k + 1),
            right_scale[:, 0],
        ]

    steps = pytensor.scan(
        step,
        [pt.arange(a.shape[1])],
        [with_zeros(a), *[None] * 6],
        return_updates=False,
        strict=True,
    )
    _, diagonal, above, left, left_scales, right, right_scales = steps
    sizes = a.shape[1], a.shape[0], a.shape[1] + 1
    return [
        *_in_rows(diagonal, above, sizes),
        *in_blocks(left, left_scales, sizes),
        *in_blocks(right, right_scales, sizes),
    ]


def _in_rows(
    diagonal: TensorVariable, beside: TensorVariable, sizes: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Return traces with the axis of the steps last; without steps they have lost the other."""
    return [x.reshape(sizes[:2]).T for x in (diagonal, beside)]


def with_zeros(a: TensorVariable) -> TensorVariable:
    """Return square matrices with a row and a column of zeros added at the end."""
    batch, n = a.shape[0], a.shape[1]
    a = pt.concatenate([a, pt.zeros((batch, n, 1), a.type.dtype)], axis=2)
    return pt.concatenate([a, pt.zeros((batch, 1, n + 1), a.type.dtype)], axis=1)


def _outer(columns: list[TensorVariable], rows: list[TensorVariable]) -> TensorVariable:
    """Return the sum of the products of columns and rows."""
    return pt.matmul(pt.stack(columns, axis=2), pt.stack(rows, axis=1))
