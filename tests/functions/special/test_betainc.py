"""The regularized incomplete beta function."""

import mpmath as mp
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.functions.special import betainc
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region, Sampler

inf, nan = np.inf, np.nan


def exact_betainc(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Take the continued fraction (DLMF 8.17.22) where it converges, and else its complement."""
    with mp.workprec(200):
        if x < (a + 1) / (a + b + 2):
            return _fraction(a, b, x)
        return 1 - _fraction(b, a, 1 - x)


def _fraction(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Evaluate the fraction by the recurrences of numerators and denominators."""
    logarithm = a * mp.log(x) + b * mp.log1p(-x)
    factor = mp.exp(logarithm + mp.loggamma(a + b) - mp.loggamma(a + 1) - mp.loggamma(b))
    before, top, bottom_before, bottom = mp.mpf(1), mp.mpf(1), mp.mpf(0), mp.mpf(1)
    m, value = 0, mp.mpf(0)
    while True:
        for d in (
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
            (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)),
        ):
            before, top = top, top + d * before
            bottom_before, bottom = bottom, bottom + d * bottom_before
        m += 1
        before, top, bottom_before = before / bottom, top / bottom, bottom_before / bottom
        bottom = mp.mpf(1)
        if abs(top - value) < abs(top) * mp.mpf(2) ** -100 and m > 3:
            return factor / top
        value = top


