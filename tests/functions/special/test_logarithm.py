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
@pytest.mark.parametrize("name", ["Log2", "Log10", "Exp2"])
def test_errors_are_within_four_ulp(name, dtype):
    assert_accurate(name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Log2", "Log10"])
def test_logarithms_at_the_ends_of_the_domain(name, dtype):
    assert_values(name, dtype, {0.0: -inf, -1.0: nan, 1.0: 0.0, inf: inf, -inf: nan, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp2_of_infinities_and_nan(dtype):
    assert_values("Exp2", dtype, {inf: inf, 1100.0: inf, -inf: 0.0, -1100.0: 0.0, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
def test_log2_and_exp2_are_exact_at_powers_of_two(dtype):
    info = np.finfo(dtype)
    powers = np.arange(info.minexp - info.nmant, info.maxexp)
    numbers = np.ldexp(np.ones(1, dtype), powers)
    np.testing.assert_array_equal(compile_definition("Log2", dtype)(numbers), powers)
    np.testing.assert_array_equal(compile_definition("Exp2", dtype)(powers.astype(dtype)), numbers)


@pytest.mark.parametrize(("dtype", "last"), [("float64", 308), ("float32", 38)])
def test_log10_is_exact_at_powers_of_ten(dtype, last):
    powers = np.arange(1 - last, last + 1)
    numbers = np.array([float(f"1e{power}") for power in powers], dtype)
    np.testing.assert_array_equal(compile_definition("Log10", dtype)(numbers), powers)
