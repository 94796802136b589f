import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import math as psm

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import FLOAT32, FLOAT64, Case, linear, logarithmic

inf, nan = np.inf, np.nan


def _log1mexp(x: mp.mpf) -> mp.mpf:
    return mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


CASES = [
    Case(
        psm.Log1mexp,
        _log1mexp,
        [
            linear(-1, -0.001),
            linear(-3, -0.6),
            linear(-745, -3, FLOAT64),
            linear(-103, -3, FLOAT32),
            logarithmic(0, 1, sign=-1),
        ],
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("Log1mexp", dtype, {0.0: -inf, 1.0: nan, inf: nan, -inf: -0.0, nan: nan})
