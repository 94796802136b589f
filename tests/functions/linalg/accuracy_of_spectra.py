"""Eigenvalue problems and factors that reveal the rank, whose errors are measured."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
import scipy.linalg

from tests.functions.linalg.matrices import generator, random_positive, relative
from tests.functions.linalg.measured import Arrays, Measured, of_product
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import SPECTRA, SYMMETRIC, skewness


def _scaled(a: np.ndarray) -> np.ndarray:
    """Return a matrix whose largest element is near one, by a power of two."""
    return a * np.ldexp(1.0, -np.frexp(np.abs(a).max(initial=0))[1])


def _pair_errors(a: np.ndarray, w: np.ndarray, v: np.ndarray) -> list[float]:
    """Return the residual of eigenvalues and eigenvectors, and the error of their lengths."""
    unit = np.ldexp(1.0, -np.frexp(np.abs(a).max(initial=0))[1])
    difference = (a * unit).astype("longdouble") @ v - v * (w * unit).astype("clongdouble")
    parts, both = (np.stack([x.real, x.imag]) for x in (difference, v))
    lengths = np.sqrt((both.astype("longdouble") ** 2).sum(axis=(0, 1)))
    return [relative(parts, a * unit, both), float(np.abs(lengths - 1).max(initial=0))]


def _value_error(a: np.ndarray, w: np.ndarray) -> list[float]:
    """Return the error of the eigenvalues of a symmetric matrix.

    The Rayleigh quotients of eigenvectors with an error ε have one of ε².
    """
    vectors = np.linalg.eigh(a)[1].astype("longdouble")
    products = (vectors * (a.astype("longdouble") @ vectors)).sum(axis=0)
    return [relative(w - np.sort(products / (vectors**2).sum(axis=0)), a)]


def _generalised_errors(a: np.ndarray, b: np.ndarray, w: np.ndarray, v: np.ndarray) -> list[float]:
    """Return the residual, and the error of products of eigenvectors, which are b-orthogonal."""
    both = np.concatenate([_scaled(a), b * np.abs(_scaled(w)).max(initial=0)])
    unit = np.ldexp(1.0, -np.frexp(np.abs(a).max(initial=0))[1])
    residual = _scaled(a) @ v - b @ (v * (w * unit))
    return [relative(residual, both, v), relative(v.T @ b @ v - np.eye(len(a)), v, v, b)]


def _pencil_errors(a: np.ndarray, b: np.ndarray, *results: np.ndarray) -> list[float]:
    s, t, q, z = results
    return [of_product(a, q, s, z.T), of_product(b, q, t, z.T), skewness(q), skewness(z)]


def _schur(a: np.ndarray, b: np.ndarray) -> Arrays:
    return scipy.linalg.schur(a) if len(a) else [a, a]


def _schur_errors(a: np.ndarray, b: np.ndarray, t: np.ndarray, z: np.ndarray) -> list[float]:
    return [of_product(a, z, t, z.T), skewness(z)]


def _eigh_of_pair(a: np.ndarray, b: np.ndarray) -> Arrays:
    return scipy.linalg.eigh(a, b) if len(a) else [a.ravel(), a]


def _qz(a: np.ndarray, b: np.ndarray) -> Arrays:
    return scipy.linalg.qz(a, b) if len(a) else [a] * 4


def _pivoted(a: np.ndarray, b: np.ndarray) -> Arrays:
    if not len(a):
        return [a, a, np.zeros(0, "int32")]
    return scipy.linalg.qr(a, pivoting=True, mode="economic")


def _pivoted_errors(
    a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray, p: np.ndarray
) -> Sequence[float]:
    return [of_product(a[:, p], q, r), skewness(q)]


def _random_like(a: np.ndarray) -> np.ndarray:
    return generator(len(a) + 1).normal(size=a.shape)


EIGENVALUES = [
    Measured(
        "Schur",
        NONSYMMETRIC,
        lambda a, b: pt.linalg.schur(a),
        _schur,
        _schur_errors,
        largest=100,
    ),
    Measured(
        "Eig",
        NONSYMMETRIC,
        lambda a, b: [*pt.linalg.eig(a)],
        lambda a, b: np.linalg.eig(a),
        lambda a, b, w, v: _pair_errors(a, w, v),
        largest=100,
        per_row=True,
    ),
    Measured(
        "QZ",
        # LAPACK's results overflow.
        {k: make for k, make in NONSYMMETRIC.items() if k != "next to overflow"},
        pt.linalg.qz,
        _qz,
        _pencil_errors,
        second=_random_like,
        largest=100,
    ),
    Measured(
        "Eigvalsh",
        SYMMETRIC,
        lambda a, b: [pt.linalg.eigvalsh(a, None)],
        lambda a, b: [np.linalg.eigvalsh(a)],
        lambda a, b, w: _value_error(a, w),
    ),
    Measured(
        "Eigh of pairs",
        SYMMETRIC,
        pt.linalg.eigh,
        _eigh_of_pair,
        _generalised_errors,
        second=lambda a: random_positive(len(a)),
    ),
    Measured(
        "QR, pivoted",
        SPECTRA,
        lambda a, b: pt.linalg.qr(a, pivoting=True, mode="economic"),
        _pivoted,
        _pivoted_errors,
    ),
]
