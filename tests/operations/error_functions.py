"""Records of the error function and its inverses."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.record import WIDE, special
from tests.operations.regions import (
    FLOAT32,
    FLOAT64,
    Accuracy,
    Region,
    linear,
    logarithmic,
    tiny,
)

inf, nan = np.inf, np.nan


def exact_erfcx(x: mp.mpf) -> mp.mpf:
    if x > 1e20:
        return 1 / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def exact_log_erfcinv(w: mp.mpf) -> mp.mpf:
    """Solve ``-log(erfc(y)) = w`` by Newton's method, for ``w`` above one."""
    y = mp.sqrt(w - mp.log(mp.pi * w) / 2) if w > 3 else mp.mpf(1)
    for _ in range(100):
        if y > 1e5:
            log, slope = -y * y - mp.log(y * mp.sqrt(mp.pi)) - 1 / (2 * y * y), 2 * y + 1 / y
        else:
            log, slope = mp.log(mp.erfc(y)), 2 * mp.exp(-y * y) / mp.erfc(y) / mp.sqrt(mp.pi)
        step = (-log - w) / slope
        y -= step
        if abs(step) < y * mp.mpf(2) ** -100:
            return y
    raise ArithmeticError(w)


def exact_erfcinv(q: mp.mpf) -> mp.mpf:
    if q > mp.mpf("0.3"):
        return -exact_erfcinv(2 - q) if q > mp.mpf("1.7") else mp.erfinv(1 - q)
    return exact_log_erfcinv(-mp.log(q))


def exact_ndtri_exp(x: mp.mpf) -> mp.mpf:
    if x < -2:
        return -mp.sqrt(2) * exact_log_erfcinv(-x - mp.log(2))
    return mp.sqrt(2) * exact_erfcinv(-2 * mp.expm1(x))


def below_one(smallest: float, dtypes: tuple[str, ...]) -> Region:
    """Numbers that differ from one by so little or more."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [1 - np.exp(rng.uniform(np.log(smallest), np.log(0.1), size))]

    return Region(f"1 - {smallest:g} … 0.9", draw, dtypes)


def around_median() -> Region:
    """The floating-point numbers around -log(2)."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        root = np.array(-np.log(2), dtype)
        return [root + rng.integers(-20, 21, size) * np.spacing(root)]

    return Region("next to -log(2)", draw)


OPERATIONS = [
    special(
        Accuracy(
            psm.Erf,
            mp.erf,
            [linear(-1, 1), linear(-2, 2), linear(-6, 6), tiny()],
            ends=[
                *[(30.0, 1.0), (-30.0, -1.0), (inf, 1.0), (-inf, -1.0), (nan, nan)],
                (0.0, 0.0),
                (-0.0, -0.0),
            ],
        ),
        at=[0.6],
        kernel=WIDE,
        fuzz="smooth",
    ),
    special(
        Accuracy(
            psm.Erfc,
            mp.erfc,
            [
                linear(-6, 0),
                linear(0, 1),
                linear(1, 2),
                linear(2, 6),
                linear(6, 26.5, FLOAT64),
                linear(26.5, 27.3, FLOAT64),
                linear(3, 9.2, FLOAT32),
                linear(9.2, 10.1, FLOAT32),
                tiny(),
            ],
            ends=[(0.0, 1.0), (30.0, 0.0), (-30.0, 2.0), (inf, 0.0), (-inf, 2.0), (nan, nan)],
        ),
        at=[0.6],
        kernel=WIDE,
        fuzz="smooth",
    ),
    special(
        Accuracy(
            psm.Erfcx,
            exact_erfcx,
            [
                linear(-1, 0),
                linear(0, 1),
                linear(1, 10),
                linear(-26.6, -1, FLOAT64),
                linear(-9.3, -1, FLOAT32),
                logarithmic(10),
                tiny(),
            ],
            scipy.special.erfcx,
            ends=[(0.0, 1.0), (-0.0, 1.0), (inf, 0.0), (-inf, inf), (nan, nan), (-28.0, inf)],
        ),
        at=[0.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.Erfinv,
            mp.erfinv,
            [
                linear(-0.5, 0.5),
                linear(0.5, 0.9999),
                linear(-0.9999, -0.5),
                below_one(1.2e-16, FLOAT64),
                below_one(6e-8, FLOAT32),
                tiny(),
            ],
            scipy.special.erfinv,
        ),
        at=[0.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.Erfcinv,
            exact_erfcinv,
            [
                linear(0.5, 1.5),
                linear(1e-6, 0.5),
                linear(1.5, 1.9999),
                logarithmic(0, 0.1),
                logarithmic(1e-18, 0.1),
            ],
            scipy.special.erfcinv,
        ),
        at=[0.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.NdtriExp,
            exact_ndtri_exp,
            [
                linear(-6.5, -0.01),
                linear(-1, -0.5),
                around_median(),
                linear(-110, -6),
                linear(-2000, -110),
                logarithmic(100, sign=-1),
                logarithmic(0, 0.01, sign=-1),
            ],
            scipy.special.ndtri_exp,
        ),
        at=[-0.6],
        kernel=WIDE,
    ),
]
