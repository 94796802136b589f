import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import FLOAT32, FLOAT64, Case, linear, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        ps.Expm1,
        mp.expm1,
        [
            linear(-1, 1),
            linear(-3, -0.5),
            linear(0.5, 3),
            linear(-40, 709.7, FLOAT64),
            linear(-40, 88.7, FLOAT32),
            tiny(),
        ],
    ),
]


@pytest.mark.parametrize(("dtype", "overflow"), [("float64", 709.79), ("float32", 88.73)])
def test_values_at_the_ends_of_the_domain(dtype, overflow):
    assert_values("Expm1", dtype, {overflow: inf, inf: inf, -800.0: -1.0, -inf: -1.0, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(dtype, sign):
    info = np.finfo(dtype)
    for number in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values("Expm1", dtype, {sign * float(number): sign * float(number)})
