"""Singular values and vectors of matrices of any shape."""

import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.jacobi import svd_by_rotations
from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import as_float
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.linalg.vector_signs import signed, signs
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.special.wide_evaluation import is_narrow
from pytensor_onnx.ops.linalg.factorisations import (
    Bidiagonalise,
    BidiagonalVectors,
    Eliminate,
    Reflect,
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
