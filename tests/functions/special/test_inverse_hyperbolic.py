import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import Case, linear, logarithmic, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        ps.ArcSinh,
        mp.asinh,
        [linear(-1, 1), linear(1, 5), logarithmic(1), logarithmic(1, sign=-1), tiny()],
    ),
    Case(ps.ArcCosh, mp.acosh, [linear(1, 1.1), linear(1, 5), logarithmic(1)]),
    Case(
        ps.ArcTanh,
        mp.atanh,
        [linear(-0.5, 0.5), linear(0.5, 0.999999), linear(-0.999999, -0.5), tiny()],
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["ArcSinh", "ArcTanh"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for number in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(number): sign * float(number)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("ArcSinh", dtype, {inf: inf, -inf: -inf, nan: nan})
    assert_values("ArcCosh", dtype, {1.0: 0.0, 0.9: nan, -1e20: nan, -inf: nan, inf: inf, nan: nan})
    assert_values(
        "ArcTanh", dtype, {1.0: inf, -1.0: -inf, 1.1: nan, -1e20: nan, inf: nan, nan: nan}
    )
