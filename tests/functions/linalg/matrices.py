"""Classes of matrices on which errors of linear algebra are measured, and these errors.

An error counts as no larger than LAPACK's up to ten times LAPACK's, taken as at least one rounding
error is assumed: LAPACK is exact by chance for small matrices.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg

Matrices = Callable[[int], np.ndarray]

FACTOR = 10
SIZES = (0, 1, 2, 3, 10, 11, 16, 17, 25, 26, 50, 64, 100)
LARGE = (200, 300)


def generator(n: int) -> np.random.Generator:
    """Return the generator that all matrices of a size are made with."""
    return np.random.default_rng(n + 1)


def with_singular_values(values: np.ndarray) -> np.ndarray:
    """Return a matrix of random singular vectors."""
    n = len(values)
    left, right = (np.linalg.qr(a)[0] for a in generator(n).normal(size=(2, n, n)))
    return (left * values) @ right.T


def with_eigenvalues(values: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix of random eigenvectors."""
    n = len(values)
    vectors = np.linalg.qr(generator(n).normal(size=(n, n)))[0]
    return symmetric((vectors * values) @ vectors.T)


def symmetric(a: np.ndarray) -> np.ndarray:
    """Return the lower triangle of a matrix, repeated above the diagonal."""
    return np.tril(a) + np.tril(a, -1).T


def random(n: int) -> np.ndarray:
    """Return a matrix of normal numbers."""
    return generator(n).normal(size=(n, n))


def grades(n: int) -> np.ndarray:
    """Return scales of rows from 1 to 1e-10."""
    return np.logspace(0, -10, n)


def random_positive(n: int) -> np.ndarray:
    """Return a product of a random matrix and its transpose, made well-conditioned."""
    a = random(n)
    return symmetric(a @ a.T / max(n, 1) + np.eye(n))


POSITIVE: dict[str, Matrices] = {
    "random": random_positive,
    "ill-conditioned": lambda n: with_eigenvalues(np.logspace(0, -12, n)),
    "graded": lambda n: random_positive(n) * grades(n)[:, None] * grades(n),
    "graded upwards": lambda n: random_positive(n) * grades(n)[::-1, None] * grades(n)[::-1],
    "Hilbert": lambda n: scipy.linalg.hilbert(n) if n <= 10 else scipy.linalg.hilbert(10),
    "large": lambda n: 1e150 * random_positive(n),
    "small": lambda n: 1e-150 * random_positive(n),
}
"""Symmetric positive definite matrices."""

NOT_POSITIVE: dict[str, Matrices] = {
    "indefinite": lambda n: with_eigenvalues(np.linspace(-1, 2, n)),
    "negative": lambda n: -random_positive(n),
    "zero": lambda n: np.zeros((n, n)),
    "last pivot": lambda n: random_positive(n) - 1e3 * np.diag(np.arange(n) == n - 1),
}
"""Symmetric matrices without a Cholesky factor."""

GENERAL: dict[str, Matrices] = {
    "random": random,
    "ill-conditioned": lambda n: with_singular_values(np.logspace(0, -12, n)),
    "graded rows": lambda n: random(n) * grades(n)[:, None],
    "graded columns": lambda n: random(n) * grades(n),
    "Hilbert": scipy.linalg.hilbert,
    "indefinite": lambda n: with_eigenvalues(np.linspace(-1, 2, n)),
    "Wilkinson": lambda n: np.diag(np.abs(np.arange(n) - (n - 1) / 2)) + off_diagonals(n),
    "large": lambda n: 1e150 * random(n),
    "small": lambda n: 1e-150 * random(n),
}
"""Matrices without a structure."""


def off_diagonals(n: int) -> np.ndarray:
    """Return ones beside the diagonal."""
    return np.eye(n, k=1) + np.eye(n, k=-1)


def relative(residual: np.ndarray, *scales: np.ndarray) -> float:
    """Return the norm of a residual divided by those of arrays, zero for empty arrays.

    All are brought to a scale near one first, so that no square overflows.
    """
    norm = float(np.prod([_norm(scale) for scale in scales]))
    return _norm(residual) / norm if norm else _norm(residual)


def _norm(a: np.ndarray) -> np.longdouble:
    return np.sqrt(np.sum(np.abs(np.asarray(a, np.result_type(a, "longdouble"))) ** 2))


def assert_as_small(found: float, lapack: float, dtype: str = "float64") -> None:
    """Assert that an error is at most ten times LAPACK's, and at most that of ten roundings."""
    bound = FACTOR * max(lapack, np.finfo(dtype).eps)
    assert found <= bound, f"error {found:.2g}, LAPACK's {lapack:.2g}"


def residual(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """Return the norm of ``a @ x - b``, divided by those of its terms."""
    wide = [array.astype(np.result_type(array, "longdouble")) for array in (a, x, b)]
    return relative(wide[0] @ wide[1] - wide[2], a, x)
