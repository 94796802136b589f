import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_within_four_ulp(dtype):
    assert_accurate("Softplus", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_numbers_infinities_and_nan(dtype):
    largest = float(np.finfo(dtype).max)
    assert_values(
        "Softplus", dtype, {largest: largest, -largest: 0.0, inf: inf, -inf: 0.0, nan: nan}
    )
