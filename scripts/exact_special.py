"""Special functions in mpmath whose bodies of float32 have parts in float64 elsewhere."""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

GRID = np.geomspace(0.05, 20.0, 36)
UNIT = np.linspace(0.02, 0.98, 36)
ORDERS = np.tile([0.5, 2.0, 7.5], 12)
COUNTS = np.tile([0, 1, 3], 12)


def root(function: Callable[[Any], Any], start: float) -> Any:
    """Return the root of a function near a number of float64."""
    return mp.re(mp.findroot(function, mp.mpf(start)))


def lower(a: Any, x: Any) -> Any:
    """Return the regularized lower incomplete gamma function."""
    return mp.gammainc(a, 0, x, regularized=True)


def beta_inc(a: Any, b: Any, x: Any) -> Any:
    """Return the regularized incomplete beta function."""
    return mp.betainc(a, b, 0, x, regularized=True)


EXACT: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "GammaLn": (lambda x: mp.log(mp.gamma(x)), (GRID,)),
    "Gamma": (mp.gamma, (GRID,)),
    "Psi": (lambda x: mp.psi(0, x), (GRID,)),
    "TriGamma": (lambda x: mp.psi(1, x), (GRID,)),
    "PolyGamma": (lambda n, x: mp.psi(int(n), x), (COUNTS, GRID)),
    "GammaInc": (lower, (ORDERS, GRID)),
    "GammaIncC": (lambda a, x: 1 - lower(a, x), (ORDERS, GRID)),
    "BetaInc": (beta_inc, (ORDERS, ORDERS[::-1].copy(), UNIT)),
    "Ive": (lambda v, x: mp.besseli(v, x) * mp.exp(-x), (ORDERS, GRID)),
    "Kve": (lambda v, x: mp.besselk(v, x) * mp.exp(x), (ORDERS, GRID)),
    "J0": (lambda x: mp.besselj(0, x), (GRID,)),
    "J1": (lambda x: mp.besselj(1, x), (GRID,)),
    "Jv": (mp.besselj, (ORDERS, GRID)),
    "GammaIncInv": (
        lambda a, p: root(lambda x: lower(a, x) - p, _guess("gammaincinv", a, p)),
        (ORDERS, UNIT),
    ),
    "GammaIncCInv": (
        lambda a, p: root(lambda x: 1 - lower(a, x) - p, _guess("gammainccinv", a, p)),
        (ORDERS, UNIT),
    ),
    "BetaIncInv": (
        lambda a, b, p: root(lambda x: beta_inc(a, b, x) - p, _guess("betaincinv", a, b, p)),
        (ORDERS, ORDERS[::-1].copy(), UNIT),
    ),
    "Erfcinv": (lambda x: mp.erfinv(1 - x), (2.0 * UNIT,)),
}
"""Functions, and 36 points of their operands."""


def _guess(name: str, *operands: Any) -> float:
    import scipy.special

    return float(getattr(scipy.special, name)(*map(float, operands)))
