import mpmath as mp
import numpy as np
import pytest

from tests.functions.special.accuracy import (
    DTYPES,
    PRECISION,
    assert_values,
    compile_definition,
    errors_in_ulp,
)
from tests.operations.error_functions import exact_erfcinv
from tests.operations.regions import (
    BOTH,
    SMALLEST,
)

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfinv_at_the_ends_of_its_domain(dtype):
    values = {1.0: inf, -1.0: -inf, 1.5: nan, -1.5: nan, inf: nan, -inf: nan, nan: nan, 0.0: 0.0}
    assert_values("Erfinv", dtype, values)
    assert_values("Erfinv", dtype, {-0.0: -0.0})


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfcinv_at_the_ends_of_its_domain(dtype):
    values = {0.0: inf, 2.0: -inf, 1.0: 0.0, -0.5: nan, 2.5: nan, inf: nan, -inf: nan, nan: nan}
    assert_values("Erfcinv", dtype, values)
    assert_values("Erfcinv", dtype, {-0.0: inf})


@pytest.mark.parametrize("dtype", DTYPES)
def test_ndtri_exp_at_the_ends_of_its_domain(dtype):
    values = {0.0: inf, 1e-5: nan, 1000.0: nan, inf: nan, -inf: -inf, nan: nan}
    assert_values("NdtriExp", dtype, values)
    assert_values("NdtriExp", dtype, dict.fromkeys([10.0**n for n in range(38)], nan))
    assert_values("NdtriExp", dtype, {-0.0: inf})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "inverse"), [("Erf", "Erfinv"), ("Erfc", "Erfcinv")])
def test_inverses_come_back(name, inverse, dtype):
    y = np.linspace(-2, 2, 101).astype(dtype)
    there, back = compile_definition(name, dtype), compile_definition(inverse, dtype)
    # An ulp of the value of the function is as many of the argument.
    slope = 2 / np.sqrt(np.pi) * np.exp(-y * y)
    room = 4 * np.spacing(np.abs(there(y))) / slope + 4 * np.spacing(np.abs(y))
    assert np.all(np.abs(back(there(y)) - y) <= room)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", BOTH)
def test_the_tail_of_erfcinv_has_no_seams(dtype):
    q = np.exp(np.linspace(np.log(SMALLEST[dtype]), np.log(2 / 3), 2000)).astype(dtype)
    with mp.workprec(PRECISION):
        exact = [exact_erfcinv(mp.mpf(float(value))) for value in q]
    assert errors_in_ulp(compile_definition("Erfcinv", dtype)(q), exact).max() < 3
