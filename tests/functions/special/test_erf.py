import mpmath as mp
import numpy as np
import pytest
import scipy.special
from pytensor.scalar import math as psm

from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    compile_definition,
)
from tests.operations.regions import FLOAT32, FLOAT64, Accuracy, linear, logarithmic, tiny

inf, nan = np.inf, np.nan


def exact_erfcx(x: mp.mpf) -> mp.mpf:
    if x > 1e20:
        return 1 / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


CASES = [
    Accuracy(psm.Erf, mp.erf, [linear(-1, 1), linear(-2, 2), linear(-6, 6), tiny()]),
    Accuracy(
        psm.Erfc,
        mp.erfc,
        [
            linear(-6, 0),
            linear(0, 1),
            linear(1, 2),
            linear(2, 6),
            linear(6, 26.5, FLOAT64),
            linear(26.5, 27.3, FLOAT64),
            linear(3, 9.2, FLOAT32),
            linear(9.2, 10.1, FLOAT32),
            tiny(),
        ],
    ),
    Accuracy(
        psm.Erfcx,
        exact_erfcx,
        [
            linear(-1, 0),
            linear(0, 1),
            linear(1, 10),
            linear(-26.6, -1, FLOAT64),
            linear(-9.3, -1, FLOAT32),
            logarithmic(10),
            tiny(),
        ],
        scipy.special.erfcx,
    ),
]


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


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfcx_of_zeros_infinities_and_nan(dtype):
    assert_values("Erfcx", dtype, {0.0: 1.0, inf: 0.0, -inf: inf, nan: nan, -28.0: inf})
    assert_values("Erfcx", dtype, {-0.0: 1.0})


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
