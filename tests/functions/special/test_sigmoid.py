import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_within_four_ulp(dtype):
    assert_accurate("Sigmoid", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_infinities_and_nan(dtype):
    assert_values("Sigmoid", dtype, {0.0: 0.5, 800.0: 1.0, inf: 1.0, -inf: 0.0, nan: nan})
