"""Signs of eigenvectors and singular vectors, which mathematics leaves free.

Files and the graphs that they are verified against have the same ones.
"""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

_EXPONENT = 1 / math.pi

# Singular values, relative to the largest, that may be rounding errors.
_NEGLIGIBLE = {dtype: 4 * np.finfo(dtype).eps for dtype in ("float32", "float64")}


def signs(rows: TensorVariable) -> TensorVariable:
    """Return the sign of the sum of each row, weighted by powers 1/π of 1, 2, 3, ….

    No simple relation between integers holds for these weights, so that the sum of a vector is
    hardly ever zero.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> signs(x).eval({x: np.array([[-1.0, 0.5], [0.0, 2.0]])}, mode="ONNX")
    array([[-1.],
           [ 1.]])
    """
    dtype = rows.type.dtype
    positions = (pt.arange(rows.shape[-1]) + 1).astype(dtype)
    weights = positions ** np.asarray(_EXPONENT, dtype)
    sums = pt.matmul(rows, weights[:, None])
    return pt.switch(pt.lt(sums, 0), -1, 1).astype(dtype)


def signed(rows: TensorVariable, sign: TensorVariable, s: TensorVariable) -> TensorVariable:
    """Return right singular vectors, in rows, with the signs of the left ones.

    Vectors without a partner, or with a singular value that is a rounding error, have their own.
    """
    count = s.shape[-1]
    negligible = np.asarray(_NEGLIGIBLE[s.type.dtype], s.type.dtype)
    # A maximum of no elements would fail.
    padded = pt.concatenate([s, pt.zeros((*s.shape[:-1], 1), s.type.dtype)], axis=-1)
    is_pair = pt.gt(s, padded.max(axis=-1, keepdims=True) * negligible)
    first, others = rows[..., :count, :], rows[..., count:, :]
    own = signs(first)
    first = first * pt.switch(is_pair[..., None], sign[..., :count, :], own)
    return pt.concatenate([first, others * signs(others)], axis=-2)
