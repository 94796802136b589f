"""Pseudo-inverses and least squares, from singular values."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.linalg.inverse import MatrixPinv
from pytensor.tensor.linalg.solvers.lstsq import Lstsq
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_blocks import as_float
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.wide_evaluation import is_narrow

# NumPy's, in float32 too.
_CUTOFF = 1e-15
# LAPACK's, half of NumPy's.
_ROUNDING = float(np.finfo("float64").eps) / 2
# The error of singular values by rotations, beside the largest.
_NARROW_CUTOFF = 2.0**-21


@define(MatrixPinv, "(m,n)->(n,m)")
def pinv(x: TensorVariable, *, hermitian: bool) -> TensorVariable:
    """Moore-Penrose inverse, without the singular values below 1e-15 times the largest.

    float32 is computed in float64, so that singular values that are rounding errors of float32
    count, as they do not in NumPy. In files without float64 they do not count either: below 5e-7
    times the largest.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.pinv(x))([[2.0, 0.0], [0.0, 0.0]]).round(6) + 0.0
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    (x,) = as_float(x)
    wide, cutoff = (x, _NARROW_CUTOFF) if is_narrow() else (x.astype("float64"), _CUTOFF)
    if hermitian:
        w, v = pt.linalg.eigh(wide)
        left, right = v, v * reciprocals(w, cutoff)[..., None, :]
    else:
        u, s, vt = pt.linalg.svd(wide, full_matrices=False)
        left, right = vt.mT, u * reciprocals(s, cutoff)[..., None, :]
    return pt.matmul(left, right.mT).astype(x.type.dtype)


@define(Lstsq, "(m,n),(m,k),()->(n,k),(r),(),(c)", batches=False)
def lstsq(x: TensorVariable, y: TensorVariable, rcond: TensorVariable) -> list[TensorVariable]:
    """Solution of least norm, sums of squared residuals, rank and singular values.

    As in NumPy, the residuals are an empty array unless there are more equations than unknowns and
    the columns are independent, and float32 is computed in float64, but in files without it. As in
    LAPACK's ``gelsd``, an ``rcond`` that is not between zero and one stands for the rounding error.

    Examples
    --------
    >>> from pytensor.tensor.linalg import lstsq
    >>> from pytensor_onnx import compile_onnx
    >>> x, y = pt.matrix("x"), pt.vector("y")
    >>> compile_onnx([x, y], lstsq(x, y, -1.0)[0])([[1.0], [2.0]], [2.0, 4.0]).round(6)
    array([2.])
    """
    dtype = "float32" if is_narrow() else "float64"
    x, y, rcond = (z.astype(dtype) for z in (x, y, rcond))
    u, s, vt = pt.linalg.svd(x, full_matrices=False)
    relative = lapack_cutoff(rcond)
    solution = pt.matmul(vt.T, reciprocals(s, relative)[:, None] * pt.matmul(u.T, y))
    residuals = ((y - pt.matmul(x, solution)) ** 2).sum(axis=0)
    rank = rank_of(s, relative)
    residuals = given_residuals(residuals, rank, x)
    solution, residuals, s = (z.astype("float64") for z in (solution, residuals, s))
    return [solution, residuals, rank.astype("int32"), s]


def lapack_cutoff(rcond: TensorVariable) -> TensorVariable:
    """Return the relative size of singular values that count as zero, as LAPACK reads it."""
    relative = pt.switch(pt.le(rcond, 0.0) | pt.ge(rcond, 1.0), _ROUNDING, rcond)
    return pt.maximum(relative, _NARROW_CUTOFF) if is_narrow() else relative


def rank_of(s: TensorVariable, relative: TensorVariable) -> TensorVariable:
    """Return the number of singular values of a matrix that do not count as zero."""
    return (~pt.le(s, relative * _largest(s)[0])).sum()


def given_residuals(
    residuals: TensorVariable, rank: TensorVariable, x: TensorVariable
) -> TensorVariable:
    """Return the residuals, none unless the columns are independent and fewer than the rows."""
    is_given = pt.eq(rank, x.shape[1]) & pt.gt(x.shape[0], x.shape[1])
    return residuals[: pt.switch(is_given, residuals.shape[0], 0)]


def reciprocals(values: TensorVariable, relative: TensorVariable | float) -> TensorVariable:
    """Return reciprocals, and zero for values that are small beside the largest."""
    is_small = pt.le(pt.abs(values), relative * _largest(values))
    return pt.switch(is_small, 0.0, 1.0 / pt.switch(is_small, 1.0, values))


def _largest(values: TensorVariable) -> TensorVariable:
    """Return the largest absolute value along the last axis, zero if there are none."""
    zero = pt.zeros((*values.shape[:-1], 1), dtype=values.type.dtype)
    return pt.concatenate([pt.abs(values), zero], axis=-1).max(axis=-1, keepdims=True)
