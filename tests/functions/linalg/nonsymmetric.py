"""Matrices whose eigenvalues are complex, repeated or ill-conditioned."""

import numpy as np
import scipy.linalg

from tests.functions.linalg.matrices import Matrices, random
from tests.functions.linalg.spectra import SPECTRA


def turned(a: np.ndarray) -> np.ndarray:
    """Return a matrix with the same eigenvalues, in a random orthogonal basis."""
    basis = np.linalg.qr(random(len(a)))[0]
    return basis @ a @ basis.T


def pairs(n: int) -> np.ndarray:
    """Return blocks of two rows with the eigenvalues 1 ± 2i."""
    return np.kron(np.eye(n // 2 + 1), [[1.0, 2.0], [-2.0, 1.0]])[:n, :n]


def companion(n: int) -> np.ndarray:
    """Return the companion matrix of a random polynomial."""
    return np.eye(n, k=-1) + np.eye(n)[:, :1] * random(n)[:1]


NONSYMMETRIC: dict[str, Matrices] = SPECTRA | {
    "lower Jordan block": lambda n: np.eye(n) + np.eye(n, k=-1),
    "turned Jordan block": lambda n: turned(np.eye(n) + np.eye(n, k=1)),
    "nilpotent": lambda n: np.eye(n, k=-1),
    "turned nilpotent": lambda n: turned(np.triu(random(n), 1)),
    "cyclic": lambda n: np.eye(n, k=-1) + np.eye(n, k=n - 1),
    "companion": companion,
    "Wilkinson's polynomial": lambda n: (
        scipy.linalg.companion(np.poly(np.arange(1, n + 1))) if n > 1 else np.ones((n, n))
    ),
    "skew": lambda n: random(n) - random(n).T,
    "orthogonal with both signs": lambda n: np.linalg.qr(random(n))[0],
    "repeated pairs": lambda n: turned(pairs(n)),
    "non-normal": lambda n: turned(np.diag(np.arange(n) / 10) + 10 * np.triu(random(n), 1)),
    "Frank": lambda n: np.fromfunction(
        lambda i, j: np.where(j < i - 1, 0, n - np.maximum(i, j)), (n, n)
    ),
    "Grcar": lambda n: np.tri(n, k=3) - np.tri(n, k=-1) - np.eye(n, k=-1),
}
"""Matrices without a structure, for eigenvalues that may be complex."""

HARD = ("random", "turned Jordan block", "companion", "non-normal", "Grcar", "Frank")
"""Classes that tests of every run take; Schur decompositions take all classes in a batch too."""
