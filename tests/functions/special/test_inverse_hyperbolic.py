import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["ArcSinh", "ArcCosh", "ArcTanh"])
def test_errors_are_within_four_ulp(name, dtype):
    assert_accurate(name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["ArcSinh", "ArcTanh"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for tiny in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(tiny): sign * float(tiny)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("ArcSinh", dtype, {inf: inf, -inf: -inf, nan: nan})
    assert_values("ArcCosh", dtype, {1.0: 0.0, 0.9: nan, -1e20: nan, -inf: nan, inf: inf, nan: nan})
    assert_values(
        "ArcTanh", dtype, {1.0: inf, -1.0: -inf, 1.1: nan, -1e20: nan, inf: nan, nan: nan}
    )
