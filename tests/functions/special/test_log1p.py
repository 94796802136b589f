import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_within_four_ulp(dtype):
    assert_accurate("Log1p", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("Log1p", dtype, {-1.0: -inf, -1.5: nan, inf: inf, -inf: nan, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(dtype, sign):
    info = np.finfo(dtype)
    for tiny in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values("Log1p", dtype, {sign * float(tiny): sign * float(tiny)})
