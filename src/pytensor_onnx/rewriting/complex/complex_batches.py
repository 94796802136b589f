"""Batches of operations on complex numbers."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.extra_ops import SearchsortedOp
from pytensor.tensor.linalg.decomposition.eigen import Eig, Eigvalsh
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.linalg.solvers.linear_control import TRSYL, SolveDiscreteARE
from pytensor.tensor.math import Dot
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.linalg.complex_matrices import HermitianEigh
from pytensor_onnx.rewriting.complex.complex_equations import (
    solve_riccati,
    solve_triangular_sylvester,
)
from pytensor_onnx.rewriting.complex.complex_linear_algebra import compute
from pytensor_onnx.rewriting.complex.complex_parts import ENCODING
from pytensor_onnx.rewriting.complex.complex_products import multiply
from pytensor_onnx.rewriting.complex.complex_search import search
from pytensor_onnx.rewriting.complex.complex_structure import by_part, values_of
from pytensor_onnx.rewriting.complex.eigenvalues import (
    decompose,
    decompose_pencil,
)
from pytensor_onnx.rewriting.complex.hermitian import decompose_hermitian


@ENCODING.rewrites(Blockwise)
def batch(op: Blockwise, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Batch the formula on parts that replaces a core Op on complex numbers."""
    if isinstance(op.core_op, Dot | Convolve1d | Convolve2d):
        return multiply(op, node, inputs)
    if isinstance(op.core_op, Eig | Schur):
        return decompose(op, node, inputs)
    if isinstance(op.core_op, Eigvalsh | HermitianEigh):
        return decompose_hermitian(op, node, inputs)
    if isinstance(op.core_op, TRSYL):
        return solve_triangular_sylvester(op, node, inputs)
    if isinstance(op.core_op, SolveDiscreteARE):
        return solve_riccati(op, node, inputs)
    if isinstance(op.core_op, QZ):
        return decompose_pencil(op, node, inputs)
    if isinstance(op.core_op, SearchsortedOp):
        return search(op, node, inputs)
    values = values_of(op.core_op, in_batch=True)
    if values is None:
        return compute(op, node, inputs)
    return by_part(op, node, inputs, values)
