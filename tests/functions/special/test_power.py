import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.functions.special.exponential import log_of_normal_with_rest, power_of_logarithm
from tests.functions.special.accuracy import compile_as_written, errors_in_ulp

inf, nan = np.inf, np.nan
rng = np.random.default_rng(1)
bases = np.exp(rng.uniform(-3, 3, 400))


@pytest.fixture(scope="module")
def power():
    x, y = pt.vectors("x", "y")
    logarithm = log_of_normal_with_rest(x * 2.0**-60, pt.full_like(x, 60.0))
    return compile_as_written([x, y], power_of_logarithm(y, *logarithm))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (rng.uniform(0, 1, 400), rng.uniform(-20, 20, 400)),
        (np.exp(rng.uniform(-600, 600, 400)), rng.uniform(-1.1, 1.1, 400)),
        (1 + rng.uniform(-0.5, 0.5, 400) * 1e-3, rng.uniform(-700, 700, 400)),
        (bases, rng.uniform(-740, 709, 400) / np.log(bases)),
    ],
    ids=["moderate", "large bases", "bases near one", "results of all sizes"],
)
def test_powers_of_positive_numbers_are_accurate(power, x, y):
    exponent = np.abs(y * np.log(x))
    bound = 1 + 2.0**53 * np.minimum(1.5e-17 * np.abs(y), 3.5e-17 * exponent)
    with mp.workprec(200):
        exact = [mp.mpf(base) ** mp.mpf(exponent) for base, exponent in zip(x, y, strict=True)]
    assert np.all(errors_in_ulp(power(x, y), exact) <= bound)


def test_powers_have_their_limits(power):
    x = np.array([1, 2, 2, 0.5, 0.5, 1, 1e308, 1e-269, 0.999, 2, 1e-269])
    y = np.array([0, 1e305, -1e305, 1e308, -1e308, 1e308, 1, 1, 1.7e308, nan, -2])
    expected = [1, inf, 0, 0, inf, 1, 1e308, 1e-269, 0, nan, inf]
    np.testing.assert_allclose(power(x, y), expected, rtol=1e-15)
