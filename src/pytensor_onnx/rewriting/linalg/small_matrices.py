"""Linear algebra of small matrices, written out by elements.

The number of rows is known, so that each element is a value of its own: elimination, substitution
and the exchanges of partial pivoting are elementwise operations. These are the algorithms of larger
matrices. Cramer's rule has larger errors (Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., section 1.10.1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import combinations

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.walkers import core_op
from pytensor_onnx.rules import rewrites_nodes

LARGEST = 3
"""Number of rows up to which elements are values of their own."""


@rewrites_nodes(
    [Cholesky, SolveTriangular, CholeskySolve, Solve, MatrixInverse, Det, SLogDet, Blockwise],
    family="linalg",
    purpose="speed",
    identity="solve(a, b) = substitution after elimination, by elements",
    requires="one matrix of at most three rows, a known number",
    measured="benchmarks/NOTES.md",
)
def write_out_small(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Write out an operation on one small matrix of a known number of rows.

    Examples
    --------
    >>> import pytensor
    >>> a, b = pt.dmatrix("a", shape=(2, 2)), pt.dvector("b", shape=(2,))
    >>> f = pytensor.function([a, b], pt.linalg.solve(a, b), mode="ONNX")
    >>> any(isinstance(node.op, Solve) for node in f.maker.fgraph.apply_nodes)
    False
    >>> f([[1.0, 3.0], [2.0, 2.0]], [7.0, 6.0])
    array([1., 2.])
    """
    op = core_op(node.op)
    results = _FORMS[type(op)](op, *node.inputs) if _is_small(node) else None
    return None if results is None else _as_results(node, results)


def _as_results(node: Apply, results: list[TensorVariable]) -> list[Variable]:
    """Return new results of a node with the types of the old ones."""
    copy_stack_trace(node.outputs, results)
    return [
        old.type.filter_variable(new, allow_convert=True)
        for old, new in zip(node.outputs, results, strict=True)
    ]


def _is_small(node: Apply) -> bool:
    """Return whether a node has one small matrix, and operands with as many rows."""
    op = core_op(node.op)
    if type(op) not in _FORMS:
        return False
    matrix, *others = (x.type for x in node.inputs)
    n = matrix.shape[0] if matrix.ndim == 2 else None
    return (
        n is not None
        and 1 <= n <= LARGEST
        and matrix.shape == (n, n)
        and all(x.ndim == op.b_ndim and x.shape[0] == n for x in others)
        and matrix.dtype in ("float32", "float64")
        and all(x.type.dtype == matrix.dtype for x in (*node.inputs, *node.outputs))
    )


def _cholesky(op: Cholesky, a: TensorVariable) -> list[TensorVariable]:
    n = a.type.shape[0]
    factor = factor_elements(elements_of(a, 1), lower=op.lower)
    zero = pt.constant(np.zeros(1, a.type.dtype))
    rows = [
        factor[max(i, j)][min(i, j)] if (i >= j if op.lower else i <= j) else zero
        for i in range(n)
        for j in range(n)
    ]
    whole = pt.concatenate(rows).reshape((n, n))
    return [pt.switch(is_definite(factor, whole), whole, nan_like(whole))]


def _solve_triangular(
    op: SolveTriangular, a: TensorVariable, b: TensorVariable
) -> list[TensorVariable]:
    elements = elements_of(a, op.b_ndim)
    x = substituted(elements, rows_of(b), lower=op.lower, unit=op.unit_diagonal)
    return [x if op.unit_diagonal else pt.switch(is_singular(elements, b), nan_like(x), x)]


def _cholesky_solve(
    op: CholeskySolve, c: TensorVariable, b: TensorVariable
) -> list[TensorVariable]:
    elements = elements_of(c, op.b_ndim)
    factor = elements if op.lower else transposed(elements)
    x = solved_by_factor(factor, rows_of(b))
    return [pt.switch(is_singular(factor, b), nan_like(x), x)]


def _solve(op: Solve, a: TensorVariable, b: TensorVariable) -> list[TensorVariable] | None:
    elements = elements_of(a, op.b_ndim)
    if op.assume_a == "pos":
        return solved_if_definite(factor_elements(elements, lower=op.lower), b)
    if op.assume_a in ("sym", "her"):
        elements = symmetric(elements, lower=op.lower)
    elif op.assume_a != "gen":
        return None
    # The quotient of two zeros makes all unknowns NaN, as the matrix is singular.
    upper, rows, _ = eliminated(elements, rows_of(b), guard_zeros=False)
    pivot = upper[-1][-1]
    upper[-1][-1] = pt.switch(pt.eq(pivot, np.array(0, a.type.dtype)), nan_like(a), pivot)
    return [substituted(upper, rows, lower=False)]


