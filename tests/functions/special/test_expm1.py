import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_within_four_ulp(dtype):
    assert_accurate("Expm1", dtype)


@pytest.mark.parametrize(("dtype", "overflow"), [("float64", 709.79), ("float32", 88.73)])
def test_values_at_the_ends_of_the_domain(dtype, overflow):
    assert_values("Expm1", dtype, {overflow: inf, inf: inf, -800.0: -1.0, -inf: -1.0, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(dtype, sign):
    info = np.finfo(dtype)
    for tiny in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values("Expm1", dtype, {sign * float(tiny): sign * float(tiny)})
