"""Solutions of linear systems."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.lstsq import Lstsq
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    as_columns,
    as_float,
    checked_size,
    checked_sizes,
    diagonals,
    from_columns,
    symmetric,
)
from pytensor_onnx.functions.linalg.cholesky import (
    LARGEST,
    is_small,
    lower_factor,
    solution_of_small,
)
from pytensor_onnx.functions.linalg.eigh import solved_tridiagonal
from pytensor_onnx.functions.linalg.lu import reduced
from pytensor_onnx.functions.linalg.triangular import solved_triangular
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.special.arithmetic import is_narrow


@define(SolveTriangular, own_signature, known_up_to=LARGEST)
def solve_triangular(
    a: TensorVariable,
    b: TensorVariable,
    *,
    lower: bool,
    unit_diagonal: bool,
    b_ndim: int,
    m: int | None,
) -> TensorVariable:
    """Solution of triangular systems, read from one triangle of each matrix.

    The right-hand sides of a block of rows follow from the blocks before by one product. For one
    matrix the blocks are inverted all at once, and each solution is refined once; for a batch,
    rows are substituted one after another. All unknowns of a system are NaN if an element of the
    diagonal is zero, as in PyTensor. The backward error is that of LAPACK.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b = pt.matrix("a"), pt.vector("b")
    >>> solve = compile_onnx([a, b], pt.linalg.solve_triangular(a, b, lower=True))
    >>> solve([[2.0, 0.0], [1.0, 1.0]], [4.0, 5.0])
    array([2., 3.])
    """
    a, b = as_float(a, b)
    columns = as_columns(b, b_ndim)
    n = checked_sizes(a, columns, "expected square matrix", "shapes of a and b are incompatible")
    if m is not None and is_small(m):
        x = solution_of_small(a, columns, m, lower=lower, unit_diagonal=unit_diagonal)
    else:
        x = solved_triangular(a, columns, n, lower=lower, unit_diagonal=unit_diagonal)
    return from_columns(x, b_ndim)


@define(CholeskySolve, own_signature)
def cholesky_solve(
    c: TensorVariable, b: TensorVariable, *, lower: bool, b_ndim: int
) -> TensorVariable:
    """Solution of systems whose matrices have given Cholesky factors.

    It is that of two triangular systems.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> c, b = pt.matrix("c"), pt.vector("b")
    >>> solve = compile_onnx([c, b], pt.linalg.cho_solve((c, True), b))
    >>> solve([[2.0, 0.0], [1.0, 1.0]], [8.0, 6.0])
    array([1., 2.])
    """
    c, b = as_float(c, b)
    columns = as_columns(b, b_ndim)
    n = checked_sizes(c, columns, "The factored matrix c is not square.", "incompatible dimensions")
    x = _solved_by_factor(c if lower else c.mT, columns, n)
    return from_columns(x, b_ndim)


def _solved_by_factor(
    lower: TensorVariable, b: TensorVariable, n: TensorVariable
) -> TensorVariable:
    """Return the solutions of systems with a lower Cholesky factor."""
    first = solved_triangular(lower, b, n, lower=True)
    return solved_triangular(lower.mT, first, n, lower=False)


@define(Solve, own_signature)
def solve(
    a: TensorVariable, b: TensorVariable, *, assume_a: str, lower: bool, b_ndim: int
) -> TensorVariable:
    """Solution of systems by LU factors, or by Cholesky factors of positive definite matrices.

    Of symmetric and positive definite matrices one triangle is read, of tridiagonal ones three
    diagonals, whose elimination takes a step for each row. Symmetric and banded matrices are
    eliminated as general ones, which is as accurate. All unknowns of a system are NaN if its matrix
    is singular, or not positive definite where that is assumed. The backward error is that of
    LAPACK.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b = pt.matrix("a"), pt.vector("b")
    >>> compile_onnx([a, b], pt.linalg.solve(a, b))([[1.0, 3.0], [2.0, 2.0]], [7.0, 6.0])
    array([1., 2.])
    """
    a, b = as_float(a, b)
    columns = as_columns(b, b_ndim)
    n = checked_sizes(a, columns, "expected square matrix", "incompatible dimensions")
    if assume_a == "pos":
        factor = lower_factor(a if lower else a.mT, n)
        x = _solved_by_factor(factor, columns, n)
    elif assume_a == "tridiagonal":
        x = solved_tridiagonal(a, columns, n)
    else:
        whole = symmetric(a, n, lower=lower) if assume_a in ("sym", "her") else a
        x = _solved_by_elimination(whole, columns, n)
    return from_columns(x, b_ndim)


def _solved_by_elimination(
    a: TensorVariable, b: TensorVariable, n: TensorVariable
) -> TensorVariable:
    """Return the solutions of systems by elimination with partial pivoting."""
    upper, right = reduced(a, b, n)
    return solved_triangular(upper, right, n, lower=False)


@define(MatrixInverse, "(n,n)->(n,n)")
def matrix_inverse(a: TensorVariable) -> TensorVariable:
    """Inverses of matrices, with NumPy's error if one of them is singular.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.inv(x))([[0.0, 2.0], [4.0, 0.0]])
    array([[0.  , 0.25],
           [0.5 , 0.  ]])
    """
    (a,) = as_float(a)
    n = checked_size(a, "Last 2 dimensions of the array must be square")
    unit = pt.eq(pt.arange(n)[:, None], pt.arange(n)).astype(a.type.dtype)
    upper, right = reduced(a, unit + pt.zeros_like(a), n)
    regular = pt.neq(diagonals(upper), 0).all()
    n = CheckAndRaise(np.linalg.LinAlgError, "Singular matrix")(n, regular)
    return solved_triangular(upper, right, n, lower=False)


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
        left, right = v, v * _reciprocals(w, cutoff)[..., None, :]
    else:
        u, s, vt = pt.linalg.svd(wide, full_matrices=False)
        left, right = vt.mT, u * _reciprocals(s, cutoff)[..., None, :]
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
    relative = pt.switch(pt.le(rcond, 0.0) | pt.ge(rcond, 1.0), _ROUNDING, rcond)
    if is_narrow():
        relative = pt.maximum(relative, _NARROW_CUTOFF)
    solution = pt.matmul(vt.T, _reciprocals(s, relative)[:, None] * pt.matmul(u.T, y))
    residuals = ((y - pt.matmul(x, solution)) ** 2).sum(axis=0)
    rank = (~pt.le(s, relative * _largest(s)[0])).sum()
    is_given = pt.eq(rank, x.shape[1]) & pt.gt(x.shape[0], x.shape[1])
    residuals = residuals[: pt.switch(is_given, residuals.shape[0], 0)]
    solution, residuals, s = (z.astype("float64") for z in (solution, residuals, s))
    return [solution, residuals, rank.astype("int32"), s]


def _reciprocals(values: TensorVariable, relative: TensorVariable | float) -> TensorVariable:
    """Return reciprocals, and zero for values that are small beside the largest."""
    is_small = pt.le(pt.abs(values), relative * _largest(values))
    return pt.switch(is_small, 0.0, 1.0 / pt.switch(is_small, 1.0, values))


def _largest(values: TensorVariable) -> TensorVariable:
    """Return the largest absolute value along the last axis, zero if there are none."""
    zero = pt.zeros((*values.shape[:-1], 1), dtype=values.type.dtype)
    return pt.concatenate([pt.abs(values), zero], axis=-1).max(axis=-1, keepdims=True)
