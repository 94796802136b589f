"""Factorisations and solvers whose backward errors are measured beside LAPACK's, one row each.

A row of the table is a `Measured` of `MEASURED` and a class of matrices; a new one is one more
entry of the list. Norms are those of Frobenius, and errors of products of large matrices are
computed in float64.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.functions.linalg.matrices import (
    FACTOR,
    GENERAL,
    POSITIVE,
    Matrices,
    generator,
    relative,
    symmetric,
    with_eigenvalues,
)
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import SPECTRA, skewness, wide

SIZES = (0, 1, 2, 3, 10, 33, 100, 300)
SHOWN = (3, 33, 100, 300)
"""Sizes in the table of the documentation."""

Arrays = Sequence[np.ndarray]
NON_NORMAL = {
    name: NONSYMMETRIC[name] for name in ("non-normal", "Grcar", "Frank", "turned nilpotent")
}
SYMMETRIC: dict[str, Matrices] = {
    **{name: lambda n, make=make: symmetric(make(n)) for name, make in SPECTRA.items()},
    "repeated": lambda n: with_eigenvalues(1.0 + np.arange(n) // 4),
    "clustered": lambda n: with_eigenvalues(1 + 1e-13 * np.arange(n)),
    "indefinite": lambda n: with_eigenvalues(np.linspace(-1, 2, n)),
}
REGULAR = {name: make for name, make in GENERAL.items() if name != "Wilkinson"}
"""Matrices of which none is singular; Wilkinson's of one row is zero."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A factorisation or a solver.

    Attributes
    ----------
    name
        First cell of its rows.
    classes
        Matrices by the names of their classes.
    graph
        Results in PyTensor, of a matrix and a matrix of right-hand sides.
    lapack
        The same results by LAPACK.
    errors
        Backward errors and losses of orthogonality of results, of which the largest counts.
    """

    name: str
    classes: dict[str, Matrices]
    graph: Callable[..., Sequence[pt.TensorVariable]]
    lapack: Callable[..., Arrays]
    errors: Callable[..., Sequence[float]]

    @cache  # noqa: B019  (a list of the module holds all of them)
    def compiled(self) -> Callable[..., list[np.ndarray]]:
        """Return the function of a file of dynamic sizes."""
        a, b = pt.matrix("a"), pt.matrix("b")
        return compile_onnx([a, b], list(self.graph(a, b)), verify=False)

    def measure(self, name: str, n: int) -> tuple[float, float]:
        """Return the error of the file, and LAPACK's, for a class of matrices and a size."""
        a = np.asarray(self.classes[name](n), "float64")
        b = generator(n).normal(size=(len(a), 2))
        found, expected = self.compiled()(a, b), self.lapack(a, b)
        # Unlike `max`, this returns NaN wherever it stands.
        ours, lapacks = (
            float(np.max(self.errors(a, b, *results))) for results in (found, expected)
        )
        return ours, lapacks


def bound(lapacks: float) -> float:
    """Return the largest error that is allowed beside LAPACK's, which may be exact by chance."""
    return FACTOR * max(lapacks, np.finfo("float64").eps)


def _of_product(a: np.ndarray, *factors: np.ndarray) -> float:
    first, *others = wide(*factors)
    for factor in others:
        first = first @ factor
    return relative(first - a, a)


def _of_solution(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> list[float]:
    matrix, solution, sides = (array.astype("longdouble") for array in (a, x, b))
    return [relative(matrix @ solution - sides, a, x)]


def _lower(a: np.ndarray) -> np.ndarray:
    """Return the transposed U of the LU factors of a matrix."""
    return scipy.linalg.lu(a)[2].T if len(a) else a


def _solved(**options: Any) -> dict[str, Any]:
    return {
        "graph": lambda a, b: [pt.linalg.solve(a, b, b_ndim=2, **options)],
        "lapack": lambda a, b: [scipy.linalg.solve(a, b, **options) if len(a) else b],
        "errors": lambda a, b, x: _of_solution(a, x, b),
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
        lambda a, b, factor: [_of_product(a, factor, factor.T)],
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
        lambda a, b, x: _of_solution(a, x, b),
    ),
    Measured(
        "LU",
        {**SPECTRA, **NON_NORMAL},
        lambda a, b: pt.linalg.lu(a),
        _lu,
        lambda a, b, p, lower, upper: [_of_product(a, p, lower, upper)],
    ),
    Measured(
        "QR",
        {**SPECTRA, **NON_NORMAL},
        lambda a, b: pt.linalg.qr(a),
        lambda a, b: np.linalg.qr(a),
        lambda a, b, q, r: [_of_product(a, q, r), skewness(q)],
    ),
    Measured(
        "Eigh",
        SYMMETRIC,
        lambda a, b: pt.linalg.eigh(a),
        lambda a, b: np.linalg.eigh(a),
        lambda a, b, w, v: [_of_product(a, v * w, v.T), skewness(v)],
    ),
    Measured(
        "SVD",
        {**SPECTRA, **NON_NORMAL},
        lambda a, b: pt.linalg.svd(a, full_matrices=False),
        _economic_svd,
        lambda a, b, u, s, v: [_of_product(a, u * s, v), skewness(u), skewness(v.T)],
    ),
]
