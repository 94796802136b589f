import numpy as np
import pytest

from tests.functions.special.accuracy import (
    DTYPES,
    assert_accurate,
    assert_values,
    compile_definition,
)

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Erf", "Erfc"])
def test_errors_are_within_four_ulp(name, dtype):
    assert_accurate(name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_erf_of_zeros_infinities_and_nan(dtype):
    assert_values("Erf", dtype, {0.0: 0.0, 30.0: 1.0, -30.0: -1.0, inf: 1.0, -inf: -1.0, nan: nan})
    assert_values("Erf", dtype, {-0.0: -0.0})


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfc_of_zeros_infinities_and_nan(dtype):
    assert_values("Erfc", dtype, {0.0: 1.0, 30.0: 0.0, -30.0: 2.0, inf: 0.0, -inf: 2.0, nan: nan})


@pytest.mark.parametrize(("dtype", "last"), [("float64", 27.2), ("float32", 10.0)])
def test_erfc_fades_through_the_subnormal_numbers_to_zero(dtype, last):
    erfc = compile_definition("Erfc", dtype)
    x = np.linspace(last - 1, last + 2, 1000, dtype=dtype)
    found = erfc(x)
    assert np.all(np.diff(found) <= 0)
    assert 0 < found[x < last].min() < np.finfo(dtype).tiny
    assert found[-1] == 0
