"""Eigenvalues and Schur forms of real matrices and pencils, as real and imaginary parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

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
