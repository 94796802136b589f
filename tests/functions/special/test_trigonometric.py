import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import (
    FLOAT32,
    FLOAT64,
    Case,
    Region,
    linear,
    logarithmic,
    near_multiples_of_half_pi,
    tiny,
)

inf, nan = np.inf, np.nan


def _circle(bound_beyond_limit: float = 4.0) -> list[Region]:
    limit = 2.0**20
    return [
        linear(-1, 1),
        linear(-4, 4),
        linear(-100, 100),
        logarithmic(100, limit),
        near_multiples_of_half_pi(1, 100),
        near_multiples_of_half_pi(100, limit, FLOAT64),
        tiny(),
        logarithmic(limit, None, FLOAT32),
        logarithmic(limit, 1e300, FLOAT64, bound=bound_beyond_limit),
        near_multiples_of_half_pi(limit, 2.0**52, FLOAT64, bound=bound_beyond_limit),
    ]


CASES = [
    Case(ps.Sin, mp.sin, _circle()),
    Case(ps.Cos, mp.cos, _circle()),
    # Beyond the limit it is the quotient of two operators with errors of up to 3 ulp.
    Case(ps.Tan, mp.tan, _circle(bound_beyond_limit=6)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sin", "Tan"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for number in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(number): sign * float(number)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sin", "Cos", "Tan"])
def test_infinities_and_nan_give_nan(name, dtype):
    assert_values(name, dtype, {inf: nan, -inf: nan, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosine_of_zeros_is_one(dtype):
    assert_values("Cos", dtype, {0.0: 1.0})
    assert_values("Cos", dtype, {-0.0: 1.0})
