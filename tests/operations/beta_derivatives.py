"""Records of the derivatives of the incomplete beta function."""

from collections.abc import Callable

import mpmath as mp
import numpy as np

from pytensor_onnx.functions.special.beta_derivatives import (
    betainc_by_first,
    betainc_by_second,
    betainc_by_third,
)
from tests.operations.incomplete_beta import (
    anywhere,
    around_mean,
    exact_betainc,
    of_powers,
    of_student,
    region,
)
from tests.operations.record import special
from tests.operations.regions import FLOAT64, Accuracy, Sampler

inf, nan = np.inf, np.nan


def exact_derivative(index: int) -> Callable[[mp.mpf, mp.mpf, mp.mpf], mp.mpf]:
    """Take differences of the function, or of its complement where that is smaller."""

    def exact(*arguments: mp.mpf) -> mp.mpf:
        a, b, x = arguments
        if x * (a + b) > a:
            return -exact_derivative(1 - index)(b, a, 1 - x) if b > 1 else difference(*arguments)
        return difference(*arguments)

    def difference(*arguments: mp.mpf) -> mp.mpf:
        step = arguments[index] * mp.mpf(2) ** -32
        values = []
        for sign in (-2, -1, 1, 2):
            moved = [v + sign * step * (i == index) for i, v in enumerate(arguments)]
            values.append(exact_betainc(*moved))
        return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)

    return exact


def exact_density(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Evaluate the definition."""
    with mp.workprec(250):
        logarithm = (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x)
        return mp.exp(logarithm + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b))


def of_small_densities(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw ``x`` whose power ``x**a`` underflows, or nearly, where ``x**(a-1)`` does not."""
    a, b = 10 ** rng.uniform(np.log10(2), 1.5, size), 10 ** rng.uniform(-2, 3, size)
    power = rng.uniform(-305, -285, size)
    return [a, b, 10 ** ((power - np.log10(a) - a) / (a - 1))]


def far_from_mean(low: float, high: float) -> Sampler:
    """Draw ``x`` where results are 1e-300 to 1e-80, which takes exponents beyond a digit."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b, mean = around_mean(low, high, 0)(rng, size, dtype)
        deviations = rng.uniform(20, 33, size) * rng.choice([-1, 1], size)
        return [a, b, mean + deviations * np.sqrt(mean * (1 - mean) / (a + b))]

    return draw


REGIONS = [
    region("a, b 1 … 10, x within 2σ of the mean", around_mean(0, 1, 2), most=100),
    region("a, b 0.1 … 100, x 0 … 1", anywhere, most=100),
    region("a, b 1 … 100, x within 4σ of the mean", around_mean(0, 2, 4), most=100),
    region("a, b 100 … 1e5, x within 4σ of the mean", around_mean(2, 5, 4), FLOAT64, most=15),
    region("a, b 1e6 … 1e8, x within 2σ of the mean", around_mean(6, 8, 2), FLOAT64, most=1),
    region(
        "a 0.1 … 1, b 1 … 1e3, x 1e-8 … 1",
        of_powers((-1, 0), (0, 3), (-8, 0)),
        most=100,
    ),
    region(
        "a 1 … 1e3, b 0.01 … 1, 1-x 1e-15 … 1",
        of_powers((0, 3), (-2, 0), (-15, 0), at_one=True),
        most=100,
    ),
    region("a, b 0.01 … 1, x 1e-8 … 1", of_powers((-2, 0), (-2, 0), (-8, 0)), most=100, bound=40),
    region(
        "a 1e-4 … 0.1, b 1e-6 … 1e6, x 1e-300 … 1",
        of_powers((-4, -1), (-6, 6), (-300, 0)),
        FLOAT64,
        most=100,
    ),
    region("Student's t, ν 0.1 … 1e4, t 0.1 … 100", of_student, FLOAT64, most=100),
    region("a, b 1e4 … 1e6, x 20 … 33σ from the mean", far_from_mean(4, 6), FLOAT64, most=40),
]


DENSITIES = [
    region("a, b 1 … 10, x within 2σ of the mean", around_mean(0, 1, 2)),
    region("a, b 0.1 … 100, x 0 … 1", anywhere),
    region("a, b 100 … 1e5, x within 4σ of the mean", around_mean(2, 5, 4), FLOAT64),
    region("a, b 1e6 … 1e8, x within 4σ of the mean", around_mean(6, 8, 4), FLOAT64),
    region("a 1e-8 … 1, b 1 … 1e3, x 1e-8 … 1", of_powers((-8, 0), (0, 3), (-8, 0))),
    region(
        "a 1 … 1e3, b 1e-8 … 1, 1-x 1e-15 … 1",
        of_powers((0, 3), (-8, 0), (-15, 0), at_one=True),
    ),
    region("a, b 1e-8 … 1, x 1e-8 … 1", of_powers((-8, 0), (-8, 0), (-8, 0)), bound=100),
    region("a 2 … 30, b 0.01 … 1e3, results about 1e-300", of_small_densities, FLOAT64),
    region("a, b 1e4 … 1e8, x 20 … 33σ from the mean", far_from_mean(4, 8), FLOAT64, bound=200),
]


OPERATIONS = [
    special(
        Accuracy(betainc_by_first.op_type, exact_derivative(0), REGIONS, size=12), is_slow=True
    ),
    special(
        Accuracy(betainc_by_second.op_type, exact_derivative(1), REGIONS, size=12), is_slow=True
    ),
    special(Accuracy(betainc_by_third.op_type, exact_density, DENSITIES), is_slow=True),
]
