import itertools

import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    compile_definition,
)
from tests.functions.special.regions import Case, Region, linear, logarithmic, tiny

inf, nan, pi = np.inf, np.nan, np.pi


def plane() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.normal(size=size), rng.normal(size=size)]

    return Region("normal points", draw)


def wide_plane() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        power = {"float64": 300, "float32": 37}[dtype]
        y, x = 10.0 ** rng.uniform(-power, power, (2, size))
        return [y * rng.choice([-1.0, 1.0], size), x * rng.choice([-1.0, 1.0], size)]

    return Region("all magnitudes", draw)


def diagonals() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        y = rng.normal(size=size)
        return [y, y * (1 + 1e-3 * rng.normal(size=size)) * rng.choice([-1.0, 1.0], size)]

    return Region("next to the diagonals", draw)


CASES = [
    Case(
        ps.ArcSin,
        mp.asin,
        [linear(-0.5, 0.5), linear(0.5, 1), linear(-1, -0.5), linear(0.98, 1), tiny()],
    ),
    Case(
        ps.ArcCos,
        mp.acos,
        [linear(-0.5, 0.5), linear(0.5, 1), linear(-1, -0.5), linear(0.98, 1), tiny()],
    ),
    Case(ps.ArcTan, mp.atan, [linear(-1, 1), linear(1, 3), logarithmic(1), tiny()]),
    Case(ps.ArcTan2, mp.atan2, [plane(), wide_plane(), diagonals()]),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["ArcSin", "ArcTan"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for number in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(number): sign * float(number)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("ArcSin", dtype, {1.0: pi / 2, -1.0: -pi / 2, 1.1: nan, inf: nan, nan: nan})
    assert_values("ArcCos", dtype, {1.0: 0.0, 0.0: pi / 2, -1.0: pi, -1.1: nan, inf: nan, nan: nan})
    assert_values("ArcTan", dtype, {inf: pi / 2, -inf: -pi / 2, 1.0: pi / 4, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
def test_arctan2_heeds_the_signs_of_zeros_and_infinities(dtype):
    info = np.finfo(dtype)
    special = [0.0, 1.0, inf, info.max, info.tiny, info.smallest_subnormal, nan]
    signed = [sign * x for x, sign in itertools.product(special, [1, -1])]
    y, x = np.array(list(itertools.product(signed, signed)), dtype).T
    found, expected = compile_definition("ArcTan2", dtype)(y, x), np.arctan2(y, x)
    np.testing.assert_array_max_ulp(found, expected, 1)
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[real], np.signbit(expected)[real])
