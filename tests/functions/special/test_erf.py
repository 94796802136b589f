import numpy as np
import pytest

from tests.functions.special.accuracy import (
    compile_definition,
)

inf, nan = np.inf, np.nan


@pytest.mark.parametrize(("dtype", "last"), [("float64", 27.2), ("float32", 10.0)])
def test_erfc_fades_through_the_subnormal_numbers_to_zero(dtype, last):
    erfc = compile_definition("Erfc", dtype)
    x = np.linspace(last - 1, last + 2, 1000, dtype=dtype)
    found = erfc(x)
    assert np.all(np.diff(found) <= 0)
    assert 0 < found[x < last].min() < np.finfo(dtype).tiny
    assert found[-1] == 0


@pytest.mark.parametrize(
    ("dtype", "first", "bound"),
    [
        ("float64", 26.6288, 26.65),
        ("float32", 9.3825, 9.42),
    ],
)
def test_erfcx_just_beyond_the_largest_numbers_is_infinite(dtype, first, bound):
    x = -np.linspace(first, bound, 300, dtype=dtype)
    assert np.all(compile_definition("Erfcx", dtype)(x) == inf)


@pytest.mark.parametrize(("dtype", "last"), [("float64", 26.6287), ("float32", 9.38241)])
def test_erfcx_overflows_where_its_value_does(dtype, last):
    x = np.array([-last, -last - 1e-4], dtype)
    near, beyond = compile_definition("Erfcx", dtype)(x)
    assert near < np.finfo(dtype).max
    assert beyond == inf
