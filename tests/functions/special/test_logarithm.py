"""Logarithms and powers of two and of ten are exact where they are whole."""

import numpy as np
import pytest

from tests.functions.special.accuracy import DTYPES, compile_definition


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
