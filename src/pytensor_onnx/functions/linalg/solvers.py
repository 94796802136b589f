"""Solvers of systems of linear equations."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.cholesky import lower_factor
from pytensor_onnx.functions.linalg.matrix_batches import as_columns, diagonals, from_columns
from pytensor_onnx.functions.linalg.matrix_blocks import (
    as_float,
    checked_size,
    checked_sizes,
    symmetric,
)
from pytensor_onnx.functions.linalg.pivoting import reduced
from pytensor_onnx.functions.linalg.small import LARGEST, is_small, solution_of_small
from pytensor_onnx.functions.linalg.triangular import solved_triangular
from pytensor_onnx.functions.linalg.tridiagonal import solved_tridiagonal
from pytensor_onnx.functions.registry import define, own_signature


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
