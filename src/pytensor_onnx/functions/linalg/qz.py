"""Schur forms of pencils, which are pairs of matrices."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.linalg.decomposition.schur import QZ
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.matrix_batches import diagonals, flat, not_empty, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import as_float, checked_size
from pytensor_onnx.functions.linalg.pencil_blocks import rounding_errors
from pytensor_onnx.functions.linalg.pencil_triangle import (
    Triangle,
    triangular_pencil,
)
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.linalg.standard_blocks import behind, lower_diagonal
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.eigenvalue_ops import RealQZ, TriangularQZ
from pytensor_onnx.ops.linalg.factorisations import (
    HessenbergTriangular,
    OrderPencil,
    QuasiTriangularPencil,
    StandardPencil,
)

# An angle by which the eigenvalues are turned, which no matrix has by chance.
COSINE, SINE = math.cos(0.7390851), math.sin(0.7390851)


class Pencil(NamedTuple):
    """Quasi-triangular A and B, the transposed Q, and Z, of matrices with norms near one.

    Attributes
    ----------
    a, b, qt, z
        The matrices.
    scale_a, scale_b
        Powers of two that the given matrices were multiplied by.
    valid
        A summand of all results, zero or NaN.
    """

    a: TensorVariable
    b: TensorVariable
    qt: TensorVariable
    z: TensorVariable
    scale_a: TensorVariable
    scale_b: TensorVariable
    valid: TensorVariable


@define(QZ, own_signature)
def qz(a: TensorVariable, b: TensorVariable, *, sort: str | None) -> list[TensorVariable]:
    """Matrices ``A = Q @ AA @ Z.T`` and ``B = Q @ BB @ Z.T`` of real pencils.

    AA is quasi-triangular and BB triangular, with no negative element on its diagonal; beside a
    block of two rows of AA, which has complex eigenvalues, it is diagonal. The errors are those of
    LAPACK, relative to the norms of the matrices; the order of the eigenvalues and the signs of
    columns are left free, as those of `schur` are. Elements of the diagonal of BB that are at most
    a few rounding errors of its norm are zero, so that the eigenvalue is infinite. With ``sort``,
    selected eigenvalues come first. All elements are NaN where one of the matrices is not finite,
    the iteration does not converge, or eigenvalues cannot be told apart for their order. float32
    is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b = pt.matrices("ab")
    >>> aa, bb, q, z = compile_onnx([a, b], pt.linalg.qz(a, b), verify=False)(
    ...     [[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]]
    ... )
    >>> (q @ aa @ z.T).round(6)
    array([[1., 2.],
           [3., 4.]])
    >>> sorted(bb.diagonal().round(6).tolist())[0]
    0.0
    """
    return _real_results(a, b, sort)[:4]


@define(RealQZ, RealQZ.gufunc_signature)
def real_qz(a: TensorVariable, b: TensorVariable, *, sort: str | None) -> list[TensorVariable]:
    """Schur forms of real pencils as those of `qz`, and the parts of their eigenvalues.

    Examples
    --------
    >>> import pytensor
    >>> a, b = pt.matrices("ab")
    >>> _, _, alpha, beta, _, _ = pt.linalg.qz(a, b, return_eigenvalues=True)
    >>> found = pytensor.function([a, b], alpha / beta, mode="ONNX")
    >>> found([[1.0, 2.0], [-2.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]).round(6)
    array([0.5+1.j, 0.5-1.j])
    """
    return _real_results(a, b, sort)


@define(TriangularQZ, TriangularQZ.gufunc_signature)
def triangular_qz(
    a: TensorVariable, b: TensorVariable, *, sort: str | None
) -> list[TensorVariable]:
    """Parts of complex triangular Schur forms of real pencils, and of their eigenvalues.

    Examples
    --------
    >>> import pytensor
    >>> a, b = pt.matrices("ab")
    >>> aa, *_ = pt.linalg.qz(a, b, output="complex")
    >>> decompose = pytensor.function([a, b], aa, mode="ONNX")
    >>> bool(decompose([[1.0, 2.0], [-2.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]])[1, 0] == 0)
    True
    """
    dtype, n, pencil = _decomposed(a, b, sort)
    found = triangular_pencil(pencil.a, pencil.b, pencil.qt, pencil.z)
    matrices = [
        *(x / pencil.scale_a for x in found.a),
        *(x / pencil.scale_b for x in found.b),
        *found.q,
        *found.z,
    ]
    return _results(matrices, found, pencil, a, n, dtype)


def _real_results(a: TensorVariable, b: TensorVariable, sort: str | None) -> list[TensorVariable]:
    dtype, n, pencil = _decomposed(a, b, sort)
    found = triangular_pencil(pencil.a, pencil.b, pencil.qt, pencil.z)
    matrices = [
        pencil.a / pencil.scale_a,
        pencil.b / pencil.scale_b,
        pencil.qt.mT,
        pencil.z,
    ]
    return _results(matrices, found, pencil, a, n, dtype)


def _results(
    matrices: Sequence[TensorVariable],
    found: Triangle,
    pencil: Pencil,
    like: TensorVariable,
    n: TensorVariable,
    dtype: str,
) -> list[TensorVariable]:
    """Return matrices and the parts of eigenvalues in the given size, batch and dtype."""
    alpha, beta = _eigenvalues(found, pencil.scale_a, pencil.scale_b)
    vectors = [(x + pencil.valid[:, 0])[:, :n] for x in (*alpha, beta)]
    return [
        *(unflat((x + pencil.valid)[:, :n, :n].astype(dtype), like, n, n) for x in matrices),
        *(unflat(x.astype(dtype), like, n) for x in vectors),
    ]


def _eigenvalues(
    found: Triangle, scale_a: TensorVariable, scale_b: TensorVariable
) -> tuple[Parts, TensorVariable]:
    """Return the numerators and denominators of the eigenvalues of the given pencils."""
    alpha = Parts(*(x / scale_a[:, 0] for x in found.alpha))
    return alpha, found.beta / scale_b[:, 0]


def _decomposed(
    a: TensorVariable, b: TensorVariable, sort: str | None
) -> tuple[str, TensorVariable, Pencil]:
    """Return the dtype of the results, the number of rows, and pencils of at least one row."""
    a, b = as_float(a, b)
    dtype = a.type.dtype
    n = checked_size(a, "expected square matrix")
    fits = pt.eq(b.shape[-1], n) & pt.eq(b.shape[-2], n)
    n = CheckAndRaise(ValueError, "incompatible dimensions")(n, fits)
    valid_a, a = finite(flat(a).astype("float64"))
    valid_b, b = finite(flat(b).astype("float64"))
    (a, scale_a), (b, scale_b) = scaled(a), scaled(b)
    (a, _), (b, size) = not_empty(a, n), not_empty(b, n)
    # The eigenvalues are turned, so that none but those of few matrices are infinite.
    rows, z = HessenbergTriangular()(COSINE * a + SINE * b, COSINE * b - SINE * a)
    rows, z, failed = QuasiTriangularPencil()(rows, z)
    h, t, qt = (rows[:, :, i * size : (i + 1) * size] for i in range(3))
    a, b = is_nonzero(a) * (COSINE * h - SINE * t), is_nonzero(b) * (COSINE * t + SINE * h)
    a, b, qt, z = StandardPencil()(a, b, qt, z)
    b = _with_zeros(a, b)
    if sort is not None:
        eigenvalues = _eigenvalues(triangular_pencil(a, b, qt, z), scale_a, scale_b)
        a, b, qt, z, unordered = OrderPencil()(a, b, qt, z, selected(eigenvalues, sort))
        b = _with_zeros(a, b)
        failed = failed + unordered
    valid = valid_a + valid_b + failed[:, None, None]
    return dtype, n, Pencil(a, b, qt, z, scale_a, scale_b, valid)


def _with_zeros(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return B with zeros for rounding errors on its diagonal, except beside blocks of A."""
    is_first = pt.neq(lower_diagonal(a), 0.0)
    is_kept = is_first | behind(is_first) | pt.gt(diagonals(b), rounding_errors(b)[:, None])
    index = pt.arange(b.shape[1])
    return pt.switch(pt.neq(index[:, None], index) | is_kept[:, :, None], b, 0.0)


def is_nonzero(x: TensorVariable) -> TensorVariable:
    """Return one for each matrix with an element that is not zero, and zero for others.

    The other matrix of a pencil leaves rounding errors in these.
    """
    return pt.neq(x, 0.0).any(axis=(1, 2), keepdims=True).astype("float64")


def scaled(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return matrices with norms near one, and the powers of two that they were multiplied by."""
    first = power_of_two(x, axis=(1, 2))
    x = x * first
    second = power_of_two(pt.sqrt((x * x).sum(axis=(1, 2), keepdims=True)), axis=(1, 2))
    return x * second, first * second


def selected(eigenvalues: tuple[Parts, TensorVariable], sort: str) -> TensorVariable:
    """Return one for the rows of eigenvalues that come first, and zero for others."""
    alpha, beta = eigenvalues
    real, imag = alpha
    is_infinite = pt.eq(beta, 0.0)
    divisor = pt.switch(is_infinite, 1.0, beta)
    part = real / divisor
    size = pt.sqrt(part**2 + (imag / divisor) ** 2)
    has_value = pt.neq(real, 0.0) | pt.neq(imag, 0.0)
    chosen = {
        "lhp": ~is_infinite & pt.lt(part, 0.0),
        "rhp": ~is_infinite & pt.gt(part, 0.0),
        "iuc": ~is_infinite & pt.lt(size, 1.0),
        "ouc": pt.switch(is_infinite, has_value, pt.gt(size, 1.0)),
    }
    return chosen[sort].astype("float64")
