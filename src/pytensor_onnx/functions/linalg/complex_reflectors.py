"""Householder reflections of complex matrices, by the real matrices that stand for them."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

# Sums of squares that are too small to be accurate; the matrices have a scale near one.
_NEGLIGIBLE = np.float64(1e-280)


class Reflection(NamedTuple):
    """``H = I - v τ v^H`` by real matrices that stand for v and τ.

    The product of ``H^H`` and a vector is zero but for one element, which is real.

    Attributes
    ----------
    vector
        ``[[Re v, -Im v], [Im v, Re v]]``.
    scale
        ``[[Re τ, -Im τ], [Im τ, Re τ]]``.
    """

    vector: TensorVariable
    scale: TensorVariable


def reflection(real: TensorVariable, imag: TensorVariable, k: TensorVariable) -> Reflection:
    """Return reflections of rows to their element k, as those of LAPACK's ``zlarfg``.

    Elements before it are left alone, and the element receives the sign opposite to that of its
    real part.
    """
    index = pt.arange(real.shape[1])
    is_own = pt.eq(index, k).astype("float64")
    is_behind = pt.gt(index, k)
    first = (real * is_own).sum(axis=1, keepdims=True)
    turn = (imag * is_own).sum(axis=1, keepdims=True)
    real, imag = pt.switch(is_behind, real, 0.0), pt.switch(is_behind, imag, 0.0)
    others = (real * real + imag * imag).sum(axis=1, keepdims=True) + turn * turn
    is_kept = pt.le(others, _NEGLIGIBLE)
    norm = pt.sqrt(first * first + others)
    length = pt.switch(pt.lt(first, 0.0), norm, -norm)
    divisor = pt.switch(is_kept, 1.0, length)
    cosine = pt.switch(is_kept, 0.0, (length - first) / divisor)
    sine = pt.switch(is_kept, 0.0, -turn / divisor)
    # Elements are divided by that of the vector, which is not zero.
    x, y = pt.switch(is_kept, 1.0, first - length), pt.switch(is_kept, 0.0, turn)
    square = x * x + y * y
    real, imag = (real * x + imag * y) / square, (imag * x - real * y) / square
    return Reflection(doubled(real + is_own, imag), doubled(cosine, sine))


def doubled(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Return real matrices of twice the size for complex columns, given as rows."""
    first = pt.concatenate([real, imag], axis=1)
    return pt.stack([first, pt.concatenate([-imag, real], axis=1)], axis=2)


def reflected_rows(a: TensorVariable, by: Reflection) -> TensorVariable:
    """Return ``H^H @ A`` for matrices that have the imaginary parts below the real ones."""
    inside = pt.matmul(by.scale.mT, pt.matmul(by.vector.mT, a))
    return a - pt.matmul(by.vector, inside)


def reflected_columns(a: TensorVariable, by: Reflection) -> TensorVariable:
    """Return ``A @ H`` for the real matrices of twice the size."""
    return a - pt.matmul(pt.matmul(pt.matmul(a, by.vector), by.scale), by.vector.mT)


def doubled_matrix(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Return the real matrices of twice the size for complex matrices.

    Examples
    --------
    >>> real, imag = pt.tensor3("real"), pt.tensor3("imag")
    >>> doubled_matrix(real, imag).eval({real: [[[1.0]]], imag: [[[2.0]]]})
    array([[[ 1., -2.],
            [ 2.,  1.]]])
    """
    above = pt.concatenate([real, -imag], axis=-1)
    return pt.concatenate([above, pt.concatenate([imag, real], axis=-1)], axis=-2)


def unit(batch: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return identity matrices of twice a size."""
    return pt.eye(2 * n) + pt.zeros((batch, 1, 1))
