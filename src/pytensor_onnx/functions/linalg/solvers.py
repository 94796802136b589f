"""Solvers of systems of linear equations."""

from pytensor.tensor.linalg.solvers.core import SolveBase
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import as_float, checked_sizes
from pytensor_onnx.functions.linalg.triangular import solved_triangular
from pytensor_onnx.functions.registry import define


def as_op(op: SolveBase, count: int) -> str:
    """Return the signature of a solver, whose right-hand side is a vector or a matrix."""
    return str(op.gufunc_signature)


@define(SolveTriangular, as_op)
def solve_triangular(
    a: TensorVariable, b: TensorVariable, *, lower: bool, unit_diagonal: bool, b_ndim: int
) -> TensorVariable:
    """Solution of triangular systems, of which one triangle is read.

    The right-hand sides of a block of rows follow from the blocks before by one product. For one
    matrix the blocks are inverted all at once, and each solution is refined once; for a batch,
    rows are substituted one after another. All unknowns of a system are NaN if an element of the
    diagonal is zero, as in PyTensor. The backward error is that of LAPACK.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import compile_onnx
    >>> a, b = pt.matrix("a"), pt.vector("b")
    >>> solve = compile_onnx([a, b], pt.linalg.solve_triangular(a, b, lower=True))
    >>> solve([[2.0, 0.0], [1.0, 1.0]], [4.0, 5.0])
    array([2., 3.])
    """
    a, b = as_float(a, b)
    columns = b if b_ndim == 2 else b[..., None]
    n = checked_sizes(a, columns, "expected square matrix", "shapes of a and b are incompatible")
    x = solved_triangular(a, columns, n, lower=lower, unit_diagonal=unit_diagonal)
    return x if b_ndim == 2 else x[..., 0]


@define(CholeskySolve, as_op)
def cholesky_solve(
    c: TensorVariable, b: TensorVariable, *, lower: bool, b_ndim: int
) -> TensorVariable:
    """Solution of systems whose matrices have given Cholesky factors.

    It is that of two triangular systems.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import compile_onnx
    >>> c, b = pt.matrix("c"), pt.vector("b")
    >>> solve = compile_onnx([c, b], pt.linalg.cho_solve((c, True), b))
    >>> solve([[2.0, 0.0], [1.0, 1.0]], [8.0, 6.0])
    array([1., 2.])
    """
    c, b = as_float(c, b)
    columns = b if b_ndim == 2 else b[..., None]
    n = checked_sizes(c, columns, "The factored matrix c is not square.", "incompatible dimensions")
    first = solved_triangular(c if lower else c.mT, columns, n, lower=True)
    x = solved_triangular(c.mT if lower else c, first, n, lower=False)
    return x if b_ndim == 2 else x[..., 0]
