"""Records of the regularised incomplete gamma functions."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


def exact_pair(a: mp.mpf, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """Sum the series (DLMF 8.7.1), or take the continued fraction (DLMF 8.9.2) where it is long."""
    with mp.workprec(200):
        factor = mp.exp(a * mp.log(x) - x - mp.loggamma(a))
        if x < a + 50:
            term = total = 1 / a
            n = 0
            while term > total * mp.mpf(2) ** -190:
                n += 1
                term *= x / (a + n)
                total += term
            return factor * total, 1 - factor * total
        value = mp.mpf(0)
        for n in range(int(300 + 4 * mp.sqrt(a)), 0, -1):
            value = n * (a - n) / (x + 2 * n + 1 - a + value)
        upper = factor / (x + 1 - a + value)
        return 1 - upper, upper


def region(
    parameters: tuple[float, float],
    ratios: tuple[float, float] | None = None,
    numbers: tuple[float, float] | None = None,
    *,
    deviations: float | None = None,
    dtypes: tuple[str, ...] = BOTH,
    most: int | None = None,
    bound: float = 450.0,
) -> Region:
    """Draw ``a`` on a logarithmic scale, and ``x`` on one, as a multiple, or around ``a``."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        size = min(size, most or size)
        a = np.exp(rng.uniform(*np.log(parameters), size))
        if deviations:
            return [a, a + rng.uniform(-deviations, deviations, size) * np.sqrt(a)]
        x = np.exp(rng.uniform(*np.log(numbers or ratios), size))
        return [a, x if numbers else a * x]

    low, high = parameters
    if deviations:
        second = f"x/a - 1 within {deviations:g}/√a"
    else:
        second = "x {:g} … {:g}".format(*numbers) if numbers else "x/a {:g} … {:g}".format(*ratios)
    return Region(f"a {low:g} … {high:g}, {second}", draw, dtypes, bound)


def tiny(function: Callable[..., np.ndarray], largest: float) -> Region:
    """Draw points where results are tiny, which takes exponents beyond their last digit."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a = np.exp(rng.uniform(0, np.log(largest), 2000 * size))
        x = a * np.exp(rng.uniform(-7, 5, 2000 * size))
        found = function(a, x)
        chosen = (found > 1e-300) & (found < 1e-90)
        return [a[chosen][:size], x[chosen][:size]]

    return Region(f"a 1 … {largest:g}, results 1e-300 … 1e-90", draw, FLOAT64, 200.0)


# 1e-13 is 450 ulp at most.
REGIONS = [
    region((0.1, 20), (0.1, 4), bound=40),
    region((1e-8, 1), numbers=(1e-8, 1), bound=40),
    region((1e-8, 1), numbers=(1, 100), bound=200),
    region((1, 20), numbers=(1e-3, 500), bound=450),
    region((20, 1e3), (0.65, 1.35), bound=450),
    region((20, 600), (0.2, 2), dtypes=FLOAT64, bound=200),
    region((1e3, 1e5), deviations=4, dtypes=FLOAT64, most=60, bound=40),
    region((1e5, 1e7), deviations=4, dtypes=FLOAT64, most=8, bound=40),
]


# Here powers of x/a underflow.
SMALL = region((50, 150), (0.004, 0.05), dtypes=FLOAT64, bound=100)


LOWER = [*REGIONS, SMALL, tiny(scipy.special.gammainc, 1e4)]


UPPER = [*REGIONS, tiny(scipy.special.gammaincc, 1e4)]


OPERATIONS = [
    special(
        Accuracy(psm.GammaInc, lambda a, x: exact_pair(a, x)[0], LOWER, scipy.special.gammainc, 50),
        is_slow=True,
    ),
    special(
        Accuracy(
            psm.GammaIncC, lambda a, x: exact_pair(a, x)[1], UPPER, scipy.special.gammaincc, 50
        ),
        is_slow=True,
    ),
]
