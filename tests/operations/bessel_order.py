"""Record of Bessel functions of the first kind of any order."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.modified_bessel_order import debye_polynomials
from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region, Sampler

inf, nan = np.inf, np.nan


# In ulp: 1e-13 of the amplitude. Elsewhere errors are some units of numbers that cancel a little.
LOOSE, TIGHT = 450.0, 100.0


def amplitude(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Size of the oscillation, and zero where there is none."""
    v, x = abs(v), abs(x)
    if x <= v:
        return mp.mpf(0)
    return mp.sqrt(2 / (mp.pi * max(mp.sqrt((x - v) * (x + v)), mp.cbrt(v * v))))


def exact_jv(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Value by mpmath, and by Debye's expansion (DLMF 10.19.6) where that is exact to 1e-22."""
    if x < 1e5 or x < 2 * abs(v):
        return mp.besselj(v, x)
    w = mp.sqrt((x - v) * (x + v))
    total = mp.mpc(0)
    for k, u in enumerate(debye_polynomials()):
        terms = [
            mp.mpf(c.numerator) / c.denominator * (1j * v / w) ** i for i, c in enumerate(u) if c
        ]
        total += mp.fsum(terms) / v**k
    phase = w - v * mp.acos(v / x) - mp.pi / 4
    return mp.sqrt(2 / (mp.pi * w)) * (total * mp.expj(-phase)).real


def region(
    label: str, draw: Sampler, dtypes: tuple[str, ...] = BOTH, bound: float = TIGHT
) -> Region:
    return Region(label, draw, dtypes, bound, scale=amplitude)


def box(low: float, high: float, first: float, last: float, bound: float = TIGHT) -> Region:
    """Orders and arguments between bounds, by the logarithm for wide arguments."""
    wide = last > 100 * first > 0

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        ends = np.log([first, last]) if wide else (first, last)
        x = rng.uniform(*ends, size)
        return [rng.uniform(low, high, size), np.exp(x) if wide else x]

    dtypes = BOTH if high <= 20 else FLOAT64
    return region(f"v {low:g} … {high:g}, x {first:g} … {last:g}", draw, dtypes, bound)


def integers(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    return [rng.integers(-20, 21, size).astype("f8"), rng.uniform(-60, 60, size)]


def next_to_negative_integers(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    distances = rng.choice([-1, 1], size) * np.exp(rng.uniform(np.log(1e-12), np.log(1e-3), size))
    return [distances - rng.integers(0, 9, size), rng.uniform(0.01, 12, size)]


def below_the_order(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    v = rng.uniform(100, 500, size)
    # The smallest results are 1e-300.
    return [v, v * rng.uniform(0.2, 0.95, size)]


def tiny_results(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Orders whose exponents are sums of larger numbers, and results from 1e-300 to 1e-100."""
    v = np.exp(rng.uniform(np.log(500), np.log(5000), size))
    exponent = rng.uniform(230, 680, size)
    angle = np.cbrt(3 * exponent / v)
    for _ in range(50):
        angle -= (angle - np.tanh(angle) - exponent / v) / np.tanh(angle) ** 2
    return [v, v / np.cosh(angle)]


def by_hankel(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    x = rng.uniform(21, 60, size)
    return [np.sqrt(2 * x) * rng.uniform(0, 1, size), x]


def next_to_the_order(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    v = np.exp(rng.uniform(np.log(20), np.log(5000), size))
    return [v, v + np.cbrt(v) * rng.uniform(-5, 5, size)]


def below_two(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    v, x = (np.exp(rng.uniform(*np.log(ends), size)) for ends in [(0.1, 20), (1e-8, 2)])
    return [-v, x]


OPERATIONS = [
    special(
        Accuracy(
            psm.Jv,
            exact_jv,
            [
                *(box(0, 20, 0.01, 30), box(-20, 0, 1, 30)),
                *(box(-2, 2, 1e-9, 2.5), box(-20, 20, 60, 1e8), box(-100, 100, 0.1, 200, LOOSE)),
                *(box(-500, 500, 500, 2000, LOOSE), box(500, 1e5, 2e5, 1e9, 60 * LOOSE)),
                region("integers v -20 … 20, x -60 … 60", integers),
                region("v -20 … -0.1, x 1e-8 … 2", below_two, FLOAT64),
                region("next to v = 0, -1 … -8, x 0.01 … 12", next_to_negative_integers),
                region("v 100 … 500, x/v 0.2 … 0.95", below_the_order, FLOAT64, LOOSE),
                region("v 500 … 5000, results 1e-300 … 1e-100", tiny_results, FLOAT64, LOOSE),
                region("v 0 … √(2x), x 21 … 60", by_hankel, FLOAT64, 4.0),
                region("v 20 … 5000, (x - v)/∛v -5 … 5", next_to_the_order, FLOAT64, 2.5 * LOOSE),
            ],
            scipy.special.jv,
            25,
        ),
        is_slow=True,
    )
]
