import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import math as psm

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import FLOAT32, FLOAT64, Case, linear, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        psm.Sigmoid,
        lambda x: 1 / (1 + mp.exp(-x)),
        [
            linear(-5, 5),
            linear(0, 40),
            linear(-745, -5, FLOAT64),
            linear(-103, -5, FLOAT32),
            tiny(),
        ],
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_infinities_and_nan(dtype):
    assert_values("Sigmoid", dtype, {0.0: 0.5, 800.0: 1.0, inf: 1.0, -inf: 0.0, nan: nan})
