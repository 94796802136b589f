"""Linear algebra of complex matrices, by the real matrices of twice the size that stand for them.

A product of the matrices ``[[Re A, -Im A], [Im A, Re A]]`` is the matrix of the product. So
solutions, inverses and exponentials are those of these matrices, with errors of the same size.
"""

from collections.abc import Callable, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
from pytensor.tensor.linalg.products import Expm
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops import complex_numbers as ops
from pytensor_onnx.rewriting.complex_numbers.parts import (
    ENCODING,
    Parts,
    joined,
    operand,
    real_dtype,
)
from pytensor_onnx.rewriting.complex_numbers.structure import by_part

type Formula = Callable[..., Parts]


def compute(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Return the result of an Op, or of the batch of one, and None if it has no formula."""
    core = getattr(op, "core_op", op)
    if isinstance(core, BlockDiagonal):
        return by_part(op, node, inputs, slice(None))
    formula = _FORMULAS.get(type(core))
    if formula is None:
        return None
    dtype = real_dtype(*node.inputs, *node.outputs)
    given = [_whole(operand(v, x, dtype)) for v, x in zip(node.inputs, inputs, strict=True)]
    return [[joined(formula(core, *given))]]


def _whole(z: Parts) -> Parts:
    """Return parts of equal shapes; the imaginary one of a real operand is a number."""
    if z.imag.type.ndim == z.real.type.ndim:
        return z
    return Parts(z.real, pt.zeros_like(z.real) + z.imag)


def _doubled(z: Parts) -> TensorVariable:
    """Return the real matrices of twice the size."""
    above = pt.concatenate([z.real, -z.imag], axis=-1)
    below = pt.concatenate([z.imag, z.real], axis=-1)
    return pt.concatenate([above, below], axis=-2)


def _halves(x: TensorVariable, axis: int = -2) -> Parts:
    """Return the parts of numbers that stand one after the other along an axis."""
    n = x.shape[axis] // 2
    rest = (slice(None),) * (-axis - 1)
    return Parts(x[(..., slice(None, n), *rest)], x[(..., slice(n, None), *rest)])


def _first_columns(x: TensorVariable, count: TensorVariable) -> Parts:
    return _halves(x[..., :count])


def _inverse(op: MatrixInverse, a: Parts) -> Parts:
    return _first_columns(Blockwise(op)(_doubled(a)), a.real.shape[-1])


def _pseudo_inverse(op: MatrixPinv, a: Parts) -> Parts:
    return _first_columns(Blockwise(op)(_doubled(a)), a.real.shape[-2])


def _solve(op: Solve, a: Parts, b: Parts) -> Parts:
    """Return solutions of systems; the other triangle of a symmetric matrix is not read."""
    kind = op.assume_a
    if kind in ("sym", "her", "pos"):
        index = pt.arange(a.real.shape[-1])
        row, column = index[:, None], index
        is_given = pt.ge(row, column) if op.lower else pt.le(row, column)
        other = a.imag.mT if kind == "sym" else -a.imag.mT
        a = Parts(pt.switch(is_given, a.real, a.real.mT), pt.switch(is_given, a.imag, other))
        if kind != "sym":
            a = Parts(a.real, pt.switch(pt.eq(row, column), 0, a.imag))
    elif kind == "tridiagonal":
        index = pt.arange(a.real.shape[-1])
        is_near = pt.le(pt.abs(index[:, None] - index), 1)
        a = Parts(*(pt.switch(is_near, x, 0) for x in a))
    solver = Solve(assume_a="pos" if kind == "pos" else "gen", b_ndim=op.b_ndim)
    both = pt.concatenate(b, axis=-op.b_ndim)
    return _halves(Blockwise(solver)(_doubled(a), both), -op.b_ndim)


def _solve_triangular(op: SolveTriangular, a: Parts, b: Parts) -> Parts:
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
    stacked = pt.stack(z, axis=z.real.type.ndim + axis + 1)
    sizes = [z.real.shape[i] for i in range(z.real.type.ndim)]
    sizes[axis] = 2 * sizes[axis]
    return stacked.reshape(sizes)


def _solve_by_cholesky(op: CholeskySolve, factor: Parts, b: Parts) -> Parts:
    lower = factor if op.lower else _adjoint(factor)
    first = _solve_triangular(SolveTriangular(lower=True, b_ndim=op.b_ndim), lower, b)
    second = SolveTriangular(lower=False, b_ndim=op.b_ndim)
    return _solve_triangular(second, _adjoint(lower), first)


def _adjoint(z: Parts) -> Parts:
    return Parts(z.real.mT, -z.imag.mT)


_FORMULAS: dict[type[Op], Formula] = {
    CholeskySolve: _solve_by_cholesky,
    Expm: _inverse,
    MatrixInverse: _inverse,
    MatrixPinv: _pseudo_inverse,
    Solve: _solve,
    SolveTriangular: _solve_triangular,
}
ENCODING.rewrites(BlockDiagonal, *_FORMULAS)(compute)
