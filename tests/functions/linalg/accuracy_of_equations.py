"""Equations, inverses and functions of matrices, whose errors are measured."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
import scipy.linalg
from pytensor.tensor.linalg.solvers.lstsq import lstsq

from tests.functions.linalg.matrices import (
    POSITIVE,
    Matrices,
    generator,
    relative,
)
from tests.functions.linalg.measured import Arrays, Measured, of_solution
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import REGULAR

BOUNDED: dict[str, Matrices] = {
    name: NONSYMMETRIC[name]
    for name in ("random", "Wilkinson", "orthogonal", "non-normal", "Grcar", "Jordan block", "skew")
}
"""Matrices without tiny and huge elements."""


def _shifted(a: np.ndarray) -> np.ndarray:
    """Return a matrix whose eigenvalues have positive real parts."""
    return a + 3 * np.abs(a).sum(axis=1).max(initial=1) * np.eye(len(a))


def _square(a: np.ndarray) -> np.ndarray:
    return generator(len(a) + 2).normal(size=a.shape)


def _of_equation(a: np.ndarray, b: np.ndarray, x: np.ndarray, c: np.ndarray) -> list[float]:
    """Return the residual of ``a x + x b = c``, relative to the matrices and the solution."""
    first, second, solution = (array.astype("longdouble") for array in (a, b, x))
    residual = first @ solution + solution @ second - c
    return [relative(residual, np.concatenate([a, b]), x)]


def _of_discrete(a: np.ndarray, x: np.ndarray, q: np.ndarray) -> list[float]:
    """Return the residual of ``a x a' - x + q = 0``, relative to the solution."""
    matrix, solution = a.astype("longdouble"), x.astype("longdouble")
    return [relative(matrix @ solution @ matrix.T - solution + q, np.eye(len(a)) + a @ a.T, x)]


def _contraction(a: np.ndarray) -> np.ndarray:
    """Return a matrix whose largest singular value is one half, or zero."""
    return a / (2 * np.linalg.norm(a, 2) or 1) if len(a) else a


def _sylvester(a: np.ndarray, b: np.ndarray) -> Arrays:
    return [scipy.linalg.solve_sylvester(a, a.T @ a, b) if len(a) else a]


def _band(a: np.ndarray) -> np.ndarray:
    return np.tril(np.triu(a, -1), 1)


def _tridiagonal(a: np.ndarray, b: np.ndarray) -> Arrays:
    if len(a) < 2:
        return [b / a if len(a) else b]
    return [scipy.linalg.lapack.dgtsv(np.diag(a, -1), np.diag(a), np.diag(a, 1), b)[3]]


