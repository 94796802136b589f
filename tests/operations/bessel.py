"""Records of Bessel functions of the orders 0 and 1."""

from dataclasses import replace
from functools import partial

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.functions.special.modified_bessel import i0e, i1e
from tests.operations.record import WIDE, special
from tests.operations.regions import FLOAT32, FLOAT64, Accuracy, Region, linear, logarithmic, tiny

inf, nan = np.inf, np.nan

NO_INFINITY = [(inf, nan), (-inf, nan), (nan, nan)]


def amplitude(x: mp.mpf) -> mp.mpf:
    return mp.sqrt(2 / (mp.pi * abs(x)))


def next_to_roots(order: int, first: int, last: int) -> Region:
    """The floating-point numbers around some roots, where results nearly vanish."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        zeros = scipy.special.jn_zeros(order, last)[first - 1 :].astype(dtype)
        roots = rng.choice(zeros, size)
        return [roots + rng.integers(-2, 3, size) * np.spacing(roots)]

    return Region(f"next to roots {first} … {last}" if last > first else "next to root 1", draw)


def regions(order: int) -> list[Region]:
    oscillating = [
        linear(1.5, 4),
        linear(4, 10),
        linear(-100, -10),
        logarithmic(100, 2.0**39),
        logarithmic(2.0**39, 1e37),
        next_to_roots(order, 2, 300),
    ]
    return [
        linear(-1.5, 1.5),
        next_to_roots(order, 1, 1),
        tiny(),
        *(replace(region, scale=amplitude) for region in oscillating),
    ]


REGIONS = [
    linear(-3, 3),
    linear(3, 5),
    linear(5, 16),
    linear(16, 88),
    linear(88, 91.9, FLOAT32),
    linear(88, 713.9, FLOAT64),
    tiny(),
]


SCALED = [linear(-3, 3), linear(3, 5), linear(5, 16), logarithmic(16, 1e4), tiny()]


def scaled(v: int, x: mp.mpf) -> mp.mpf:
    return mp.besseli(v, x) * mp.exp(-abs(x))


OPERATIONS = [
    special(
        Accuracy(
            psm.J0,
            partial(mp.besselj, 0),
            regions(0),
            scipy.special.j0,
            ends=[(0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (nan, nan)],
        ),
        at=[1.6],
    ),
    special(
        Accuracy(
            psm.J1,
            partial(mp.besselj, 1),
            regions(1),
            scipy.special.j1,
            ends=[(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)],
        ),
        at=[1.6],
        is_slow=True,
    ),
    special(
        Accuracy(
            psm.I0,
            partial(mp.besseli, 0),
            REGIONS,
            scipy.special.i0,
            ends=[(0.0, 1.0), (-0.0, 1.0), (720.0, inf), (-720.0, inf), (1e38, inf), *NO_INFINITY],
        ),
        at=[1.6],
        kernel=WIDE,
    ),
    special(
        Accuracy(
            psm.I1,
            partial(mp.besseli, 1),
            REGIONS,
            scipy.special.i1,
            ends=[
                (0.0, 0.0),
                (-0.0, -0.0),
                (720.0, inf),
                (-720.0, -inf),
                (1e38, inf),
                *NO_INFINITY,
            ],
        ),
        at=[1.6],
        kernel=WIDE,
        is_slow=True,
    ),
    special(
        Accuracy(i0e.op_type, partial(scaled, 0), SCALED, scipy.special.i0e),
        kernel=WIDE,
        is_slow=True,
        ulp_again=4,
    ),
    special(
        Accuracy(i1e.op_type, partial(scaled, 1), SCALED, scipy.special.i1e),
        kernel=WIDE,
        is_slow=True,
        ulp_again=4,
    ),
]
