"""Record of Owen's T function."""

from functools import cache

import mpmath as mp
import numpy as np
import scipy.special
from mpmath.calculus.quadrature import GaussLegendre
from pytensor.scalar import math as psm

from tests.operations.record import special
from tests.operations.regions import FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


@cache
def nodes() -> list[tuple[mp.mpf, mp.mpf]]:
    """Nodes and weights on the interval from 0 to 1."""
    found = GaussLegendre(mp.mp).calc_nodes(5, 120)
    return [((node + 1) / 2, weight / 2) for node, weight in found]


def exact_owens_t(h: mp.mpf, a: mp.mpf) -> mp.mpf:
    h, sign, a = abs(h), mp.sign(a), abs(a)
    if a > 1:
        first, second = (mp.erfc(x / mp.sqrt(2)) / 2 for x in (h, a * h))
        return sign * ((first + second) / 2 - first * second - exact_owens_t(a * h, 1 / a))
    end = min(a, 12 / h) if h else a
    total = mp.fsum(
        w * mp.exp(-((h * end * x) ** 2) / 2) / (1 + (end * x) ** 2) for x, w in nodes()
    )
    return sign * end * mp.exp(-h * h / 2) * total / (2 * mp.pi)


def plane(label: str, low: float, high: float, last: float) -> Region:
    """Normal first arguments, scaled by up to so much, and second ones of all sizes."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        h = rng.choice([-1.0, 1.0], size) * np.exp(rng.uniform(np.log(low), np.log(high), size))
        a = np.exp(rng.uniform(-np.log(last), np.log(last), size)) * rng.choice([-1.0, 1.0], size)
        return [h, a]

    return Region(label, draw, bound=30)


def tails() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(5, 37, size), rng.uniform(0, 3, size)]

    return Region("5 ≤ h ≤ 37, a ≤ 3", draw, FLOAT64, bound=30)


OPERATIONS = [
    special(
        Accuracy(
            psm.Owens_t,
            exact_owens_t,
            [
                plane("0.1 ≤ h ≤ 5, 0.1 ≤ a ≤ 10", 0.1, 5, 10),
                plane("1e-8 ≤ h ≤ 5, 1e-8 ≤ a ≤ 1e8", 1e-8, 5, 1e8),
                plane("0.1 ≤ h ≤ 5, a next to 1", 0.1, 5, 1.001),
                tails(),
            ],
            scipy.special.owens_t,
        ),
        at=[0.6, 0.8],
        is_slow=True,
    )
]
