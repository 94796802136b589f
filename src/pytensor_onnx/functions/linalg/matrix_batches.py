"""Batches of matrices with one batch axis, first for products and last for elementwise work."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.shape import zeros


def flat(matrices: TensorVariable) -> TensorVariable:
    """Return matrices with all batch axes joined to one, or one added.

    Examples
    --------
    >>> import numpy as np
    >>> x = pt.tensor4("x")
    >>> flat(x).eval({x: np.zeros((2, 3, 4, 0))}, mode="ONNX").shape
    (6, 4, 0)
    """
    if matrices.type.ndim == 2:
        return matrices[None]
    if matrices.type.ndim == 3:
        return matrices
    batch = pt.prod(pt.stack(list(matrices.shape[:-2])))
    return matrices.reshape((batch, matrices.shape[-2], matrices.shape[-1]), ndim=3)


def unflat(results: TensorVariable, like: TensorVariable, *sizes: TensorVariable) -> TensorVariable:
    """Return results of flattened matrices with the batch axes that the matrices had.

    Parameters
    ----------
    results
        Results with one batch axis, the first.
    like
        Matrices before they were flattened.
    sizes
        Sizes of a result.
    """
    if like.type.ndim == 2:
        return results[0]
    if like.type.ndim == 3:
        return results
    return results.reshape((*like.shape[:-2], *sizes), ndim=like.type.ndim - 2 + len(sizes))


def not_empty(matrices: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return matrices of n rows and n, where empty matrices become a single zero.

    Examples
    --------
    >>> import numpy as np
    >>> x = pt.tensor3("x")
    >>> padded, n = not_empty(x, x.shape[1])
    >>> padded.eval({x: np.zeros((2, 0, 0))}, mode="ONNX").shape
    (2, 1, 1)
    """
    batch, size = matrices.shape[0], pt.maximum(n, 1)
    wide = pt.concatenate([matrices, zeros((batch, n, size - n))], axis=2)
    return pt.concatenate([wide, zeros((batch, size - n, size))], axis=1), size


def batch_last(matrices: TensorVariable) -> TensorVariable:
    """Return matrices with the batch axis last, where elementwise operations are fast."""
    return matrices.transpose(1, 2, 0)


def batch_first(matrices: TensorVariable) -> TensorVariable:
    """Return matrices with the batch axis first, where products are taken."""
    return matrices.transpose(2, 0, 1)


def diagonals(matrices: TensorVariable) -> TensorVariable:
    """Return the diagonals of matrices."""
    return pt.diagonal(matrices, axis1=-2, axis2=-1)


def as_columns(b: TensorVariable, b_ndim: int) -> TensorVariable:
    """Return right-hand sides as matrices, one column for a vector."""
    return b if b_ndim == 2 else b[..., None]


def from_columns(x: TensorVariable, b_ndim: int) -> TensorVariable:
    """Return solutions in the form of the right-hand sides given to `as_columns`."""
    return x if b_ndim == 2 else x[..., 0]
