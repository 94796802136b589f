"""Factorisations and solvers whose backward errors are measured beside LAPACK's, one row each.

A row of the table is a `Measured` of `MEASURED` and a class of matrices; a new one is one more
entry of a list. Norms are those of Frobenius, and errors of products of large matrices are
computed in float64.
"""

from typing import Any

import numpy as np
import pytensor.tensor as pt
import scipy.linalg

from tests.functions.linalg.accuracy_of_equations import EQUATIONS
from tests.functions.linalg.accuracy_of_spectra import EIGENVALUES
from tests.functions.linalg.matrices import POSITIVE
from tests.functions.linalg.measured import Arrays, Measured, of_product, of_solution
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import REGULAR, SPECTRA, SYMMETRIC, skewness

SIZES = (0, 1, 2, 3, 10, 33, 100, 300)
SHOWN = (3, 33, 100, 300)
"""Sizes in the table of the documentation."""

NON_NORMAL = {
    name: NONSYMMETRIC[name] for name in ("non-normal", "Grcar", "Frank", "turned nilpotent")
}


def _lower(a: np.ndarray) -> np.ndarray:
    """Return the transposed U of the LU factors of a matrix."""
    return scipy.linalg.lu(a)[2].T if len(a) else a


def _solved(**options: Any) -> dict[str, Any]:
    return {
        "graph": lambda a, b: [pt.linalg.solve(a, b, b_ndim=2, **options)],
        "lapack": lambda a, b: [scipy.linalg.solve(a, b, **options) if len(a) else b],
        "errors": lambda a, b, x: of_solution(a, x, b),
    }


def _lu(a: np.ndarray, b: np.ndarray) -> Arrays:
    return scipy.linalg.lu(a) if len(a) else [a, a, a]


def _economic_svd(a: np.ndarray, b: np.ndarray) -> Arrays:
    return scipy.linalg.svd(a, full_matrices=False, lapack_driver="gesvd")


MEASURED = [
    Measured(
        "Cholesky",
        POSITIVE,
        lambda a, b: [pt.linalg.cholesky(a)],
        lambda a, b: [np.linalg.cholesky(a)],
        lambda a, b, factor: [of_product(a, factor, factor.T)],
    ),
    Measured("solve, positive definite", POSITIVE, **_solved(assume_a="pos")),
    Measured(
        "solve",
        REGULAR | {name: NONSYMMETRIC[name] for name in ("triangular", "Grcar", "Frank")},
        **_solved(),
    ),
    Measured("solve, symmetric", {k: SYMMETRIC[k] for k in REGULAR}, **_solved(assume_a="sym")),
    Measured(
        "solve, triangular",
        {name: lambda n, make=make: _lower(make(n)) for name, make in REGULAR.items()},
        lambda a, b: [pt.linalg.solve_triangular(a, b, lower=True, b_ndim=2)],
        lambda a, b: [scipy.linalg.solve_triangular(a, b, lower=True) if len(a) else b],
        lambda a, b, x: of_solution(a, x, b),
    ),
    Measured(
        "LU",
        {**SPECTRA, **NON_NORMAL},
        lambda a, b: pt.linalg.lu(a),
        _lu,
        lambda a, b, p, lower, upper: [of_product(a, p, lower, upper)],
    ),
    Measured(
        "QR",
        {**SPECTRA, **NON_NORMAL},
        lambda a, b: pt.linalg.qr(a),
        lambda a, b: np.linalg.qr(a),
        lambda a, b, q, r: [of_product(a, q, r), skewness(q)],
    ),
    Measured(
        "Eigh",
        SYMMETRIC,
        lambda a, b: pt.linalg.eigh(a),
        lambda a, b: np.linalg.eigh(a),
        lambda a, b, w, v: [of_product(a, v * w, v.T), skewness(v)],
    ),
    Measured(
        "SVD",
        {**SPECTRA, **NON_NORMAL},
        lambda a, b: pt.linalg.svd(a, full_matrices=False),
        _economic_svd,
        lambda a, b, u, s, v: [of_product(a, u * s, v), skewness(u), skewness(v.T)],
    ),
    *EIGENVALUES,
    *EQUATIONS,
]
