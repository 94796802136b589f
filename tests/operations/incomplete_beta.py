"""Record of the regularised incomplete beta function."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region, Sampler

inf, nan = np.inf, np.nan


def exact_betainc(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Take the continued fraction (DLMF 8.17.22) where it converges, and else its complement."""
    with mp.workprec(200):
        if x < (a + 1) / (a + b + 2):
            return _fraction(a, b, x)
        return 1 - _fraction(b, a, 1 - x)


def _fraction(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Evaluate the fraction by the recurrences of numerators and denominators."""
    logarithm = a * mp.log(x) + b * mp.log1p(-x)
    factor = mp.exp(logarithm + mp.loggamma(a + b) - mp.loggamma(a + 1) - mp.loggamma(b))
    before, top, bottom_before, bottom = mp.mpf(1), mp.mpf(1), mp.mpf(0), mp.mpf(1)
    m, value = 0, mp.mpf(0)
    while True:
        for d in (
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
            (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)),
        ):
            before, top = top, top + d * before
            bottom_before, bottom = bottom, bottom + d * bottom_before
        m += 1
        before, top, bottom_before = before / bottom, top / bottom, bottom_before / bottom
        bottom = mp.mpf(1)
        if abs(top - value) < abs(top) * mp.mpf(2) ** -100 and m > 3:
            return factor / top
        value = top


def region(
    label: str,
    draw: Sampler,
    dtypes: tuple[str, ...] = BOTH,
    *,
    bound: float = 450.0,
    most: int | None = None,
) -> Region:
    """Make a region of points within the domain."""

    def within(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b, x = draw(rng, min(size, most or size), dtype)
        return [a, b, np.clip(x, np.finfo(dtype).tiny, 1 - np.finfo(dtype).epsneg)]

    return Region(label, within, dtypes, bound)


def powers(rng: np.random.Generator, low: float, high: float, size: int) -> np.ndarray:
    """Draw numbers uniformly on a logarithmic scale, between two powers of ten."""
    return 10 ** rng.uniform(low, high, size)


def around_mean(low: float, high: float, deviations: float) -> Sampler:
    """Draw both parameters on a logarithmic scale, and ``x`` around the mean."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b = powers(rng, low, high, size), powers(rng, low, high, size)
        mean = a / (a + b)
        width = np.sqrt(mean * (1 - mean) / (a + b))
        return [a, b, mean + rng.uniform(-deviations, deviations, size) * width]

    return draw


def of_powers(first: tuple, second: tuple, third: tuple, *, at_one: bool = False) -> Sampler:
    """Draw all on logarithmic scales, ``x`` or its distance from one."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b, x = (powers(rng, *ends, size) for ends in (first, second, third))
        return [a, b, 1 - x if at_one else x]

    return draw


def of_student(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw arguments of the distribution function of Student's t distribution."""
    degrees, t = powers(rng, -1, 4, size), powers(rng, -1, 2, size)
    return [degrees / 2, np.full(size, 0.5), degrees / (degrees + t * t)]


def anywhere(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    return [powers(rng, -1, 2, size), powers(rng, -1, 2, size), rng.uniform(0, 1, size)]


def tiny(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw points where results are tiny, which takes exponents beyond their last digit."""
    a, b, x = powers(rng, 0, 4, 400 * size), powers(rng, -1, 4, 400 * size), rng.random(400 * size)
    found = scipy.special.betainc(a, b, x)
    chosen = (found > 1e-300) & (found < 1e-90)
    return [v[chosen][:size] for v in (a, b, x)]


# 1e-13 is 450 ulp at least.
REGIONS = [
    region("a, b 0.1 … 100, x 0 … 1", anywhere),
    region("a, b 1 … 100, x within 4σ of the mean", around_mean(0, 2, 4)),
    region("a, b 100 … 1e5, x within 4σ of the mean", around_mean(2, 5, 4), FLOAT64, most=40),
    region("a, b 1e6 … 1e8, x within 4σ of the mean", around_mean(6, 8, 4), FLOAT64, most=4),
    region("a, b 100 … 1e4, x within 30σ of the mean", around_mean(2, 4, 30), FLOAT64, bound=400),
    region("a 1e-8 … 1, b 1 … 1e3, x 1e-8 … 1", of_powers((-8, 0), (0, 3), (-8, 0)), bound=40),
    region(
        "a 1 … 1e3, b 1e-8 … 1, 1-x 1e-15 … 1",
        of_powers((0, 3), (-8, 0), (-15, 0), at_one=True),
    ),
    region("a, b 1e-8 … 1, x 1e-8 … 1", of_powers((-8, 0), (-8, 0), (-8, 0)), bound=40),
    region(
        "a, b 1e-8 … 1, 1-x 1e-15 … 1",
        of_powers((-8, 0), (-8, 0), (-15, 0), at_one=True),
        bound=40,
    ),
    region("a 1 … 100, b 1 … 1e3, x 1e-40 … 0.1", of_powers((0, 2), (0, 3), (-40, -1)), FLOAT64),
    region("Student's t, ν 0.1 … 1e4, t 0.1 … 100", of_student, FLOAT64),
    region("a 1 … 1e4, b 0.1 … 1e4, results 1e-300 … 1e-90", tiny, FLOAT64, bound=300),
]


OPERATIONS = [
    special(
        Accuracy(psm.BetaInc, exact_betainc, REGIONS, scipy.special.betainc, size=60), is_slow=True
    )
]
