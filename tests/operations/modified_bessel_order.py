"""Records of modified Bessel functions of any order."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.functions.special.modified_bessel import kv, times_iv
from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


# In ulp: 1e-13 relative.
BOUND = 450.0


@cache
def debye_polynomials() -> list[list[Fraction]]:
    """Coefficients in ``p`` of the polynomials of DLMF 10.41.9."""
    found = [[Fraction(1)]]
    for _ in range(12):
        last, following = found[-1], [Fraction(0)] * (len(found[-1]) + 3)
        for power, c in enumerate(last):
            following[power + 1] += c * power / 2 + c / (8 * (power + 1))
            following[power + 3] -= c * power / 2 + 5 * c / (8 * (power + 3))
        found.append(following)
    return found


def expansion(v: mp.mpf, x: mp.mpf, sign: int) -> mp.mpf:
    """Debye's expansion, which 13 terms give to 1e-24 for large orders or arguments."""
    w = mp.sqrt(v * v + x * x)
    p, exponent = v / w, v * (v / (w + x) - mp.asinh(v / x))
    total = mp.mpf(0)
    for k, u in enumerate(debye_polynomials()):
        terms = [mp.mpf(c.numerator) / c.denominator * p ** (i - k) for i, c in enumerate(u) if c]
        total += mp.fsum(terms) * (sign / w) ** k
    factor = 1 / (2 * mp.pi) if sign > 0 else mp.pi / 2
    return mp.exp(sign * exponent) * mp.sqrt(factor / w) * total


def exact_ive(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    if v > 0 and mp.hypot(v, x) > 200:
        return expansion(v, x, 1)
    return mp.besseli(v, x) * mp.exp(-abs(x))


def exact_kve(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    v = abs(v)
    if mp.hypot(v, x) > 200:
        return expansion(v, x, -1)
    return mp.besselk(v, x) * mp.exp(x)


def box(last: float, dtypes: tuple[str, ...] = FLOAT64, *, sign: float = 1.0) -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [sign * rng.uniform(0, last, size), rng.uniform(0.1, last, size)]

    start = "0" if sign > 0 else f"-{last:g}"
    return Region(
        f"{start} ≤ v ≤ {last if sign > 0 else 0:g}, 0.1 ≤ x ≤ {last:g}", draw, dtypes, BOUND
    )


def integers() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.integers(0, 12, size).astype("f8"), np.exp(rng.uniform(-4, 4, size))]

    return Region("v = 0 … 11, 0.02 ≤ x ≤ 55", draw, BOTH, BOUND)


def small_arguments() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(0, 3, size), np.exp(rng.uniform(np.log(1e-9), 0, size))]

    return Region("0 ≤ v ≤ 3, 1e-9 ≤ x ≤ 1", draw, BOTH, BOUND)


def small_orders() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [np.exp(rng.uniform(np.log(1e-9), 0, size)), np.exp(rng.uniform(-4, 4, size))]

    return Region("1e-9 ≤ v ≤ 1, 0.02 ≤ x ≤ 55", draw, BOTH, BOUND)


def large() -> Region:
    """Large orders and arguments, and results that neither overflow nor underflow."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        v = np.exp(rng.uniform(np.log(1e3), np.log(1e8), size))
        return [v, v * v / np.exp(rng.uniform(0, np.log(1400), size))]

    return Region("1e3 ≤ v ≤ 1e8, v² / 1400 ≤ x ≤ v²", draw, FLOAT64, BOUND)


def large_orders() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(0, 500, size), rng.uniform(200, 700, size)]

    return Region("0 ≤ v ≤ 500, 200 ≤ x ≤ 700", draw, FLOAT64, BOUND)


def decaying() -> Region:
    """Results that are exponentials of hundreds, for arguments above and below the order."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        half_angle, exponent = rng.uniform(0.05, 8, size), rng.uniform(200, 700, size)
        v = exponent / (2 * half_angle - np.tanh(half_angle))
        return [v, v / np.sinh(2 * half_angle)]

    return Region("results exp(±200) … exp(±700)", draw, FLOAT64, BOUND)


def quadrature_of_large_orders() -> Region:
    """Arguments and orders for which the step of a quadrature of ``K`` must be smallest."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        x = rng.uniform(1, 4, size)
        return [np.sqrt(rng.uniform(33.5, 36, size) ** 2 - x * x), x]

    return Region("33.5 ≤ √(v² + x²) ≤ 36, 1 ≤ x ≤ 4", draw, FLOAT64, BOUND / 3)


def overflowing_exponentials(last: float) -> Region:
    """Return a region of finite results whose exponential or scaled function is not finite."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(200, 300, size), rng.uniform(600, last, size)]

    return Region(f"200 ≤ v ≤ 300, 600 ≤ x ≤ {last}", draw, FLOAT64, BOUND)


def with_factors(region: Region) -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(-2, 2, size), *region.draw(rng, size, dtype)]

    return replace(region, label=f"{region.label}, times -2 … 2", draw=draw)


REGIONS = [
    *(box(8, BOTH), box(20), integers()),
    *(small_arguments(), small_orders(), large_orders(), large(), decaying()),
    quadrature_of_large_orders(),
]


IN_RANGE = [box(8, BOTH), box(20), small_arguments(), small_orders(), decaying()]


OPERATIONS = [
    special(
        Accuracy(psm.Ive, exact_ive, [*REGIONS, box(20, sign=-1)], scipy.special.ive, 50),
        is_slow=True,
    ),
    special(Accuracy(psm.Kve, exact_kve, REGIONS, scipy.special.kve, 50), is_slow=True),
    special(
        Accuracy(
            times_iv.op_type,
            lambda factor, v, x: factor * exact_ive(v, x) * mp.exp(x),
            [with_factors(region) for region in (*IN_RANGE, overflowing_exponentials(730))],
            lambda factor, v, x: factor * scipy.special.iv(v, x),
            50,
        ),
        is_slow=True,
    ),
    special(
        Accuracy(
            kv.op_type,
            lambda v, x: exact_kve(v, x) * mp.exp(-x),
            [*IN_RANGE, overflowing_exponentials(700)],
            scipy.special.kv,
            50,
        ),
        is_slow=True,
    ),
]
