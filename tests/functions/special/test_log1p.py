import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import Case, linear, logarithmic, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        ps.Log1p,
        mp.log1p,
        [linear(-0.999, -0.5), linear(-0.5, 0.5), linear(0.5, 3), logarithmic(1), tiny()],
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("Log1p", dtype, {-1.0: -inf, -1.5: nan, inf: inf, -inf: nan, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(dtype, sign):
    info = np.finfo(dtype)
    for number in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values("Log1p", dtype, {sign * float(number): sign * float(number)})