def _inverse(op: MatrixInverse, a: TensorVariable) -> list[TensorVariable]:
    n = a.type.shape[0]
    unit = [pt.constant(row[None]) for row in np.eye(n, dtype=a.type.dtype)]
    upper, rows, _ = eliminated(elements_of(a, 2), unit)
    inverse = substituted(upper, rows, lower=False)
    regular = pt.invert(is_singular(upper, upper[0][0]).squeeze())
    return [CheckAndRaise(np.linalg.LinAlgError, "Singular matrix")(inverse, regular)]


def _det(op: Det, a: TensorVariable) -> list[TensorVariable] | None:
    # Two factors are out of the range of floats only if their product is, three may be before.
    if a.type.shape[0] > 2:
        return None
    if a.type.shape[0] == 1:
        return [a[0, 0]]
    upper, _, swapped = eliminated(elements_of(a, 1), [])
    product = upper[0][0] * upper[1][1]
    return [pt.switch(swapped[0], -product, product)[0]]


def _slogdet(op: SLogDet, a: TensorVariable) -> list[TensorVariable]:
    upper, _, swapped = eliminated(elements_of(a, 1), [])
    pivots = pt.concatenate([upper[i][i] for i in range(len(upper))])
    sign = pt.sign(pivots).prod()
    for exchanged in swapped:
        sign = pt.switch(exchanged[0], -sign, sign)
    return [sign, pt.log(pt.abs(pivots)).sum()]


_FORMS: dict[type[Op], Callable[..., list[TensorVariable] | None]] = {
    Cholesky: _cholesky,
    SolveTriangular: _solve_triangular,
    CholeskySolve: _cholesky_solve,
    Solve: _solve,
    MatrixInverse: _inverse,
    Det: _det,
    SLogDet: _slogdet,
}


Elements = list[list[TensorVariable]]
"""The elements of a matrix by rows, each an array of one element."""


def elements_of(a: TensorVariable, ndim: int) -> Elements:
    """Return the elements of a matrix as arrays for operations on values of a given rank.

    The elements are vectors, unless the matrix has one element and the rank is two.
    """
    n = a.type.shape[0]
    if n == 1:
        return [[a if ndim == 2 else a[0]]]
    rows = _joined(a)
    if rows is not None:
        return [rows_of(_vector(row)) for row in rows]
    elements = pt.split(a.reshape((n * n,)), [1] * (n * n), n_splits=n * n, axis=0)
    return [elements[i * n : (i + 1) * n] for i in range(n)]


def rows_of(b: TensorVariable) -> list[TensorVariable]:
    """Return the rows of right-hand sides, each with a first axis of size one."""
    n = b.type.shape[0]
    return [b] if n == 1 else _joined(b) or pt.split(b, [1] * n, n_splits=n, axis=0)


def _joined(x: TensorVariable) -> list[TensorVariable] | None:
    """Return the rows from which an array was joined, None if not joined or of several dtypes."""
    node = x.owner
    if node is None or not isinstance(node.op, MakeVector | Join):
        return None
    if any(row.type.dtype != x.type.dtype for row in node.inputs):
        return None
    if isinstance(node.op, MakeVector):
        return [number[None] for number in node.inputs]
    is_by_rows = node.op.axis == 0 and all(row.type.shape[0] == 1 for row in node.inputs)
    return node.inputs if is_by_rows else None


def _vector(row: TensorVariable) -> TensorVariable:
    """Return the only row of a matrix, or the vector that was expanded to the matrix."""
    node = row.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.op.new_order == ("x", 0):
        return node.inputs[0]
    return row[0]


def _beside(x: TensorVariable, row: TensorVariable) -> TensorVariable:
    """Return one element of a row as an array with the rank of the row."""
    return x[None] if x.type.ndim < row.type.ndim else x


def transposed(a: Elements) -> Elements:
    """Return the elements of a transposed matrix."""
    return [list(column) for column in zip(*a, strict=True)]


def symmetric(a: Elements, *, lower: bool) -> Elements:
    """Return the elements of a symmetric matrix, read from one triangle."""
    places = range(len(a))
    return [
        [a[max(i, j)][min(i, j)] if lower else a[min(i, j)][max(i, j)] for j in places]
        for i in places
    ]


