"""Eigenvalues and eigenvectors of Hermitian matrices, and of pairs of them."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eigvalsh
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.linalg.complex_reflectors import doubled_matrix
from pytensor_onnx.ops.linalg.complex_matrices import CholeskyOfParts, EighOfParts, HermitianEigh
from pytensor_onnx.rewriting.complex.complex_linear_algebra import (
    hermitian,
    solved_triangular,
    whole,
)
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    joined,
    operand,
    real_dtype,
)
from pytensor_onnx.rewriting.engine.inner_graphs import core_op


@ENCODING.rewrites(Eigvalsh, HermitianEigh)
def decompose_hermitian(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors]:
    """Return eigenvalues, and eigenvectors where the Op has them."""
    core, dtype = core_op(op), real_dtype(*node.inputs)
    given = [
        hermitian(whole(operand(v, x, dtype)), lower=core.lower)
        for v, x in zip(node.inputs, inputs, strict=True)
    ]
    matrix, factor = given[0], None
    if len(given) == 2:
        factor = Parts(*Blockwise(CholeskyOfParts(Cholesky(lower=True)))(*given[1]))
        matrix = _divided(matrix, factor)
    if isinstance(core, Eigvalsh):
        return [[_eigenvalues(matrix)]]
    values, *parts = Blockwise(EighOfParts(HermitianEigh()))(*matrix)
    vectors = Parts(*parts)
    if factor is not None:
        upper = SolveTriangular(lower=False, b_ndim=2)
        vectors = solved_triangular(upper, factor.adjoint(), vectors)
    return [[values], [joined(vectors)]]


def _eigenvalues(matrix: Parts) -> TensorVariable:
    """Return every second eigenvalue of the real matrix of twice the size, which has each twice."""
    values = Blockwise(Eigvalsh(), signature="(m,m)->(m)")
    return values(doubled_matrix(*matrix))[..., ::2]


def _divided(matrix: Parts, factor: Parts) -> Parts:
    """Return matrices divided by a Cholesky factor on both sides.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 8.7.1.
    """
    lower = SolveTriangular(lower=True, b_ndim=2)
    half = solved_triangular(lower, factor, matrix)
    return hermitian(solved_triangular(lower, factor, half.adjoint()), lower=True)
