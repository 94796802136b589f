"""Write out factorisations and solutions of single matrices with at most three rows.

The number of rows is known, so that each element is a value of its own: elimination, substitution
and the exchanges of partial pivoting are elementwise operations. These are the algorithms of larger
matrices. Cramer's rule has larger errors (Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., section 1.10.1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.linalg.small_elements import (
    elements_of,
    eliminated,
    factor_elements,
    is_definite,
    is_singular,
    nan_like,
    rows_of,
    solved_by_factor,
    solved_if_definite,
    substituted,
    symmetric,
    transposed,
)
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