def factor_elements(a: Elements, *, lower: bool) -> Elements:
    """Return the lower triangle of a Cholesky factor, read from one triangle of a matrix."""
    factor: Elements = []
    for i, row in enumerate(symmetric(a, lower=lower)):
        found: list[TensorVariable] = []
        for j in range(i + 1):
            rest = row[j]
            for k in range(j):
                rest = rest - found[k] * (found[k] if i == j else factor[j][k])
            found.append(pt.sqrt(rest) if i == j else rest / factor[j][j])
        factor.append(found)
    return factor


def is_definite(factor: Elements, like: TensorVariable) -> TensorVariable:
    """Return whether a matrix is positive definite, by its Cholesky factor.

    A root that is zero or NaN makes the ones after it NaN.
    """
    last = factor[-1][-1]
    return _beside(pt.gt(last, np.array(0, last.type.dtype)), like)


def is_singular(a: Elements, like: TensorVariable) -> TensorVariable:
    """Return whether an element on the diagonal is zero."""
    zeros = [pt.eq(row[i], np.array(0, row[i].type.dtype)) for i, row in enumerate(a)]
    return _beside(reduce(pt.or_, zeros), like)


def solved_if_definite(factor: Elements, b: TensorVariable) -> list[TensorVariable]:
    """Return the solution of a system with a Cholesky factor, NaN where there is no factor."""
    x = solved_by_factor(factor, rows_of(b))
    return [pt.switch(is_definite(factor, b), x, nan_like(x))]


def solved_by_factor(factor: Elements, b: list[TensorVariable]) -> TensorVariable:
    """Return the solution of a system with a Cholesky factor."""
    first = _substitute(factor, b, lower=True)
    padded = [row + row[:1] * (len(factor) - len(row)) for row in factor]
    return substituted(transposed(padded), first, lower=False)


def substituted(
    a: Elements, b: list[TensorVariable], *, lower: bool, unit: bool = False
) -> TensorVariable:
    """Return the solution of a triangular system as one array."""
    x = _substitute(a, b, lower=lower, unit=unit)
    return x[0] if len(x) == 1 else pt.concatenate(x, axis=0)


def _substitute(
    a: Elements, b: list[TensorVariable], *, lower: bool, unit: bool = False
) -> list[TensorVariable]:
    """Return the rows of the solution of a triangular system."""
    n = len(b)
    found: dict[int, TensorVariable] = {}
    for i in range(n) if lower else reversed(range(n)):
        rest = b[i]
        for j, x in found.items():
            rest = rest - _beside(a[i][j], x) * x
        found[i] = rest if unit else rest / _beside(a[i][i], rest)
    return [found[i] for i in range(n)]


def eliminated(
    a: Elements, b: list[TensorVariable], *, guard_zeros: bool = True
) -> tuple[Elements, list[TensorVariable], list[TensorVariable]]:
    """Eliminate by partial pivoting; return the upper triangle, right-hand sides and exchanges.

    Exchanges of two rows bring the largest magnitude of a column to the diagonal; each is a boolean
    that tells whether it took place. With
    ``guard_zeros``, a column of zeros has multipliers of zero.
    """
    a, b, n = [list(row) for row in a], list(b), len(a)
    swapped = []
    for i, k in combinations(range(n), 2):
        if k == i + 1:
            for below in range(k, n):
                exchange = pt.abs(a[below][i]) > pt.abs(a[i][i])
                swapped.append(exchange)
                for j in range(i, n):
                    a[i][j], a[below][j] = _exchanged(exchange, a[i][j], a[below][j])
                if b:
                    b[i], b[below] = _exchanged(exchange, b[i], b[below])
        multiplier = a[k][i] / (_not_zero(a[i][i]) if guard_zeros else a[i][i])
        for j in range(i + 1, n):
            a[k][j] = a[k][j] - multiplier * a[i][j]
        if b:
            b[k] = b[k] - _beside(multiplier, b[i]) * b[i]
    return a, b, swapped


def _exchanged(
    exchange: TensorVariable, x: TensorVariable, y: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    exchange = _beside(exchange, x)
    return pt.switch(exchange, y, x), pt.switch(exchange, x, y)


def _not_zero(pivot: TensorVariable) -> TensorVariable:
    """Return a pivot plus the smallest positive number, which replaces zero."""
    return pivot + np.finfo(pivot.type.dtype).smallest_subnormal


def nan_like(x: TensorVariable) -> np.ndarray:
    """Return NaN in the dtype of a value."""
    return np.array(np.nan, x.type.dtype)
