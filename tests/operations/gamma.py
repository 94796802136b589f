"""Records of the gamma function, its logarithm and the derivatives of the logarithm."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.record import WIDE, special
from tests.operations.regions import (
    BOTH,
    FLOAT32,
    FLOAT64,
    Accuracy,
    Region,
    linear,
    logarithmic,
    tiny,
)

inf, nan = np.inf, np.nan


def exact_gammaln(x: mp.mpf) -> mp.mpf:
    if x < 0:
        return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)
    return mp.loggamma(x)


def exact_psi(x: mp.mpf) -> mp.mpf:
    return mp.psi(0, 1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x) if x < 0 else mp.psi(0, x)


def exact_trigamma(x: mp.mpf) -> mp.mpf:
    return (mp.pi / mp.sinpi(x)) ** 2 - mp.psi(1, 1 - x) if x < 0 else mp.psi(1, x)


def trigamma(x: np.ndarray) -> np.ndarray:
    return scipy.special.polygamma(1, x)


def around(center: float, dtypes: tuple[str, ...] = BOTH) -> Region:
    """Draw from both sides of a point, on a logarithmic scale."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        distance = np.exp(rng.uniform(np.log(np.finfo(dtype).eps), np.log(0.1), size))
        return [center + distance * rng.choice([-1.0, 1.0], size)]

    return Region(f"next to {center:g}", draw, dtypes)


def poles(first: float, last: float, scale=None) -> Region:
    """Draw from both sides of the poles, which are left out."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        pole = np.round(-np.exp(rng.uniform(np.log(first), np.log(last), size)))
        distance = np.exp(rng.uniform(np.log(np.finfo(dtype).eps), np.log(0.5), size))
        x = (pole + distance * rng.choice([-1.0, 1.0], size)).astype(dtype)
        return [np.where(x == np.round(x), np.nextafter(x, x.dtype.type(0)), x)]

    return Region(f"next to poles, -{first:g} … -{last:g}", draw, scale=scale)


def halfway(center: float, scale=None) -> Region:
    """Draw around the point between two poles, where the cotangent vanishes."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [center + rng.uniform(-0.06, 0.06, size)]

    return Region(f"next to {center:g}", draw, scale=scale)


def small(power: int) -> Region:
    """Draw numbers of both signs whose reciprocals to a power do not overflow."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        lowest = float(np.finfo(dtype).max) ** (-1 / power) * 1.001
        x = np.exp(rng.uniform(np.log(lowest), np.log(1e-3), size))
        return [x * rng.choice([-1.0, 1.0], size)]

    return Region("small … ±0.001", draw)


# Between the poles the reflected function and what it is subtracted from have this size.
def scale_of_gammaln(x: mp.mpf) -> mp.mpf:
    return mp.loggamma(1 - x)


def scale_of_psi(x: mp.mpf) -> mp.mpf:
    return mp.psi(0, 1 - x)


def of_orders(orders, numbers, dtypes=BOTH, *, sign=1.0, bound=4.0) -> Region:
    """Draw orders and, on a logarithmic scale, numbers."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        x = np.exp(rng.uniform(*np.log(numbers), size))
        return [rng.integers(orders[0], orders[1] + 1, size), sign * x]

    low, high = (f"{sign * x:g}" for x in numbers)
    label = f"n {orders[0]} … {orders[1]}, x {low} … {high}"
    return Region(label, draw, dtypes, bound)


def between_poles(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw numbers halfway between poles, next to which even orders have roots."""
    return [rng.integers(1, 12, size), -rng.integers(0, 30, size) - 0.5]


OPERATIONS = [
    special(
        Accuracy(
            psm.GammaLn,
            exact_gammaln,
            [
                linear(0.01, 3),
                around(1),
                around(2),
                linear(2.49, 2.51),
                linear(3, 20),
                logarithmic(20, 2.5e305, FLOAT64),
                logarithmic(20, 4e36, FLOAT32),
                linear(-2.2, -0.01),
                poles(2, 1e5, scale_of_gammaln),
                tiny(),
            ],
            scipy.special.gammaln,
        ),
        at=[1.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.Psi,
            exact_psi,
            [
                linear(0.01, 3),
                around(1.4616321449683622),
                linear(2.49, 2.51),
                linear(3, 20),
                logarithmic(20),
                linear(-0.99, -0.01),
                around(-0.5040830082644554),
                halfway(-1.5, scale_of_psi),
                poles(1, 1e5, scale_of_psi),
                small(1),
            ],
            scipy.special.psi,
        ),
        at=[1.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.Gamma,
            mp.gamma,
            [
                linear(0.01, 3),
                linear(3, 20),
                linear(20, 171.6, FLOAT64),
                linear(20, 35, FLOAT32),
                linear(-0.999, -0.01),
                poles(1, 20),
                linear(-169.9, -20.1, FLOAT64),
                linear(-33.9, -20.1, FLOAT32),
                small(1),
            ],
            scipy.special.gamma,
        ),
        at=[1.6],
    ),
    special(
        Accuracy(
            psm.TriGamma,
            exact_trigamma,
            [
                linear(0.01, 3),
                linear(3, 20),
                logarithmic(20),
                linear(-0.999, -0.01),
                poles(1, 1e5),
                small(2),
            ],
            trigamma,
        ),
        at=[1.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.PolyGamma,
            lambda n, x: mp.psi(int(n), x),
            [
                of_orders((0, 4), (0.1, 20), bound=8),
                of_orders((1, 4), (20, 1e8), bound=8),
                of_orders((1, 4), (1e-5, 0.1), bound=8),
                of_orders((5, 80), (0.5, 100), FLOAT64, bound=8),
                # Powers of these numbers underflow, and their products with factorials do not.
                of_orders((80, 170), (0.5, 7000), FLOAT64, bound=8),
                of_orders((1, 6), (1e3, 1e300), FLOAT64, bound=8),
                # Next to the roots of even orders terms cancel.
                of_orders((1, 20), (0.3, 30), FLOAT64, sign=-1.0, bound=450),
                Region("n 1 … 11, x -0.5, -1.5 … -29.5", between_poles, BOTH, 8),
            ],
            scipy.special.polygamma,
        ),
        is_slow=True,
    ),
]
