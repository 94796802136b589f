"""Linear algebra of complex matrices, by the real matrices of twice the size that stand for them.

A product of the matrices ``[[Re A, -Im A], [Im A, Re A]]`` is the matrix of the product. So
solutions, inverses and exponentials are those of these matrices, with errors of the same size.
Factorisations have definitions of their own.
"""

from collections.abc import Callable, Iterable, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eig
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
from pytensor.tensor.linalg.products import Expm
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.solvers.tridiagonal import (
    LUFactorTridiagonal,
    SolveLUFactorTridiagonal,
)
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.linalg.complex_reflectors import doubled_matrix
from pytensor_onnx.functions.linalg.matrix_blocks import symmetric
from pytensor_onnx.ops import complex as ops
from pytensor_onnx.ops.linalg.complex_matrices import (
    CholeskyOfParts,
    DetOfParts,
    EigOfParts,
    LUFactorOfParts,
    LUFactorTridiagonalOfParts,
    LUOfParts,
    OfParts,
    QROfParts,
    QZOfParts,
    SchurOfParts,
    SLogDetOfParts,
    SolveLUFactorTridiagonalOfParts,
    SVDOfParts,
)
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    operand,
    real_dtype,
)
from pytensor_onnx.rewriting.complex.complex_structure import by_part
from pytensor_onnx.rewriting.engine.inner_graphs import core_op

type Formula = Callable[..., Parts]


