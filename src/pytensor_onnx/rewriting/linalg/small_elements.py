"""Factorise and solve with the elements of a small matrix, each an array of one element."""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorVariable

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
