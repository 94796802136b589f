import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import math as psm

from tests.functions.special.accuracy import DTYPES, assert_values
from tests.functions.special.regions import FLOAT32, FLOAT64, Case, linear, logarithmic, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        psm.Softplus,
        lambda x: mp.log1p(mp.exp(x)),
        [
            linear(-5, 5),
            linear(0, 40),
            linear(-745, -5, FLOAT64),
            linear(-103, -5, FLOAT32),
            logarithmic(40),
            tiny(),
        ],
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_numbers_infinities_and_nan(dtype):
    largest = float(np.finfo(dtype).max)
    assert_values(
        "Softplus", dtype, {largest: largest, -largest: 0.0, inf: inf, -inf: 0.0, nan: nan}
    )
