"""Ops of factorisations, eigenvalues and matrix equations.

Building blocks of Cholesky factors take one matrix. The others take and return arrays with one
batch axis. All axes are core axes of their signatures.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
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


EXPONENT = 1 / np.pi
"""Power by which elements of vectors are weighted for their phases."""


class RealEig(Op):
    """Eigenvalues and eigenvectors of a real matrix, by their real and imaginary parts.

    Eigenvalues have ascending real parts; of two conjugates the one with the positive imaginary
    part comes first. Eigenvectors have the length one, and the sum of their elements, weighted by
    the powers 1/π of 1, 2, 3, …, is real and positive.
    """

    __props__ = ()
    gufunc_signature = "(m,m)->(m),(m),(m,m),(m,m)"

    def make_node(self, x: TensorVariable) -> Apply:
        """Return the application to a matrix of floats."""
        n, _ = x.type.shape
        vector, matrix = (tensor(dtype=x.type.dtype, shape=(n,) * k) for k in (1, 2))
        return Apply(self, [x], [vector, vector.type(), matrix, matrix.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the parts by NumPy."""
        (x,) = inputs
        values, vectors = np.linalg.eig(x)
        order = np.argsort(values.real, kind="stable")
        values, vectors = values[order], vectors[:, order]
        sums = (np.arange(1, len(x) + 1) ** EXPONENT) @ vectors
        sizes = np.abs(sums)
        turns = np.where(sizes > 0, sums.conj(), 1) / np.where(sizes > 0, sizes, 1)
        vectors = vectors * turns
        for storage, part in zip(
            output_storage, (values.real, values.imag, vectors.real, vectors.imag), strict=True
        ):
            storage[0] = np.ascontiguousarray(part, dtype=x.dtype)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the sizes of a matrix of eigenvectors."""
        ((n, _),) = shapes
        return [(n,), (n,), (n, n), (n, n)]


class TriangularSchur(Op):
    """Triangular Schur form of a real matrix and the unitary matrix, by their parts."""

    __props__ = ("sort",)
    gufunc_signature = "(m,m)->(m,m),(m,m),(m,m),(m,m)"

    def __init__(self, sort: str | None = None) -> None:
        self.sort = sort

    def make_node(self, x: TensorVariable) -> Apply:
        """Return the application to a matrix of floats."""
        return Apply(self, [x], [tensor(dtype=x.type.dtype, shape=x.type.shape) for _ in range(4)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the parts by PyTensor."""
        (x,) = inputs
        op = Schur(output="complex", sort=self.sort)
        found: list[list[Any]] = [[None], [None]]
        op.perform(op.make_node(x), [x], found)
        t, z = (result for (result,) in found)
        for storage, part in zip(output_storage, (t.real, t.imag, z.real, z.imag), strict=True):
            storage[0] = np.ascontiguousarray(part, dtype=x.dtype)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the sizes of the matrix."""
        return shapes * 4


class OfPencil(Op):
    """An Op of a real pencil with matrices and three vectors as results.

    Attributes
    ----------
    matrices
        Number of the matrices, which come before the vectors.
    sort
        The eigenvalues that come first.
    """

    __props__ = ("sort",)
    matrices: int
    gufunc_signature: str

    def __init__(self, sort: str | None = None) -> None:
        self.sort = sort

    def make_node(self, a: TensorVariable, b: TensorVariable) -> Apply:
        """Return the application to matrices of floats of one dtype."""
        vector = tensor(dtype=a.type.dtype, shape=a.type.shape[:1])
        matrices = [a.type() for _ in range(self.matrices)]
        return Apply(self, [a, b], [*matrices, *(vector.type() for _ in range(3))])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the results by PyTensor."""
        for storage, part in zip(output_storage, self.results(inputs), strict=True):
            storage[0] = np.ascontiguousarray(part, dtype=inputs[0].dtype)

    def results(self, inputs: Any) -> Sequence[Any]:
        """Return the results for arrays."""
        raise NotImplementedError

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the sizes of the matrix, and of vectors."""
        return [shapes[0]] * self.matrices + [shapes[0][:1]] * 3


class RealQZ(OfPencil):
    """Schur form of a real pencil: the matrices, and the parts of the eigenvalues.

    The results are AA, BB, Q, Z, the real and the imaginary parts of alpha, and beta.
    """

    matrices = 4
    gufunc_signature = "(m,m),(m,m)->(m,m),(m,m),(m,m),(m,m),(m),(m),(m)"

    def results(self, inputs: Any) -> Sequence[Any]:
        """Return the results of the real form."""
        aa, bb, alpha, beta, q, z = _pencil(inputs, self.sort, complex_output=False)
        return aa, bb, q, z, alpha.real, alpha.imag, beta


class TriangularQZ(OfPencil):
    """Triangular Schur form of a real pencil and its eigenvalues, by their parts.

    The results are the real and the imaginary parts of AA, BB, Q, Z and alpha, and beta.
    """

    matrices = 8
    gufunc_signature = "(m,m),(m,m)->(m,m),(m,m),(m,m),(m,m),(m,m),(m,m),(m,m),(m,m),(m),(m),(m)"

    def results(self, inputs: Any) -> Sequence[Any]:
        """Return the parts of the complex form."""
        aa, bb, alpha, beta, q, z = _pencil(inputs, self.sort, complex_output=True)
        parts = [part for x in (aa, bb, q, z, alpha) for part in (x.real, x.imag)]
        return [*parts, beta.real]


def _pencil(inputs: Any, sort: str | None, *, complex_output: bool) -> list[Any]:
    """Return the results of PyTensor's Op with the eigenvalues."""
    op = QZ(complex_output=complex_output, sort=sort, return_eigenvalues=True)
    found: list[list[Any]] = [[None] for _ in range(6)]
    op.perform(op.make_node(*inputs), inputs, found)
    return [result for (result,) in found]


class DiscreteRiccati(Part):
    """Stabilising solution of a discrete algebraic Riccati equation."""

    gufunc_signature = "(m,m),(m,n),(m,m),(n,n)->(m,m)"

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the solution by SciPy, NaN where there is none."""
        import scipy.linalg  # type: ignore[import-untyped]

        try:
            solution = scipy.linalg.solve_discrete_are(*inputs)
        except np.linalg.LinAlgError:
            solution = np.full_like(inputs[0], np.nan)
        except ValueError as error:
            if "symmetric" not in str(error):
                raise
            solution = np.full_like(inputs[0], np.nan)
        output_storage[0][0] = np.asarray(solution, dtype=node.outputs[0].type.dtype)
