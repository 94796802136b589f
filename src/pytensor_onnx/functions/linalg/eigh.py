"""Eigenvalues and eigenvectors of symmetric matrices."""

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.jacobi import orthogonal_columns
from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import as_float, checked_size, symmetric
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.linalg.vector_signs import signs
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.wide_evaluation import is_narrow
from pytensor_onnx.ops.linalg.factorisations import BidiagonalVectors, Reflect, Tridiagonalise

_SQUARE = "expected square matrix"


def _of_operands(results: str) -> Callable[[Any, int], str]:
    """Return a function that returns the signature for one or two matrices."""
    return lambda _, count: ",".join(["(m,m)"] * count) + "->" + results


@define(Eigh, _of_operands("(m),(m,m)"))
def eigh(
    a: TensorVariable, b: TensorVariable | None = None, *, lower: bool
) -> list[TensorVariable]:
    """Eigenvalues in ascending order and orthonormal eigenvectors, of the triangle that is read.

    Matrices are reduced to tridiagonal form, which is made positive definite by a shift; its
    eigenvectors are the singular vectors of its bidiagonal Cholesky factor. The eigenvalues are
    the Rayleigh quotients of the eigenvectors. The errors are those of LAPACK, relative to the
    norm of the matrix. Eigenvectors have the signs of `signs`; those of an eigenvalue that is
    repeated are any basis. All results are NaN where an element that is
    read is not finite. float32 is computed in float64, and in files without it by rotations in
    float32.

    With a second matrix ``B``, the equation is ``A v = w B v`` and ``v.T B v`` is one: the matrix
    is divided by a Cholesky factor of ``B`` on both sides. All results are NaN if ``B`` is not
    positive definite.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> w, v = compile_onnx([x], pt.linalg.eigh(x))([[2.0, 1.0], [1.0, 2.0]])
    >>> w.round(6)
    array([1., 3.])
    >>> abs(v).round(3)
    array([[0.707, 0.707],
           [0.707, 0.707]])
    """
    a, *others = as_float(a) if b is None else as_float(a, b)
    n = checked_size(a, _SQUARE)
    if others:
        values, vectors = _generalised_eigen(flat(a), flat(others[0]), n, lower=lower)
    else:
        values, vectors = symmetric_eigen(flat(a), n, lower=lower)
    values, vectors = values.astype(a.type.dtype), vectors.mT.astype(a.type.dtype)
    return [unflat(values, a, n), unflat(vectors, a, n, n)]


@define(Eigvalsh, _of_operands("(m)"))
def eigvalsh(a: TensorVariable, b: TensorVariable | None = None, *, lower: bool) -> TensorVariable:
    """Eigenvalues in ascending order, as `eigh` returns them."""
    return eigh(a, b, lower=lower)[0]


def _generalised_eigen(
    a: TensorVariable, b: TensorVariable, n: TensorVariable, *, lower: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and, in rows, eigenvectors of pairs of matrices.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 8.7.1.
    """
    if not is_narrow():
        a, b = a.astype("float64"), b.astype("float64")
    factor = pt.linalg.cholesky(b, lower=lower)
    factor = factor if lower else factor.mT
    divided = pt.linalg.solve_triangular(factor, symmetric(a, n, lower=lower), lower=True, b_ndim=2)
    divided = pt.linalg.solve_triangular(factor, divided.mT, lower=True, b_ndim=2)
    values, vectors = symmetric_eigen(divided, n, lower=True)
    solved = pt.linalg.solve_triangular(factor.mT, vectors.mT, lower=False, b_ndim=2).mT
    return values, solved * signs(solved)


def symmetric_eigen(
    a: TensorVariable, n: TensorVariable, *, lower: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and, in rows, eigenvectors of matrices with one batch axis."""
    a = a if is_narrow() else a.astype("float64")
    valid, a = finite(symmetric(a, n, lower=lower))
    scale = power_of_two(a, axis=(1, 2))
    values, vectors = (_by_rotations if is_narrow() else _by_tridiagonal_form)(a * scale)
    order = pt.argsort(values, axis=1) + pt.arange(a.shape[0])[:, None] * n
    values = values.flatten()[order] / scale[:, :, 0]
    vectors = vectors.reshape((a.shape[0] * n, n))[order]
    return values + valid[:, :, 0], vectors * signs(vectors) + valid


def _by_tridiagonal_form(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and eigenvectors in any order."""
    batch, n = a.shape[0], a.shape[1]
    diagonal, beside, *reflectors = Tridiagonalise()(a)
    vectors = BidiagonalVectors(with_left=False)(*_shifted_root(diagonal, beside, batch))
    zero = pt.zeros((batch, n, 1))
    next_elements = pt.concatenate([vectors[:, :, 1:], zero], axis=2)[:, :, :n]
    products = diagonal[:, None] * vectors + 2.0 * beside[:, None] * next_elements
    values = (vectors * products).sum(axis=2)
    vectors = Reflect()(pt.concatenate([vectors, zero], axis=2), *reflectors)[:, :, :n]
    return values, vectors


def _by_rotations(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return eigenvalues and eigenvectors in any order, without float64.

    The right singular vectors of a positive definite matrix are its eigenvectors, so the matrix is
    made positive definite by a shift.
    """
    dtype = a.type.dtype
    batch, n = a.shape[0], a.shape[1]
    places = pt.arange(n)
    norm = pt.abs(a).sum(axis=2)
    norm = pt.concatenate([norm, pt.ones((batch, 1), dtype)], axis=1).max(axis=1)
    shift = (norm + norm)[:, None, None] * pt.eq(places[:, None], places).astype(dtype)
    _, vectors = orthogonal_columns(a + shift)
    return (vectors * pt.matmul(vectors, a)).sum(axis=2), vectors


def _shifted_root(
    diagonal: TensorVariable, beside: TensorVariable, batch: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the Cholesky factor of tridiagonal matrices, made positive definite by a shift.

    The right singular vectors of the factor are the eigenvectors.
    """
    before = pt.concatenate([pt.zeros((batch, 1)), pt.abs(beside)], axis=1)[:, :-1]
    norm = pt.abs(diagonal) + pt.abs(beside) + before
    norm = pt.concatenate([norm, pt.zeros((batch, 1))], axis=1).max(axis=1, keepdims=True)
    shifted = diagonal + pt.switch(pt.gt(norm, 0.0), 1.125 * norm, 1.0)

    def step(d: TensorVariable, e: TensorVariable, above: TensorVariable) -> list[TensorVariable]:
        root = pt.sqrt(d - above * above)
        return [e / root, root]

    above, root = pytensor.scan(
        step,
        [shifted.T, beside.T],
        [pt.zeros((batch,)), None],
        return_updates=False,
    )
    sizes = diagonal.shape[1], batch
    return root.reshape(sizes).T, above.reshape(sizes).T
