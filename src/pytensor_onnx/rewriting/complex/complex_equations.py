"""Equations of complex matrices and tensors."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.inverse import MatrixInverse, TensorInv
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.linear_control import TRSYL, SolveDiscreteARE
from pytensor.tensor.linalg.solvers.lstsq import TensorSolve

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.linalg.complex_reflectors import doubled_matrix
from pytensor_onnx.functions.linalg.least_squares import (
    given_residuals,
    lapack_cutoff,
    rank_of,
    reciprocals,
)
from pytensor_onnx.ops.linalg.complex_matrices import ComplexLstsq, SVDOfParts, SylvesterOfParts
from pytensor_onnx.ops.linalg.eigenvalue_ops import TriangularSchur
from pytensor_onnx.ops.linalg.riccati_ops import DiscreteRiccati
from pytensor_onnx.rewriting.complex.complex_linear_algebra import (
    first_columns,
    inverted,
    results_of_parts,
    solved,
    whole,
)
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    operand,
    parts_of,
    real_dtype,
)
from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.linalg.tensor_inverses import matrix_to_invert, matrix_to_solve


@ENCODING.rewrites(TRSYL)
def solve_triangular_sylvester(
    op: Op, node: Apply, inputs: Sequence[Tensors]
) -> Sequence[Tensors] | None:
    """Solve Sylvester's equation of triangular matrices.

    PyTensor reads the upper triangle of a quasi-triangular matrix beside a complex one; here it
    becomes triangular, so that the solution is that of the equation.
    """
    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    turns: list[Parts | None] = [None, None]
    for i in range(2):
        if not is_complex(node.inputs[i]):
            parts = Blockwise(TriangularSchur())(given[i].real)
            given[i], turns[i] = Parts(*parts[:2]), Parts(*parts[2:])
    left, right = turns
    if left is not None:
        given[2] = left.adjoint() @ given[2]
    if right is not None:
        given[2] = given[2] @ right
    core = core_op(op)
    ((pairs,),) = results_of_parts(SylvesterOfParts(core), node, given)
    x = parts_of(pairs)
    if left is not None:
        x = left @ x
    if right is not None:
        x = x @ right.adjoint()
    return [[joined(x)]]


@ENCODING.rewrites(SolveDiscreteARE)
def solve_riccati(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors]:
    """Solve Riccati's equation of the real matrices of twice the size.

    The adjoint of a complex matrix is the transpose of the real one, so that the one stabilising
    solution stands for that of the complex equation.
    """
    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    x = Blockwise(DiscreteRiccati())(*(doubled_matrix(*parts) for parts in given))
    real, imag = first_columns(x, given[0].real.shape[-1])
    # Rounding errors of both halves differ.
    return [[joined(Parts(real, 0.5 * (imag - imag.mT)))]]


@ENCODING.rewrites(TensorInv)
def invert_tensor(op: TensorInv, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors]:
    """Invert the matrix whose rows are the axes that come first in the result."""
    (real, sizes), (imag, _) = (matrix_to_invert(x, op.ind) for x in parts_of(inputs[0][0]))
    result = inverted(MatrixInverse(), Parts(real, imag))
    return [[joined(Parts(*(part.reshape(sizes) for part in result)))]]


@ENCODING.rewrites(TensorSolve)
def solve_tensor(
    op: TensorSolve, node: Apply, inputs: Sequence[Tensors]
) -> Sequence[Tensors] | None:
    """Solve a system whose columns are the last axes, after the Op has moved its axes there.

    PyTensor's result is a matrix: unknowns of another rank are left.
    """
    dtype = real_dtype(*node.outputs)
    x, y = (whole(operand(v, g, dtype)) for v, g in zip(node.inputs, inputs, strict=True))
    if x.real.type.ndim - y.real.type.ndim != node.outputs[0].type.ndim:
        return None
    (real, sizes), (imag, _) = (matrix_to_solve(part, y.real, op.axes) for part in x)
    result = solved(Solve(b_ndim=1), Parts(real, imag), Parts(*(part.ravel() for part in y)))
    return [[joined(Parts(*(part.reshape(sizes) for part in result)))]]


@ENCODING.rewrites(ComplexLstsq)
def solve_least_squares(
    op: ComplexLstsq, node: Apply, inputs: Sequence[Tensors]
) -> Sequence[Tensors]:
    """Solve by singular values, in float64 as NumPy does."""
    x, y = (
        whole(operand(v, given, "float64"))
        for v, given in zip(node.inputs[:2], inputs[:2], strict=True)
    )
    parts = Blockwise(SVDOfParts(SVD(full_matrices=False)))(*x)
    left, s, right = Parts(*parts[:2]), parts[2], Parts(*parts[3:])
    relative = lapack_cutoff(inputs[2][0])
    scaled = (left.adjoint() @ y).scaled(reciprocals(s, relative)[:, None])
    solution = right.adjoint() @ scaled
    rest = y - x @ solution
    rank = rank_of(s, relative)
    squares = (rest.real**2 + rest.imag**2).sum(axis=0)
    residuals = given_residuals(squares, rank, x.real)
    dtype = real_dtype(node.outputs[0])
    found = Parts(*(part.astype(dtype) for part in solution))
    results = [residuals, rank, s]
    types = [output.type.dtype for output in node.outputs[1:]]
    return [[joined(found)], *([x.astype(d)] for x, d in zip(results, types, strict=True))]
