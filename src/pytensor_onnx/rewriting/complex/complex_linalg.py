"""Linear algebra of complex matrices."""

from collections.abc import Callable, Iterable, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blas import BatchedDot, Dot22
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.extra_ops import SearchsortedOp
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eig, Eigvalsh
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv, TensorInv
from pytensor.tensor.linalg.products import Expm
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.linear_control import TRSYL, SolveDiscreteARE
from pytensor.tensor.linalg.solvers.lstsq import Lstsq, TensorSolve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.complex.elementary import quotient
from pytensor_onnx.functions.linalg.blocks import symmetric
from pytensor_onnx.functions.linalg.complex_factors import doubled_matrix
from pytensor_onnx.ops.linalg.complex_matrices import (
    OF_PARTS,
    ComplexLstsq,
    HermitianEigh,
    OfParts,
    of_parts,
)
from pytensor_onnx.rewriting.complex.complex_elementwise import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    operand,
    parts_of,
    real_dtype,
)
from pytensor_onnx.rewriting.complex.complex_structure import by_part, search, values_of
from pytensor_onnx.rewriting.engine.walkers import core_op
from pytensor_onnx.rewriting.linalg.matrix_forms import matrix_to_invert, matrix_to_solve

# Linear algebra of complex matrices, by the real matrices of twice the size that stand for them.
#
# A product of the matrices ``[[Re A, -Im A], [Im A, Re A]]`` is the matrix of the product. So
# solutions, inverses and exponentials are those of these matrices, with errors of the same size.
# Factorisations have definitions of their own, imported where few graphs need them.

type Formula = Callable[..., Parts]