def compute(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Return the result of an Op or of its `Blockwise`, or None if the Op has no formula."""
    core = core_op(op)
    if isinstance(core, BlockDiagonal):
        return by_part(op, node, inputs, slice(None))
    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    formula, of_parts = _FORMULAS.get(type(core)), _OF_PARTS.get(type(core))
    if formula is not None:
        return [[joined(formula(core, *given))]]
    if isinstance(core, SVD) and not core.compute_uv:
        return [[Blockwise(core)(doubled_matrix(*given[0]))[..., ::2]]]
    if of_parts is None:
        return None
    operands: list[Iterable[TensorVariable]] = [*given]
    for i in of_parts.integers:
        operands[i] = inputs[i]
    return results_of_parts(of_parts(core), node, operands)


def results_of_parts(
    of_parts: OfParts, node: Apply, given: Sequence[Iterable[TensorVariable]]
) -> list[Tensors]:
    """Return the results of an Op on parts, one for each output of a node."""
    operands = [part for parts in given for part in parts]
    parts = iter(Blockwise(of_parts)(*operands, return_list=True))
    return [
        [joined(Parts(next(parts), next(parts))) if is_complex(output) else next(parts)]
        for output in node.outputs
    ]


def whole(z: Parts) -> Parts:
    """Return parts of equal shapes; the imaginary one of a real operand is a number."""
    if z.imag.type.ndim == z.real.type.ndim:
        return z
    return Parts(z.real, pt.zeros_like(z.real) + z.imag)


def _halves(x: TensorVariable, axis: int = -2) -> Parts:
    """Return the parts of numbers that stand one after the other along an axis."""
    n = x.shape[axis] // 2
    rest = (slice(None),) * (-axis - 1)
    return Parts(x[(..., slice(None, n), *rest)], x[(..., slice(n, None), *rest)])


def first_columns(x: TensorVariable, count: TensorVariable) -> Parts:
    """Return the complex matrices that real ones of twice the size stand for."""
    return _halves(x[..., :count])


def inverted(op: Expm | MatrixInverse, a: Parts) -> Parts:
    """Return inverses or exponentials; the first block column holds real and imaginary parts."""
    return first_columns(Blockwise(op)(doubled_matrix(*a)), a.real.shape[-1])


def _pseudo_inverse(op: MatrixPinv, a: Parts) -> Parts:
    if op.hermitian:
        a = hermitian(a, lower=True)
    return first_columns(Blockwise(op)(doubled_matrix(*a)), a.real.shape[-2])


def solved(op: Solve, a: Parts, b: Parts) -> Parts:
    """Return solutions of systems; the other triangle of a symmetric matrix is not read."""
    kind = op.assume_a
    if kind == "sym":
        n = a.real.shape[-1]
        a = Parts(*(symmetric(x, n, lower=op.lower) for x in a))
    elif kind in ("her", "pos"):
        a = hermitian(a, lower=op.lower)
    elif kind == "tridiagonal":
        index = pt.arange(a.real.shape[-1])
        is_near = pt.le(pt.abs(index[:, None] - index), 1)
        a = Parts(*(pt.switch(is_near, x, 0) for x in a))
    solver = Solve(assume_a="pos" if kind == "pos" else "gen", b_ndim=op.b_ndim)
    both = pt.concatenate(list(b), axis=-op.b_ndim)
    return _halves(Blockwise(solver)(doubled_matrix(*a), both), -op.b_ndim)


def hermitian(a: Parts, *, lower: bool) -> Parts:
    """Return Hermitian matrices with the lower or upper triangles of the given matrices."""
    index = pt.arange(a.real.shape[-1])
    row, column = index[:, None], index
    is_given = pt.gt(row, column) if lower else pt.lt(row, column)
    imag = pt.switch(is_given, a.imag, 0)
    return Parts(symmetric(a.real, a.real.shape[-1], lower=lower), imag - imag.mT)


def solved_triangular(op: SolveTriangular, a: Parts, b: Parts) -> Parts:
    """Return solutions of triangular systems, which the real matrices are with rows in pairs.

    Rows are divided by the diagonal first, so that pairs of rows have an identity there.
    """
    diagonal = Parts(*(pt.diagonal(x, axis1=-2, axis2=-1) for x in a))
    if not op.unit_diagonal:
        a = _quotient(a, Parts(*(x[..., None] for x in diagonal)))
        by = diagonal if op.b_ndim == 1 else Parts(*(x[..., None] for x in diagonal))
        b = _quotient(b, by)
    index = pt.arange(a.real.shape[-1])
    a = Parts(a.real, pt.switch(pt.eq(index[:, None], index), 0, a.imag))
    above, below = (_paired(Parts(*x), -1) for x in ((a.real, -a.imag), (a.imag, a.real)))
    matrix = _paired(Parts(above, below), -2)
    solver = SolveTriangular(lower=op.lower, unit_diagonal=True, b_ndim=op.b_ndim)
    x = Blockwise(solver)(matrix, _paired(b, -op.b_ndim))
    rest = (slice(None),) * (op.b_ndim - 1)
    return Parts(*(x[(..., slice(i, None, 2), *rest)] for i in range(2)))


def _quotient(x: Parts, y: Parts) -> Parts:
    return Parts(*ops.quotient(*x, *y))


def _paired(z: Parts, axis: int) -> TensorVariable:
    """Return the parts of each number beside each other along an axis."""
    stacked = pt.stack(list(z), axis=z.real.type.ndim + axis + 1)
    sizes = [z.real.shape[i] for i in range(z.real.type.ndim)]
    sizes[axis] = 2 * sizes[axis]
    return stacked.reshape(sizes)


def _solve_by_cholesky(op: CholeskySolve, factor: Parts, b: Parts) -> Parts:
    lower = factor if op.lower else _adjoint(factor)
    first = solved_triangular(SolveTriangular(lower=True, b_ndim=op.b_ndim), lower, b)
    second = SolveTriangular(lower=False, b_ndim=op.b_ndim)
    return solved_triangular(second, _adjoint(lower), first)


def _adjoint(z: Parts) -> Parts:
    return Parts(z.real.mT, -z.imag.mT)


_FORMULAS: dict[type[Op], Formula] = {
    CholeskySolve: _solve_by_cholesky,
    Expm: inverted,
    MatrixInverse: inverted,
    MatrixPinv: _pseudo_inverse,
    Solve: solved,
    SolveTriangular: solved_triangular,
}
_OF_PARTS: dict[type[Op], type[OfParts]] = {
    Cholesky: CholeskyOfParts,
    Det: DetOfParts,
    Eig: EigOfParts,
    LU: LUOfParts,
    LUFactor: LUFactorOfParts,
    LUFactorTridiagonal: LUFactorTridiagonalOfParts,
    QR: QROfParts,
    QZ: QZOfParts,
    Schur: SchurOfParts,
    SLogDet: SLogDetOfParts,
    SVD: SVDOfParts,
    SolveLUFactorTridiagonal: SolveLUFactorTridiagonalOfParts,
}
# Those of real matrices are complex too, and have rewrites of their own.
_OF_BOTH = (Eig, QZ, Schur)
ENCODING.rewrites(BlockDiagonal, *_FORMULAS, *(op for op in _OF_PARTS if op not in _OF_BOTH))(
    compute
)
