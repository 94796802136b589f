"""Matrices whose eigenvalues and singular values are repeated, clustered, graded or zero."""

import numpy as np

from tests.functions.linalg.matrices import (
    GENERAL,
    Matrices,
    generator,
    random,
    relative,
    symmetric,
    with_eigenvalues,
    with_singular_values,
)

SPECTRA: dict[str, Matrices] = GENERAL | {
    "rank-deficient": lambda n: random(n)[:, : n // 2] @ random(n)[: n // 2],
    "one value": lambda n: np.ones((n, n)),
    "zero": lambda n: np.zeros((n, n)),
    "identity": np.eye,
    "orthogonal": lambda n: with_singular_values(np.ones(n)),
    "repeated": lambda n: with_singular_values(1.0 + np.arange(n) // 4),
    "clustered": lambda n: with_singular_values(1 + 1e-13 * np.arange(n)),
    "graded both ways": lambda n: (
        random(n) * np.logspace(0, -60, n)[:, None] * np.logspace(0, -60, n)
    ),
    "triangular": lambda n: np.triu(random(n)),
    "Jordan block": lambda n: np.eye(n) + np.eye(n, k=1),
    "next to overflow": lambda n: 1e305 * generator(n).uniform(-1, 1, size=(n, n)),
}
"""Matrices without a structure, for factorisations by orthogonal matrices."""


SYMMETRIC: dict[str, Matrices] = {
    **{name: lambda n, make=make: symmetric(make(n)) for name, make in SPECTRA.items()},
    "repeated": lambda n: with_eigenvalues(1.0 + np.arange(n) // 4),
    "clustered": lambda n: with_eigenvalues(1 + 1e-13 * np.arange(n)),
    "indefinite": lambda n: with_eigenvalues(np.linspace(-1, 2, n)),
}
"""Symmetric matrices."""

REGULAR = {name: make for name, make in GENERAL.items() if name != "Wilkinson"}
"""Matrices without a singular one; Wilkinson's of one row is zero."""


def residual(found: np.ndarray, a: np.ndarray) -> float:
    """Return the norm of a difference, relative to that of the matrix."""
    return relative(found - a.astype("longdouble"), a)


def skewness(q: np.ndarray) -> float:
    """Return the norm by which a product of columns differs from the identity."""
    return relative(q.T @ q - np.eye(q.shape[1]))


def wide(*arrays: np.ndarray) -> list[np.ndarray]:
    """Return arrays in a precision in which products add no error to be seen.

    Products of large matrices in long double take seconds.
    """
    is_small = max(array.size for array in arrays) <= 10_000
    return [array.astype("longdouble" if is_small else "float64") for array in arrays]


def assert_errors(found: list[float], lapack: list[float], a: np.ndarray) -> None:
    """Assert that errors are at most ten times LAPACK's, or a rounding error for each row."""
    eps = np.finfo(a.dtype).eps
    for error, expected in zip(found, lapack, strict=True):
        bound = max(10 * max(expected, eps), max(a.shape) * eps)
        assert error <= bound, f"error {error / eps:.3g} eps, LAPACK's {expected / eps:.3g} eps"