def compute(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Return the result of an Op or of its `Blockwise`, or None if the Op has no formula."""
    core = core_op(op)
    if isinstance(core, BlockDiagonal):
        return by_part(op, node, inputs, slice(None))
    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    formula = _FORMULAS.get(type(core))
    if formula is not None:
        return [[joined(formula(core, *given))]]
    if isinstance(core, SVD) and not core.compute_uv:
        return [[Blockwise(core)(doubled_matrix(*given[0]))[..., ::2]]]
    if type(core) not in OF_PARTS:
        return None
    op_of_parts = of_parts(core)
    operands: list[Iterable[TensorVariable]] = [*given]
    for i in op_of_parts.integers:
        operands[i] = inputs[i]
    return results_of_parts(op_of_parts, node, operands)


def results_of_parts(
    op: OfParts, node: Apply, given: Sequence[Iterable[TensorVariable]]
) -> list[Tensors]:
    """Return the results of an Op on parts, one for each output of a node."""
    operands = [part for parts in given for part in parts]
    parts = iter(Blockwise(op)(*operands, return_list=True))
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
    solver = SolveTriangular(lower=op.lower, unit_diagonal=True, b_ndim=op.b_ndim)
    x = Blockwise(solver)(_in_pairs(a), _paired(b, -op.b_ndim))
    rest = (slice(None),) * (op.b_ndim - 1)
    return Parts(*(x[(..., slice(i, None, 2), *rest)] for i in range(2)))


def _quotient(x: Parts, y: Parts) -> Parts:
    return Parts(*quotient(*x, *y))


def _paired(z: Parts, axis: int) -> TensorVariable:
    """Return the parts of each number beside each other along an axis."""
    stacked = pt.stack(list(z), axis=z.real.type.ndim + axis + 1)
    sizes = [z.real.shape[i] for i in range(z.real.type.ndim)]
    sizes[axis] = 2 * sizes[axis]
    return stacked.reshape(sizes)


def _in_pairs(a: Parts) -> TensorVariable:
    """Return real matrices with the blocks ``[[Re z, -Im z], [Im z, Re z]]`` for elements."""
    above, below = (_paired(Parts(*x), -1) for x in ((a.real, -a.imag), (a.imag, a.real)))
    return _paired(Parts(above, below), -2)


def factored(op: Cholesky, a: Parts) -> Parts:
    """Return Cholesky factors, in float64; those of real matrices in pairs stand for them.

    The real factor is unique, so that its blocks have the form of the others. One triangle is read,
    without the imaginary parts of the diagonal, which are rounding errors in the factor. All
    elements are NaN where a matrix is not positive definite.
    """
    dtype = a.real.type.dtype
    is_diagonal = pt.eq(pt.arange(a.real.shape[-2])[:, None], pt.arange(a.real.shape[-1]))
    real, imag = (x.astype("float64") for x in a)
    pairs = _in_pairs(Parts(real, pt.switch(is_diagonal, 0.0, imag)))
    factor = Blockwise(Cholesky(lower=op.lower))(pairs)
    imag = pt.switch(is_diagonal, 0.0, factor[..., 1::2, ::2])
    return Parts(factor[..., ::2, ::2].astype(dtype), imag.astype(dtype))


def _solve_by_cholesky(op: CholeskySolve, factor: Parts, b: Parts) -> Parts:
    lower = factor if op.lower else _adjoint(factor)
    first = solved_triangular(SolveTriangular(lower=True, b_ndim=op.b_ndim), lower, b)
    second = SolveTriangular(lower=False, b_ndim=op.b_ndim)
    return solved_triangular(second, _adjoint(lower), first)


def _adjoint(z: Parts) -> Parts:
    return Parts(z.real.mT, -z.imag.mT)


_FORMULAS: dict[type[Op], Formula] = {
    Cholesky: factored,
    CholeskySolve: _solve_by_cholesky,
    Expm: inverted,
    MatrixInverse: inverted,
    MatrixPinv: _pseudo_inverse,
    Solve: solved,
    SolveTriangular: solved_triangular,
}
# These have rewrites of their own, as results of real matrices are complex too.
_OTHERS = (Eig, QZ, Schur, HermitianEigh, TRSYL)
ENCODING.rewrites(BlockDiagonal, *_FORMULAS, *(op for op in OF_PARTS if op not in _OTHERS))(compute)


@ENCODING.rewrites(Eig, Schur)
def decompose(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Decompose real matrices by PyTensor's Op and complex ones by ours."""
    core = core_op(op)
    if is_complex(node.inputs[0]):
        return compute(op, node, inputs)
    from pytensor_onnx.functions.linalg.eig import real_eig, triangular_schur

    (x,) = inputs[0]
    x = x.astype(real_dtype(*node.outputs))
    parts = real_eig(x) if isinstance(core, Eig) else triangular_schur(x, sort=core.sort)
    return [[joined(Parts(*parts[i : i + 2]))] for i in (0, 2)]


@ENCODING.rewrites(QZ)
def decompose_pencil(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Decompose real matrices by PyTensor's Op and complex ones by ours."""
    core = core_op(op)
    if any(map(is_complex, node.inputs)):
        return compute(op, node, inputs)
    from pytensor_onnx.functions.linalg.qz import real_qz, triangular_qz

    dtype = real_dtype(*node.outputs)
    a, b = (x.astype(dtype) for (x,) in inputs)
    if core.complex_output:
        parts = triangular_qz(a, b, sort=core.sort)
        aa, bb, q, z, alpha = ([joined(Parts(*parts[i : i + 2]))] for i in range(0, 10, 2))
        beta = [joined(Parts(parts[10], pt.zeros_like(parts[10])))]
    else:
        aa, bb, q, z, real, imag, beta = ([x] for x in real_qz(a, b, sort=core.sort))
        alpha = [joined(Parts(real[0], imag[0]))]
    return [aa, bb, alpha, beta, q, z] if core.return_eigenvalues else [aa, bb, q, z]


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
        factor = factored(Cholesky(lower=True), given[1])
        matrix = _divided(matrix, factor)
    if isinstance(core, Eigvalsh):
        return [[_eigenvalues(matrix)]]
    values, *parts = Blockwise(of_parts(HermitianEigh()))(*matrix)
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


@ENCODING.rewrites(TRSYL)
def solve_triangular_sylvester(
    op: Op, node: Apply, inputs: Sequence[Tensors]
) -> Sequence[Tensors] | None:
    """Solve Sylvester's equation of triangular matrices.

    PyTensor reads the upper triangle of a quasi-triangular matrix beside a complex one; here it
    becomes triangular, so that the solution is that of the equation.
    """
    from pytensor_onnx.functions.linalg.eig import triangular_schur

    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    turns: list[Parts | None] = [None, None]
    for i in range(2):
        if not is_complex(node.inputs[i]):
            parts = triangular_schur(given[i].real)
            given[i], turns[i] = Parts(*parts[:2]), Parts(*parts[2:])
    left, right = turns
    if left is not None:
        given[2] = left.adjoint() @ given[2]
    if right is not None:
        given[2] = given[2] @ right
    core = core_op(op)
    ((pairs,),) = results_of_parts(of_parts(core), node, given)
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
    from pytensor_onnx.functions.linalg.equations import discrete_riccati

    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    x = discrete_riccati(*(doubled_matrix(*parts) for parts in given))
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
    """Solve the real systems of twice the size, which have each singular value twice."""
    x, y = (
        whole(operand(v, given, "float64"))
        for v, given in zip(node.inputs[:2], inputs[:2], strict=True)
    )
    both = pt.concatenate(list(y), axis=0)
    solution, residuals, rank, s = Lstsq()(doubled_matrix(*x), both, inputs[2][0])
    dtype = real_dtype(node.outputs[0])
    found = Parts(*(part.astype(dtype) for part in _halves(solution)))
    results = [residuals, rank // 2, s[::2]]
    types = [output.type.dtype for output in node.outputs[1:]]
    return [[joined(found)], *([x.astype(d)] for x, d in zip(results, types, strict=True))]


@ENCODING.rewrites(Dot, Dot22, BatchedDot, Convolve1d, Convolve2d)
def multiply(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the product of the first two operands."""
    return product_of_parts(op, node, inputs, factors=(0, 1))


def product_of_parts(
    op: Op, node: Apply, inputs: Sequence[Tensors], factors: tuple[int, int]
) -> list[Tensors]:
    """Return a product by four real ones, or by two if one factor is real.

    Parameters
    ----------
    factors
        Positions of the factors among the operands.
    """
    i, j = factors
    (a, b), (c, d) = (
        operand(node.inputs[k], inputs[k], real_dtype(*node.outputs)) for k in factors
    )
    arguments = [tensors[0] for tensors in inputs]

    def product(x: TensorVariable, y: TensorVariable) -> TensorVariable:
        arguments[i], arguments[j] = x, y
        return op.make_node(*arguments).outputs[0]

    if not is_complex(node.inputs[i]):
        return [[joined(Parts(product(a, c), product(a, d)))]]
    if not is_complex(node.inputs[j]):
        return [[joined(Parts(product(a, c), product(b, c)))]]
    real = product(a, c) - product(b, d)
    imag = product(a, d) + product(b, c)
    return [[joined(Parts(real, imag))]]


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
