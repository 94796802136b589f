"""Records of the inverses of the incomplete gamma functions."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.incomplete_gamma import exact_pair
from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


def exact_inverse(which: int, approximate: Callable) -> Callable[[mp.mpf, mp.mpf], mp.mpf]:
    """Improve SciPy's values by Newton's method."""

    def exact(a: mp.mpf, p: mp.mpf) -> mp.mpf:
        x = mp.mpf(float(approximate(float(a), float(p))))
        if x < 1e-300:
            # The first term of the series.
            p = p if which == 0 else 1 - p
            return mp.exp((mp.log(p) + mp.loggamma(a + 1)) / a)
        for _ in range(2):
            slope = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
            x -= (exact_pair(a, x)[which] - p) / (slope if which == 0 else -slope)
        return x

    return exact


def region(
    parameters: tuple[float, float],
    shares: tuple[float, float],
    dtypes: tuple[str, ...] = BOTH,
    *,
    bound: float = 450.0,
) -> Region:
    """Draw 40 parameters, and shares that are small on a logarithmic scale."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a = np.exp(rng.uniform(*np.log(parameters), min(size, 40)))
        if shares[0] < 1e-4:
            return [a, np.exp(rng.uniform(*np.log(shares), len(a)))]
        return [a, rng.uniform(*shares, len(a))]

    label = "a {:g} … {:g}, share {:g} … {:g}".format(*parameters, *shares)
    return Region(label, draw, dtypes, bound)


def next_to_zero(which: int) -> Region:
    """Draw small parameters, for results between 1e-300 and 1e-100."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a = np.exp(rng.uniform(*np.log([1e-8, 1e-2]), min(size, 100)))
        power = a * rng.uniform(-690, -230, len(a))
        return [a, -np.expm1(power) if which else np.exp(power)]

    return Region("a 1e-08 … 0.01, results 1e-300 … 1e-100", draw, FLOAT64, 40)


REGIONS = [
    region((0.5, 20), (0.001, 0.999), bound=40),
    region((0.1, 50), (1e-30, 0.5), bound=100),
    region((0.02, 1), (1e-6, 0.9), FLOAT64),
    region((1, 1e3), (1e-250, 1e-10), FLOAT64, bound=100),
    region((20, 1e5), (0.001, 0.999), FLOAT64, bound=40),
]


OPERATIONS = [
    special(
        Accuracy(
            psm.GammaIncInv,
            exact_inverse(0, scipy.special.gammaincinv),
            [*REGIONS, next_to_zero(0)],
            scipy.special.gammaincinv,
        ),
        is_slow=True,
    ),
    special(
        Accuracy(
            psm.GammaIncCInv,
            exact_inverse(1, scipy.special.gammainccinv),
            [*REGIONS, next_to_zero(1)],
            scipy.special.gammainccinv,
        ),
        is_slow=True,
    ),
]
