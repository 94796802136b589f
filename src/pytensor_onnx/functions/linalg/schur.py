"""Schur forms of matrices."""

import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.schur import Schur
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.eigenvalue_order import selected
from pytensor_onnx.functions.linalg.matrix_batches import flat, not_empty, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import as_float, checked_size
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.factorisations import (
    Hessenberg,
    OrderBlocks,
    QuasiTriangular,
    StandardBlocks,
)


@define(Schur, own_signature)
def schur(a: TensorVariable, *, output: str, sort: str | None) -> list[TensorVariable]:
    """Quasi-triangular matrices ``T`` and orthogonal matrices ``Z`` with ``A = Z @ T @ Z.T``.

    Matrices are reduced to Hessenberg form and then by the QR iteration. Blocks of two rows along
    the diagonal have the form of LAPACK's, with equal diagonal elements and complex eigenvalues.
    The errors are those of LAPACK, relative to the norm of the matrix. The order of the
    eigenvalues, and the signs of the columns of Z, may differ from LAPACK's; mathematics leaves
    both free. With ``sort``, eigenvalues of a half-plane, or inside or outside of the unit circle,
    come first, and keep their order otherwise; all elements are NaN where they cannot be told
    apart from others. All elements are NaN where one of the matrix is not finite. float32 is
    computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> t, z = compile_onnx([x], pt.linalg.schur(x), verify=False)([[1.0, 4.0], [-1.0, 1.0]])
    >>> t
    array([[ 1.,  4.],
           [-1.,  1.]])
    """
    (a,) = as_float(a)
    n = checked_size(a, "expected square matrix")
    t, z = real_schur(flat(a).astype("float64"), n, sort)
    return [unflat(x.astype(a.type.dtype), a, n, n) for x in (t, z)]


def real_schur(
    a: TensorVariable, n: TensorVariable, sort: str | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Return real Schur forms of matrices of n rows with one batch axis, in float64."""
    valid, a = finite(a)
    scale = power_of_two(a, axis=(1, 2))
    a, _ = not_empty(a * scale, n)
    h, q = Hessenberg()(a)
    rows, failed = QuasiTriangular()(pt.concatenate([h, q.mT], axis=2))
    t, qt = StandardBlocks()(rows)
    if sort is not None:
        t, qt, unordered = OrderBlocks()(t, qt, selected(t / scale, sort))
        failed += unordered
    valid += failed[:, None, None]
    return t[:, :n, :n] / scale + valid, qt[:, :n, :n].mT + valid