def _cho_errors(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> list[float]:
    factor, solution = a.astype("longdouble"), x.astype("longdouble")
    return [relative(factor @ (factor.T @ solution) - b, a, a, x)]


def _tall(make: Matrices) -> Matrices:
    """Return matrices without every other column."""
    return lambda n: make(n)[:, ::2]


def _of_least_squares(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> list[float]:
    """Return the size of the residual in the space of the columns, relative to its terms."""
    matrix, solution = a.astype("longdouble"), x.astype("longdouble")
    product = matrix.T @ (matrix @ solution - b)
    scale = np.abs(a).max(initial=0) or 1
    return [relative(product, a, np.concatenate([solution * scale, b]))]


def _of_inverse(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> Sequence[float]:
    """Return the errors of Penrose's four equations, relative to their terms."""
    matrix, inverse = a.astype("longdouble"), x.astype("longdouble")
    left, right = inverse @ matrix, matrix @ inverse
    return [
        relative(right @ matrix - matrix, a, x, a),
        relative(left @ inverse - inverse, x, a, x),
        relative(left - left.T, a, x),
        relative(right - right.T, a, x),
    ]


def _determinant(a: np.ndarray) -> tuple[float, np.longdouble]:
    """Return the sign of a determinant and the logarithm of its magnitude, in long double."""
    rest, sign, logarithm = a.astype("longdouble"), 1.0, np.longdouble(0)
    while len(rest):
        pivot = np.abs(rest[:, 0]).argmax()
        if pivot:
            rest[[0, pivot]] = rest[[pivot, 0]]
            sign = -sign
        first = rest[0, 0]
        sign, logarithm = sign * float(np.sign(first)), logarithm + np.log(np.abs(first))
        rest = rest[1:, 1:] - np.outer(rest[1:, 0] / first, rest[0, 1:])
    return sign, logarithm


def _of_determinant(a: np.ndarray, b: np.ndarray, found: np.ndarray) -> list[float]:
    sign, logarithm = _determinant(a)
    exact = sign * np.exp(logarithm)
    with np.errstate(over="ignore"):
        if exact.astype("float64") in (found, -found) and not 0 < np.abs(found) < np.inf:
            return [0.0]
    return [float(np.abs(found / exact - 1))]


def _of_logarithm(a: np.ndarray, b: np.ndarray, *found: np.ndarray) -> list[float]:
    sign, logarithm = _determinant(a)
    error = float(np.abs(found[1] - logarithm) / max(1, np.abs(logarithm)))
    return [error if found[0] == sign else np.inf]


def _det(a: np.ndarray, b: np.ndarray) -> Arrays:
    with np.errstate(over="ignore"):
        return [np.linalg.det(a)]


def _slogdet(a: np.ndarray, b: np.ndarray) -> Arrays:
    return np.linalg.slogdet(a)


def _exponential(a: np.ndarray) -> np.ndarray:
    """Return the exponential in long double, by Taylor's series of a small multiple."""
    halvings = max(int(np.frexp(np.abs(a).sum(axis=1).max(initial=0))[1]) + 3, 0)
    small = a.astype("longdouble") / 2**halvings
    term = total = np.eye(len(a), dtype="longdouble")
    for k in range(1, 15):
        term = term @ small / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


def _small(make: Matrices) -> Matrices:
    """Return matrices with a norm of at most five."""
    return lambda n: 5 * make(n) / max(np.abs(make(n)).sum(axis=1).max(initial=1), 5)


EQUATIONS = [
    Measured(
        "solve, tridiagonal",
        {
            name: lambda n, make=make: _band(make(n))
            for name, make in REGULAR.items()
            if name not in ("graded rows", "graded columns")
        },
        lambda a, b: [pt.linalg.solve(a, b, assume_a="tridiagonal", b_ndim=2)],
        _tridiagonal,
        lambda a, b, x: of_solution(a, x, b),
    ),
    Measured(
        "CholeskySolve",
        {name: lambda n, make=make: np.linalg.cholesky(make(n)) for name, make in POSITIVE.items()},
        lambda a, b: [pt.linalg.cho_solve((a, True), b, b_ndim=2)],
        lambda a, b: [scipy.linalg.cho_solve((a, True), b) if len(a) else b],
        _cho_errors,
    ),
    Measured(
        "Sylvester",
        {name: lambda n, make=make: _shifted(make(n)) for name, make in BOUNDED.items()},
        lambda a, b: [pt.linalg.solve_sylvester(a, a.T @ a, b)],
        _sylvester,
        lambda a, b, x: _of_equation(a, a.T @ a, x, b),
        second=_square,
        largest=100,
    ),
    Measured(
        "Lyapunov",
        {name: lambda n, make=make: _shifted(make(n)) for name, make in BOUNDED.items()},
        lambda a, b: [pt.linalg.solve_continuous_lyapunov(a, b)],
        lambda a, b: [scipy.linalg.solve_continuous_lyapunov(a, b) if len(a) else a],
        lambda a, b, x: _of_equation(a, a.T, x, b),
        second=_square,
        largest=100,
    ),
    Measured(
        "Lyapunov, discrete",
        {name: lambda n, make=make: _contraction(make(n)) for name, make in BOUNDED.items()},
        lambda a, b: [pt.linalg.solve_discrete_lyapunov(a, b)],
        lambda a, b: [
            scipy.linalg.solve_discrete_lyapunov(a, b, method="bilinear") if len(a) else a
        ],
        lambda a, b, x: _of_discrete(a, x, b),
        second=_square,
        largest=100,
    ),
    Measured(
        "Lstsq",
        {name: _tall(make) for name, make in REGULAR.items()},
        lambda a, b: [lstsq(a, b, -1.0)[0]],
        lambda a, b: [np.linalg.lstsq(a, b, -1)[0]],
        _of_least_squares,
    ),
    Measured(
        "Pinv",
        {name: _tall(make) for name, make in REGULAR.items()},
        lambda a, b: [pt.linalg.pinv(a)],
        lambda a, b: [np.linalg.pinv(a)],
        _of_inverse,
    ),
    Measured(
        "Det",
        REGULAR | {"Hilbert": POSITIVE["Hilbert"]},
        lambda a, b: [pt.linalg.det(a)],
        _det,
        _of_determinant,
    ),
    Measured(
        "SLogDet",
        REGULAR | {"Hilbert": POSITIVE["Hilbert"]},
        lambda a, b: pt.linalg.slogdet(a),
        _slogdet,
        _of_logarithm,
    ),
    Measured(
        "Expm",
        {name: _small(NONSYMMETRIC[name]) for name in (*BOUNDED, "nilpotent")},
        lambda a, b: [pt.linalg.expm(a)],
        lambda a, b: [scipy.linalg.expm(a)],
        lambda a, b, x: [relative(x - _exponential(a), _exponential(a))],
        largest=100,
    ),
]
