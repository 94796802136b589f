"""Singular values."""

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.bidiagonal import bidiagonal_vectors, bidiagonalise
from pytensor_onnx.functions.linalg.blocks import as_float, finite, flat, power_of_two, unflat
from pytensor_onnx.functions.linalg.qr import eliminate, reflect, signed, signs
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.special.arithmetic import is_narrow


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
    *first, _, rows = eliminate(a * scale)
    diagonal, above, *reflectors = bidiagonalise(rows)
    v, u = bidiagonal_vectors(diagonal, above, with_left=True)
    zero = pt.zeros((batch, n, 1))
    next_elements = pt.concatenate([v[:, :, 1:], zero], axis=2)[:, :, :n]
    values = (u * (diagonal[:, None] * v + above[:, None] * next_elements)).sum(axis=2)
    order = pt.argsort(-values, axis=1) + pt.arange(batch)[:, None] * n
    values = pt.maximum(values.flatten()[order] / scale[:, :, 0], 0.0)
    u, v = (x.reshape((batch * n, n))[order] for x in (u, v))
    u = reflect(pt.concatenate([u, zero], axis=2), *reflectors[:2])[:, :, :n]
    v = reflect(pt.concatenate([v, zero], axis=2), *reflectors[2:])[:, :, :n]
    length = first[0].shape[3]
    u = pt.concatenate([u, pt.zeros((batch, n, length - n))], axis=2)
    if full_matrices:
        unit = pt.eq(pt.arange(n, m)[:, None], pt.arange(length)[None, :]).astype("float64")
        u = pt.concatenate([u, unit + pt.zeros((batch, 1, 1))], axis=1)
    u = reflect(u, *first)[:, :, :m]
    return u + valid, values + valid[:, :, 0], v + valid


# Singular values and vectors by one-sided Jacobi rotations, in the dtype of the matrices.
#
# For files without float64: rotations lose no digits in float32, and their loop has a number of
# steps that the sizes tell.

SWEEPS = 12
"""Sweeps over all pairs of columns; 300 columns are orthogonal after ten."""


def svd_by_rotations(
    a: TensorVariable, *, full_matrices: bool
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return left vectors, singular values and right vectors of matrices with one batch axis.

    The matrices have at least as many rows as columns, and the vectors are rows. The left vectors
    are those of a QR factorisation of the products with the right ones, which has vectors of
    singular values that are zero as well.
    """
    dtype = a.type.dtype
    batch, m, n = a.shape[0], a.shape[1], a.shape[2]
    valid, a = finite(a)
    scale = power_of_two(a, axis=(1, 2))
    columns, v = orthogonal_columns(a * scale)
    values = pt.sqrt((columns * columns).sum(axis=2))
    order = pt.argsort(-values, axis=1) + pt.arange(batch)[:, None] * n
    values = values.flatten()[order] / scale[:, :, 0]
    columns, v = (x.reshape((batch * n, size))[order] for x, size in ((columns, m), (v, n)))
    *first, _, rows = eliminate(columns.mT)
    sign = pt.switch(pt.lt(pt.diagonal(rows, axis1=1, axis2=2), 0), -1, 1).astype(dtype)
    count = m if full_matrices else n
    sign = pt.concatenate([sign, pt.ones((batch, count - n), dtype)], axis=1)
    places = pt.arange(first[0].shape[3])
    unit = pt.eq(pt.arange(count)[:, None], places).astype(dtype) * sign[:, :, None]
    u = reflect(unit, *first)[:, :, :m]
    return u + valid, values + valid[:, :, 0], v + valid


def orthogonal_columns(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the products ``A V`` and the orthogonal matrices ``V``, with columns as rows.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 8.6.3. Half of the
    columns are rotated with the other half in each step, and all pairs meet in a sweep.

    Parameters
    ----------
    a
        Matrices with one batch axis, of a scale near one.
    """
    dtype = a.type.dtype
    batch, m, n = a.shape[0], a.shape[1], a.shape[2]
    half = pt.maximum((n + 1) // 2, 2)
    places = pt.arange(n)
    identity = pt.eq(places[:, None], places).astype(dtype) + pt.zeros((batch, 1, 1), dtype)
    rows = pt.concatenate([a.mT, identity], axis=2)
    rows = pt.concatenate([rows, pt.zeros((batch, 2 * half - n, m + n), dtype)], axis=1)
    place = pt.arange(2 * half)
    following = pt.switch(pt.lt(place, half), place - 1, place + 1)
    following = pt.switch(pt.eq(place, 0), 0, pt.switch(pt.eq(place, 1), half, following))
    following = pt.switch(pt.eq(place, 2 * half - 1), half - 1, following)

    def step(
        rows: TensorVariable, m: TensorVariable, half: TensorVariable, following: TensorVariable
    ) -> list[TensorVariable]:
        above, below = rotated(rows[:, :half], rows[:, half:], m)
        return [pt.concatenate([above, below], axis=1)[:, following]]

    (rows,) = iterate(step, [rows], [m, half, following], n_steps=SWEEPS * (2 * half - 1))
    # After whole sweeps all columns are back in their places.
    return rows[:, :n, :m], rows[:, :n, m:]


def rotated(
    x: TensorVariable, y: TensorVariable, size: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Rotate pairs of rows so that their first elements, ``size`` of each, are orthogonal.

    Pairs that are orthogonal but for rounding stay as they are.
    """
    dtype = x.type.dtype
    one, eps = np.ones((), dtype), np.asarray(np.finfo(dtype).eps, dtype)
    p, q = x[:, :, :size], y[:, :, :size]
    products = [(a * b).sum(axis=2, keepdims=True) for a, b in ((p, p), (q, q), (p, q))]
    square, other_square, product = products
    rounding = eps * pt.sqrt(square) * pt.sqrt(other_square)
    is_orthogonal = pt.le(pt.abs(product), rounding)
    ratio = (other_square - square) / pt.switch(is_orthogonal, one, product + product)
    tangent = one / (pt.abs(ratio) + pt.sqrt(one + ratio * ratio))
    tangent = pt.switch(pt.lt(ratio, 0), -tangent, tangent)
    tangent = pt.switch(is_orthogonal, np.zeros((), dtype), tangent)
    cosine = one / pt.sqrt(one + tangent * tangent)
    sine = tangent * cosine
    # Small rotations change few digits in this form.
    share = sine / (one + cosine)
    return x - sine * (y + share * x), y + sine * (x - share * y)
