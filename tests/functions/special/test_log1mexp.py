import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, assert_accurate, assert_values

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_within_four_ulp(dtype):
    assert_accurate("Log1mexp", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("Log1mexp", dtype, {0.0: -inf, 1.0: nan, inf: nan, -inf: -0.0, nan: nan})
