from functools import partial

import mpmath as mp
import numpy as np
import pytest
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.ops.special import special_ops
from tests.functions.special.accuracy import DTYPES, assert_values, compile_definition
from tests.operations.regions import FLOAT32, FLOAT64, Accuracy, linear, logarithmic, tiny

inf, nan = np.inf, np.nan

REGIONS = [
    linear(-3, 3),
    linear(3, 5),
    linear(5, 16),
    linear(16, 88),
    linear(88, 91.9, FLOAT32),
    linear(88, 713.9, FLOAT64),
    tiny(),
]
SCALED = [linear(-3, 3), linear(3, 5), linear(5, 16), logarithmic(16, 1e4), tiny()]


def scaled(v: int, x: mp.mpf) -> mp.mpf:
    return mp.besseli(v, x) * mp.exp(-abs(x))


CASES = [
    Accuracy(psm.I0, partial(mp.besseli, 0), REGIONS, scipy.special.i0),
    Accuracy(psm.I1, partial(mp.besseli, 1), REGIONS, scipy.special.i1),
    Accuracy(special_ops.I0e, partial(scaled, 0), SCALED, scipy.special.i0e),
    Accuracy(special_ops.I1e, partial(scaled, 1), SCALED, scipy.special.i1e),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_zeros_and_far_away(dtype):
    assert_values("I0", dtype, {0.0: 1.0, 720.0: inf, -720.0: inf, nan: nan})
    assert_values("I0", dtype, {-0.0: 1.0, 1e38: inf})
    assert_values("I1", dtype, {0.0: 0.0, 720.0: inf, -720.0: -inf, nan: nan})
    assert_values("I1", dtype, {-0.0: -0.0, 1e38: inf})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["I0", "I1"])
def test_infinities_give_nan_as_in_scipy(name, dtype):
    assert np.isnan(getattr(scipy.special, name.lower())(inf))
    assert_values(name, dtype, {inf: nan, -inf: nan})


@pytest.mark.parametrize(("dtype", "last"), [("float64", 713.98), ("float32", 91.9)])
@pytest.mark.parametrize("name", ["I0", "I1"])
def test_they_overflow_where_their_values_do(name, dtype, last):
    near, beyond = compile_definition(name, dtype)(np.array([last, last + 0.02], dtype))
    assert near < np.finfo(dtype).max
    assert beyond == inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_scaled_functions_are_finite_far_away(dtype):
    for name, reference in (("I0e", scipy.special.i0e), ("I1e", scipy.special.i1e)):
        x = np.array([0.0, -0.0, 1e30, -1e30, inf, -inf, nan], dtype)
        found = compile_definition(name, dtype)(x)
        np.testing.assert_allclose(found, reference(x), rtol=4 * np.finfo(dtype).eps)
        # Odd, also where SciPy's is not: at -0.0.
        expected = np.signbit(x[:4]) & (name == "I1e")
        np.testing.assert_array_equal(np.signbit(found[:4]), expected)