def region(
    label: str,
    draw: Sampler,
    dtypes: tuple[str, ...] = BOTH,
    *,
    bound: float = 450.0,
    most: int | None = None,
) -> Region:
    """Make a region of points within the domain."""

    def within(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b, x = draw(rng, min(size, most or size), dtype)
        return [a, b, np.clip(x, np.finfo(dtype).tiny, 1 - np.finfo(dtype).epsneg)]

    return Region(label, within, dtypes, bound)


def powers(rng: np.random.Generator, low: float, high: float, size: int) -> np.ndarray:
    """Draw numbers uniformly on a logarithmic scale, between two powers of ten."""
    return 10 ** rng.uniform(low, high, size)


def around_mean(low: float, high: float, deviations: float) -> Sampler:
    """Draw both parameters on a logarithmic scale, and ``x`` around the mean."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b = powers(rng, low, high, size), powers(rng, low, high, size)
        mean = a / (a + b)
        width = np.sqrt(mean * (1 - mean) / (a + b))
        return [a, b, mean + rng.uniform(-deviations, deviations, size) * width]

    return draw


def of_powers(first: tuple, second: tuple, third: tuple, *, at_one: bool = False) -> Sampler:
    """Draw all on logarithmic scales, ``x`` or its distance from one."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b, x = (powers(rng, *ends, size) for ends in (first, second, third))
        return [a, b, 1 - x if at_one else x]

    return draw


def of_student(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw arguments of the distribution function of Student's t distribution."""
    degrees, t = powers(rng, -1, 4, size), powers(rng, -1, 2, size)
    return [degrees / 2, np.full(size, 0.5), degrees / (degrees + t * t)]


def anywhere(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    return [powers(rng, -1, 2, size), powers(rng, -1, 2, size), rng.uniform(0, 1, size)]


def tiny(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw points where results are tiny, which takes exponents beyond their last digit."""
    a, b, x = powers(rng, 0, 4, 400 * size), powers(rng, -1, 4, 400 * size), rng.random(400 * size)
    found = scipy.special.betainc(a, b, x)
    chosen = (found > 1e-300) & (found < 1e-90)
    return [v[chosen][:size] for v in (a, b, x)]


# 1e-13 is 450 ulp at least.
REGIONS = [
    region("a, b 0.1 … 100, x 0 … 1", anywhere),
    region("a, b 1 … 100, x within 4σ of the mean", around_mean(0, 2, 4)),
    region("a, b 100 … 1e5, x within 4σ of the mean", around_mean(2, 5, 4), FLOAT64, most=40),
    region("a, b 1e6 … 1e8, x within 4σ of the mean", around_mean(6, 8, 4), FLOAT64, most=4),
    region("a, b 100 … 1e4, x within 30σ of the mean", around_mean(2, 4, 30), FLOAT64, bound=400),
    region("a 1e-8 … 1, b 1 … 1e3, x 1e-8 … 1", of_powers((-8, 0), (0, 3), (-8, 0)), bound=40),
    region(
        "a 1 … 1e3, b 1e-8 … 1, 1-x 1e-15 … 1",
        of_powers((0, 3), (-8, 0), (-15, 0), at_one=True),
    ),
    region("a, b 1e-8 … 1, x 1e-8 … 1", of_powers((-8, 0), (-8, 0), (-8, 0)), bound=40),
    region(
        "a, b 1e-8 … 1, 1-x 1e-15 … 1",
        of_powers((-8, 0), (-8, 0), (-15, 0), at_one=True),
        bound=40,
    ),
    region("a 1 … 100, b 1 … 1e3, x 1e-40 … 0.1", of_powers((0, 2), (0, 3), (-40, -1)), FLOAT64),
    region("Student's t, ν 0.1 … 1e4, t 0.1 … 100", of_student, FLOAT64),
    region("a 1 … 1e4, b 0.1 … 1e4, results 1e-300 … 1e-90", tiny, FLOAT64, bound=300),
]
CASES = [Accuracy(psm.BetaInc, exact_betainc, REGIONS, scipy.special.betainc, size=60)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain_are_those_of_scipy(dtype):
    ends = [0.0, -0.0, -1.0, 0.5, 3.0, inf, -inf, nan]
    points = [0.0, -0.0, 1.0, -0.5, 1.5, 0.3, inf, nan]
    a, b, x = (v.ravel().astype(dtype) for v in np.meshgrid(ends, ends, points))
    with np.errstate(all="ignore"):
        expected = scipy.special.betainc(a, b, x)
    found = compile_definition("BetaInc", dtype)(a, b, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_extreme_numbers_give_what_scipy_gives():
    sizes = [1e-8, 0.7, 30.0, 1e8, 1e30, 1e300, 8e307]
    points = [1e-300, 1e-30, 1e-9, 0.3, 1 - 1e-9, 1 - 2**-53]
    a, b, x = (v.ravel() for v in np.meshgrid(sizes, sizes, points))
    expected = scipy.special.betainc(a, b, x)
    # The limit is the incomplete gamma function of 30 and b x = 1, where SciPy is NaN.
    expected[np.isnan(expected)] = scipy.special.gammainc(30, 1)
    found = compile_definition("BetaInc", "float64")(a, b, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_tiny_parameters_leave_all_weight_at_the_ends():
    a, b = (v.ravel() for v in np.meshgrid([1e-300, 1e-100, 1e-20], [1e-300, 1e-100, 1e-20]))
    found = compile_definition("BetaInc", "float64")(a, b, np.full(9, 0.4))
    np.testing.assert_allclose(found, b / (a + b), rtol=1e-15)


def test_elements_for_which_the_quadrature_finds_no_interval_are_nan(monkeypatch):
    monkeypatch.setattr(betainc, "_widest", lambda d, mass, last: pt.ones_like(d) * 0.9)
    run = compile_definition.__wrapped__("BetaInc", "float64")
    assert np.isnan(run(np.array([1e4]), np.array([1e4]), np.array([0.5]))).all()


@pytest.mark.slow
def test_arguments_broadcast_and_are_cast_as_by_pytensor():
    a, b = pt.col("a", dtype="float32"), pt.vector("b", dtype="int8")
    x, half = pt.scalar("x"), pt.vector("half", dtype="float16")
    k, empty = pt.scalar("k", dtype="int64"), pt.matrix("empty")
    values = [
        np.array([[0.3], [2.0], [40.0]], "float32"),
        np.array([1, 4], "int8"),
        np.array(0.4),
        np.array([0.5, 0.25], "float16"),
        np.array(3),
        np.ones((0, 2)),
    ]
    arguments = [(a, b, x), (k, k, x), (k, b, half), (a, k, half), (2, empty, x)]
    outputs = [pt.betainc(*v) for v in arguments]
    compare_onnx_and_py([a, b, x, half, k, empty], outputs, values)


def test_betainc_runs_in_functions_and_loops():
    a, b, x = pt.vectors("a", "b", "x")
    values = [np.array([0.5, 2.0, 300.0]), np.array([0.3, 5.0, 29.0]), np.array([0.1, 0.5, 0.9])]
    inner = called(pt.betainc, a, b, x)
    steps = pytensor.scan(
        pt.betainc, sequences=[a], non_sequences=[b, x], outputs_info=[None], return_updates=False
    )
    compare_onnx_and_py([a, b, x], [inner, steps], values)


def test_tiny_parameters_beside_large_ones_overflow_nowhere():
    a, b, x = np.array([[1e-300, 1e10, 5e-324], [1e-300, 1e10, 0.5], [5e-324, 1.0, 0.5]]).T
    np.testing.assert_array_equal(compile_definition("BetaInc", "float64")(a, b, x), np.ones(3))


def test_the_tiniest_numbers_have_results():
    """Rounding errors of their logarithms have no floats."""
    a, b, x = pt.dvectors("a", "b", "x")
    f = pytensor.function([a, b, x], pt.betainc(a, b, x), mode="ONNX")
    results = f([0.5, 170.0, 0.5], [1e-20, 5e-324, 2.3e-308], [5e-324, 0.3, 5e-324])
    np.testing.assert_allclose(results, [4.445517498970155e-182, 0, 0], rtol=1e-13)
