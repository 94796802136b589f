import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sin", "Cos", "Tan"])
def test_errors_are_within_the_bounds(name, dtype):
    assert_accurate(name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sin", "Tan"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for tiny in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(tiny): sign * float(tiny)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sin", "Cos", "Tan"])
def test_infinities_and_nan_give_nan(name, dtype):
    assert_values(name, dtype, {inf: nan, -inf: nan, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosine_of_zeros_is_one(dtype):
    assert_values("Cos", dtype, {0.0: 1.0})
    assert_values("Cos", dtype, {-0.0: 1.0})
