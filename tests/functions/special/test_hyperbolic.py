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
@pytest.mark.parametrize("name", ["Sinh", "Cosh", "Tanh"])
def test_errors_are_within_four_ulp(name, dtype):
    assert_accurate(name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sinh", "Tanh"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for tiny in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(tiny): sign * float(tiny)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_infinities_and_nan(dtype):
    assert_values("Sinh", dtype, {inf: inf, -inf: -inf, nan: nan})
    assert_values("Cosh", dtype, {0.0: 1.0, inf: inf, -inf: inf, nan: nan})
    assert_values("Tanh", dtype, {inf: 1.0, 50.0: 1.0, -50.0: -1.0, -inf: -1.0, nan: nan})


@pytest.mark.parametrize(("dtype", "last"), [("float64", 710.4758), ("float32", 89.4159)])
@pytest.mark.parametrize("name", ["Sinh", "Cosh"])
def test_overflow_comes_no_earlier_than_the_largest_number(name, dtype, last):
    run = compile_definition(name, dtype)
    assert np.isfinite(run(np.array([last], dtype)))
    assert np.isinf(run(np.array([last + 1e-3], dtype)))
