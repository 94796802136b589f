import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    compile_definition,
)
from tests.functions.special.regions import FLOAT32, FLOAT64, Case, linear, logarithmic, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        ps.Log2,
        lambda x: mp.log(x, 2),
        [linear(0.5, 2), linear(0.95, 1.05), linear(2, 16), logarithmic(0)],
    ),
    Case(
        ps.Log10,
        lambda x: mp.log(x, 10),
        [linear(0.5, 2), linear(0.95, 1.05), linear(2, 16), logarithmic(0)],
    ),
    Case(
        ps.Exp2,
        lambda x: mp.mpf(2) ** x,
        [linear(-1, 1), linear(-1074, 1023.9, FLOAT64), linear(-149, 127.9, FLOAT32), tiny()],
    ),
]


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
