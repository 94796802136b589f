"""Building blocks of the factorisations of linear algebra, each defined once for all of them.

Building blocks of Cholesky factors take one matrix. The others take and return arrays with one
batch axis. All axes are core axes of their signatures.
"""

from typing import Any

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.compat.pytensor import parse_gufunc_signature


class Part(Op):
    """A part of factorisations, which occurs in definitions only.

    Attributes
    ----------
    gufunc_signature
        Axes of the operands and of the results, which have the dtype of the first operand.
    """

    __props__: tuple[str, ...] = ()
    gufunc_signature: str

    def make_node(self, *operands: TensorVariable) -> Apply:
        """Return the application to operands."""
        dtype = operands[0].type.dtype
        _, results = parse_gufunc_signature(self.gufunc_signature)
        return Apply(
            self, list(operands), [tensor(dtype=dtype, shape=(None,) * len(r)) for r in results]
        )

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Raise, since definitions are converted and not computed by PyTensor."""
        raise NotImplementedError(f"{self} is a part of definitions, which only ONNX runs")


class EliminateRows(Part):
    """The upper triangle of a block after symmetric elimination of its rows."""

    gufunc_signature = "(w,w)->(w,w)"


class EliminateFew(Part):
    """The first ten rows of a block after their symmetric elimination, and the rest."""

    gufunc_signature = "(w,w)->(s,w),(w,w)"


class RowsBelow(Part):
    """Rows of a Cholesky factor below a block, made of rows of the matrix.

    The other operands are the upper factor of the block and its diagonal, as a column.
    """

    gufunc_signature = "(m,w),(w,w),(w,l)->(m,w)"


class Eliminate(Part):
    """Reflectors that make matrices upper triangular, in blocks, and the triangular matrices.

    The results are the vectors, the triangular factors and the scales of the reflectors, with the
    axes block, batch and reflector, and the matrices.
    """

    gufunc_signature = "(b,m,n)->(p,b,w,l),(p,b,w,w),(p,b,w),(b,k,n)"


class Reflect(Part):
    """Products of reflectors with the rows of matrices."""

    gufunc_signature = "(b,r,l),(p,b,w,l),(p,b,w,w)->(b,r,l)"


class Tridiagonalise(Part):
    """The diagonal, the elements beside it, and the reflectors of a tridiagonal form."""

    gufunc_signature = "(b,n,n)->(b,n),(b,n),(p,b,w,l),(p,b,w,w)"


class Bidiagonalise(Part):
    """The diagonal, the elements above it, and both sets of reflectors of a bidiagonal form."""

    gufunc_signature = "(b,n,n)->(b,n),(b,n),(p,b,w,l),(p,b,w,w),(p,b,w,l),(p,b,w,w)"


class Hessenberg(Part):
    """Hessenberg forms of matrices, and the orthogonal matrices that they are reduced by."""

    gufunc_signature = "(b,n,n)->(b,n,n),(b,n,n)"


class ChaseBulges(Part):
    """Hessenberg matrices beside others, after bulges were chased through a range of rows.

    The operands are these; the first columns of the products of shifted matrices; zero for a row
    in which a bulge begins, and else one; the first row and the number of rows of the range.
    """

    gufunc_signature = "(b,n,k),(b,r,n),(b,n),(),()->(b,n,k)"


class QuasiTriangular(Part):
    """Quasi-triangular forms of Hessenberg matrices and of others beside them.

    The last result is zero for a matrix for which the iteration has converged, and else NaN.
    """

    gufunc_signature = "(b,n,k)->(b,n,k),(b)"


class StandardBlocks(Part):
    """Quasi-triangular matrices with blocks in standard form, and orthogonal ones beside them."""

    gufunc_signature = "(b,n,k)->(b,n,n),(b,n,n)"


class OrderBlocks(Part):
    """Schur forms in which selected eigenvalues come first.

    The operands are the forms, the transposed orthogonal matrices, and one for the rows that come
    first and zero for others. The last result is zero, or NaN where an exchange fails.
    """

    gufunc_signature = "(b,n,n),(b,n,n),(b,n)->(b,n,n),(b,n,n),(b)"


class ComplexHessenberg(Part):
    """Hessenberg forms of complex matrices beside the adjoints of the unitary matrices.

    The operands are the parts of matrices. In the result a block of two rows and columns,
    ``[[Re z, -Im z], [Im z, Re z]]``, stands for each element.
    """

    gufunc_signature = "(b,n,n),(b,n,n)->(b,k,l)"


class ComplexTriangular(Part):
    """Triangular forms of matrices of `ComplexHessenberg` and of others beside them.

    The last result is zero for a matrix for which the iteration has converged, and else NaN.
    """

    gufunc_signature = "(b,k,l)->(b,k,l),(b)"


class OrderTriangular(Part):
    """Parts of complex triangular forms in which selected eigenvalues come first.

    The operands are the parts of the forms and of the unitary matrices, and one for the rows that
    come first and zero for others.
    """

    gufunc_signature = "(b,n,n),(b,n,n),(b,n,n),(b,n,n),(b,n)->(b,n,n),(b,n,n),(b,n,n),(b,n,n)"


class HessenbergTriangular(Part):
    """Hessenberg and triangular matrices of pencils, and orthogonal matrices beside the rows.

    The operands are pairs of matrices A and B. The results are H, T and the transposed Q beside
    each other, and Z, with ``A = Q @ H @ Z.T`` and ``B = Q @ T @ Z.T``.
    """

    gufunc_signature = "(b,n,n),(b,n,n)->(b,n,k),(b,n,n)"


class ChasePencil(Part):
    """Rows of `HessenbergTriangular` and Z, after bulges were chased through a range of rows.

    The other operands are those of `ChaseBulges`.
    """

    gufunc_signature = "(b,n,k),(b,n,n),(b,r,n),(b,n),(),()->(b,n,k),(b,n,n)"


class QuasiTriangularPencil(Part):
    """Rows of `HessenbergTriangular` and Z, after H was made quasi-triangular.

    The last result is zero for a pencil for which the iteration has converged, and else NaN.
    """

    gufunc_signature = "(b,n,k),(b,n,n)->(b,n,k),(b,n,n),(b)"


class StandardPencil(Part):
    """Quasi-triangular pencils A and B with blocks in standard form, the transposed Q, and Z."""

    gufunc_signature = "(b,n,n),(b,n,n),(b,n,n),(b,n,n)->(b,n,n),(b,n,n),(b,n,n),(b,n,n)"


class OrderPencil(Part):
    """Pencils of `StandardPencil` in which selected eigenvalues come first.

    The last operand is one for the rows that come first and zero for others; the last result is
    zero, or NaN where an exchange fails.
    """

    gufunc_signature = "(b,n,n),(b,n,n),(b,n,n),(b,n,n),(b,n)->(b,n,n),(b,n,n),(b,n,n),(b,n,n),(b)"


class ComplexHessenbergTriangular(Part):
    """Rows of `HessenbergTriangular` and Z for complex pencils.

    The operands are the parts of A and of B; the results have the form of `ComplexHessenberg`.
    """

    gufunc_signature = "(b,n,n),(b,n,n),(b,n,n),(b,n,n)->(b,k,l),(b,k,k)"


class ComplexTriangularPencil(Part):
    """Rows of `ComplexHessenbergTriangular` and Z, after H was made triangular.

    The last result is zero for a pencil for which the iteration has converged, and else NaN.
    """

    gufunc_signature = "(b,k,l),(b,k,k)->(b,k,l),(b,k,k),(b)"


class OrderTriangularPencil(Part):
    """Parts of triangular pencils A and B, Q and Z in which selected eigenvalues come first.

    The last operand is one for the rows that come first and zero for others; the last result is
    zero, or NaN where an exchange fails.
    """

    gufunc_signature = ",".join(["(b,n,n)"] * 8) + ",(b,n)->" + "(b,n,n)," * 8 + "(b)"


class SecularRoots(Part):
    """Poles next to the roots of secular equations, and the differences of roots and poles."""

    gufunc_signature = "(b,n),(b,n)->(b,n),(b,n)"


class BidiagonalVectors(Part):
    """Right, and left, singular vectors of upper bidiagonal matrices."""

    __props__ = ("with_left",)

    def __init__(self, *, with_left: bool) -> None:
        self.with_left = with_left
        self.gufunc_signature = "(b,n),(b,n)->(b,n,n)" + ",(b,n,n)" * with_left
