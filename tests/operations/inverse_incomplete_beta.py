"""Record of the inverse of the incomplete beta function."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.incomplete_beta import exact_betainc, powers
from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


def exact_inverse(a: mp.mpf, b: mp.mpf, p: mp.mpf) -> mp.mpf:
    """Improve SciPy's value, or the first term of the series, by Newton's method in the logit."""
    beta = mp.beta(a, b)
    first = mp.exp((mp.log(p) + mp.log(a) + mp.log(beta)) / a)
    if first < 1e-60:
        return first
    last = mp.exp((mp.log(1 - p) + mp.log(b) + mp.log(beta)) / b)
    if last < 1e-30:
        return 1 - last
    start = scipy.special.betaincinv(float(a), float(b), float(p))
    x = first if first * b < 0.1 else mp.mpf(min(float(start), 1 - 2**-53))
    # Of two small parameters the first term is nearly x / (1 - x).
    logit = mp.log(first if max(a, b) < 0.02 else x / (1 - x))
    for _ in range(60):
        x = 1 / (1 + mp.exp(-logit))
        below = exact_betainc(a, b, x)
        density = x**a * (1 - x) ** b / beta
        if p < 0.5:
            change = mp.log(p / below) * below / density
        else:
            change = mp.log((1 - below) / (1 - p)) * (1 - below) / density
        logit += change
        if abs(change) < 1e-14:
            break
    return 1 / (1 + mp.exp(-logit))


def region(
    first: tuple[float, float],
    second: tuple[float, float],
    shares: tuple[float, float],
    dtypes: tuple[str, ...] = BOTH,
    *,
    most: int = 25,
    bound: float = 450.0,
) -> Region:
    """Draw parameters between powers of ten, and shares, on such a scale where they are small."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        size = min(size, most)
        a, b = powers(rng, *first, size), powers(rng, *second, size)
        if shares[0] > 0:
            return [a, b, rng.uniform(*shares, size)]
        return [a, b, powers(rng, *shares, size)]

    ends = [f"1e{low:g} … 1e{high:g}" for low, high in (first, second)]
    exponents = shares[0] <= 0
    last = f"1e{shares[0]:g} … 1e{shares[1]:g}" if exponents else f"{shares[0]:g} … {shares[1]:g}"
    return Region(f"a {ends[0]}, b {ends[1]}, share {last}", draw, dtypes, bound)


def next_to_one(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw a small parameter, and shares nearly 1 for results between 0.1 and 0.9."""
    a, b = powers(rng, -10, -3, min(size, 25)), powers(rng, -1, 1, min(size, 25))
    return [a, b, scipy.special.betainc(a, b, rng.uniform(0.1, 0.9, len(a)))]


def next_to_zero(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw a small parameter, and shares for results between 1e-300 and 1e-10."""
    size = min(size, 25)
    a, b = powers(rng, -4, 0, size), powers(rng, -2, 6, size)
    power = a * rng.uniform(-690, -23, size)
    return [a, b, np.exp(power) * b / (a + b)]


def of_tiny_parameters(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw shares that differ by their last digits, for results that are not next to 0 and 1."""
    a, b = powers(rng, -12, -2, min(size, 50)), powers(rng, -12, -2, min(size, 50))
    return [a, b, b / (a + b) * (1 + np.minimum(a, b) * rng.uniform(-20, 20, len(a)))]


REGIONS = [
    region((-0.3, 1.7), (-0.3, 1.7), (0.001, 0.999), bound=40),
    region((-1, 2), (-1, 2), (0.001, 0.999), bound=100),
    region((-2, 0), (-2, 0), (0.001, 0.999), FLOAT64, bound=200),
    region((0, 2), (0, 2), (-250, -5), FLOAT64),
    region((2, 4), (2, 4), (0.001, 0.999), FLOAT64, most=15, bound=40),
    region((6, 8), (6, 8), (0.001, 0.999), FLOAT64, most=2, bound=40),
    region((2, 8), (-2, 1), (-300, -100), FLOAT64, bound=40),
    Region("a 1e-4 … 1, b 0.01 … 1e6, results 1e-300 … 1e-10", next_to_zero, FLOAT64, 100),
    Region("a, b 1e-12 … 0.01, results within 0 … 1", of_tiny_parameters, FLOAT64, 40),
    Region("a 1e-10 … 1e-3, b 0.1 … 10, shares next to 1", next_to_one, FLOAT64, 100),
]


OPERATIONS = [
    special(
        Accuracy(psm.BetaIncInv, exact_inverse, REGIONS, scipy.special.betaincinv), is_slow=True
    )
]
