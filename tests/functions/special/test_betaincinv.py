"""The inverse of the regularized incomplete beta function."""

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.functions.special import betaincinv
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.functions.special.test_betainc import exact_betainc, powers
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


def exact_inverse(a: mp.mpf, b: mp.mpf, p: mp.mpf) -> mp.mpf:
    """Improve SciPy's value, or the first term of the series, by Newton's method in the logit."""
    beta = mp.beta(a, b)
    first = mp.exp((mp.log(p) + mp.log(a) + mp.log(beta)) / a)
    if first < 1e-60:
        return first
    last = mp.exp((mp.log(1 - p) + mp.log(b) + mp.log(beta)) / b)
    if last < 1e-30:
        return 1 - last
    start = scipy.special.betaincinv(float(a), float(b), float(p))
    x = first if first * b < 0.1 else mp.mpf(min(float(start), 1 - 2**-53))
    # Of two small parameters the first term is nearly x / (1 - x).
    logit = mp.log(first if max(a, b) < 0.02 else x / (1 - x))
    for _ in range(60):
        x = 1 / (1 + mp.exp(-logit))
        below = exact_betainc(a, b, x)
        density = x**a * (1 - x) ** b / beta
        if p < 0.5:
            change = mp.log(p / below) * below / density
        else:
            change = mp.log((1 - below) / (1 - p)) * (1 - below) / density
        logit += change
        if abs(change) < 1e-14:
            break
    return 1 / (1 + mp.exp(-logit))


def region(
    first: tuple[float, float],
    second: tuple[float, float],
    shares: tuple[float, float],
    dtypes: tuple[str, ...] = BOTH,
    *,
    most: int = 25,
    bound: float = 450.0,
) -> Region:
    """Draw parameters between powers of ten, and shares, on such a scale where they are small."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        size = min(size, most)
        a, b = powers(rng, *first, size), powers(rng, *second, size)
        if shares[0] > 0:
            return [a, b, rng.uniform(*shares, size)]
        return [a, b, powers(rng, *shares, size)]

    ends = [f"1e{low:g} … 1e{high:g}" for low, high in (first, second)]
    exponents = shares[0] <= 0
    last = f"1e{shares[0]:g} … 1e{shares[1]:g}" if exponents else f"{shares[0]:g} … {shares[1]:g}"
    return Region(f"a {ends[0]}, b {ends[1]}, share {last}", draw, dtypes, bound)


def next_to_one(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw a small parameter, and shares nearly 1 for results between 0.1 and 0.9."""
    a, b = powers(rng, -10, -3, min(size, 25)), powers(rng, -1, 1, min(size, 25))
    return [a, b, scipy.special.betainc(a, b, rng.uniform(0.1, 0.9, len(a)))]


def next_to_zero(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw a small parameter, and shares for results between 1e-300 and 1e-10."""
    size = min(size, 25)
    a, b = powers(rng, -4, 0, size), powers(rng, -2, 6, size)
    power = a * rng.uniform(-690, -23, size)
    return [a, b, np.exp(power) * b / (a + b)]


def of_tiny_parameters(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw shares that differ by their last digits, for results that are not next to 0 and 1."""
    a, b = powers(rng, -12, -2, min(size, 50)), powers(rng, -12, -2, min(size, 50))
    return [a, b, b / (a + b) * (1 + np.minimum(a, b) * rng.uniform(-20, 20, len(a)))]


REGIONS = [
    region((-0.3, 1.7), (-0.3, 1.7), (0.001, 0.999), bound=40),
    region((-1, 2), (-1, 2), (0.001, 0.999), bound=100),
    region((-2, 0), (-2, 0), (0.001, 0.999), FLOAT64, bound=200),
    region((0, 2), (0, 2), (-250, -5), FLOAT64),
    region((2, 4), (2, 4), (0.001, 0.999), FLOAT64, most=15, bound=40),
    region((6, 8), (6, 8), (0.001, 0.999), FLOAT64, most=2, bound=40),
    region((2, 8), (-2, 1), (-300, -100), FLOAT64, bound=40),
    Region("a 1e-4 … 1, b 0.01 … 1e6, results 1e-300 … 1e-10", next_to_zero, FLOAT64, 100),
    Region("a, b 1e-12 … 0.01, results within 0 … 1", of_tiny_parameters, FLOAT64, 40),
    Region("a 1e-10 … 1e-3, b 0.1 … 10, shares next to 1", next_to_one, FLOAT64, 100),
]
CASES = [Accuracy(psm.BetaIncInv, exact_inverse, REGIONS, scipy.special.betaincinv)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.few(1)
def test_values_at_the_ends_and_outside_are_those_of_scipy(dtype):
    ends = [0.0, -1.0, 0.5, 3.0, inf, -inf, nan]
    points = [0.0, 1.0, -0.5, 1.5, 0.3, inf, nan]
    a, b, p = (v.ravel().astype(dtype) for v in np.meshgrid(ends, ends, points))
    with np.errstate(all="ignore"):
        expected = scipy.special.betaincinv(a, b, p)
    found = compile_definition("BetaIncInv", dtype)(a, b, p)
    # SciPy computes float32 in float32.
    np.testing.assert_allclose(found, expected, rtol=3e-6 if dtype == "float32" else 1e-13)


def test_results_that_underflow_are_zero_and_results_next_to_one_are_one():
    a, b = np.array([1e-300, 1e-3, 5e-12, 0.5, 1e-3]), np.array([0.5, 2.0, 4e-13, 1e-4, 1e-3])
    p = np.array([0.5, 0.1, 4e-305, 0.9, 0.8])
    found = compile_definition("BetaIncInv", "float64")(a, b, p)
    np.testing.assert_array_equal(found, [0, 0, 0, 1, 1])


def test_the_tiniest_and_the_largest_parameters():
    a, b = np.array([1e-300, 1e-8, 0.5, 1e30, 1.0]), np.array([1e-300, 1e-8, 1e-300, 1.5, 1e300])
    p = np.array([1e-310, 5e-324, 0.5, 0.7, 1e-3])
    found = compile_definition("BetaIncInv", "float64")(a, b, p)
    np.testing.assert_allclose(found, [0, 0, 1, 1, 1.0005003335835344e-303], rtol=1e-13)


def test_probabilities_next_to_one_have_results_next_to_one():
    a, b, count = np.meshgrid([1.05, 1.55, 2.3, 9.6], [0.92, 0.966, 0.98, 0.99], [1, 2, 4, 8])
    a, b, p = a.ravel(), b.ravel(), 1 - count.ravel() * 2.0**-53
    found = compile_definition("BetaIncInv", "float64")(a, b, p)
    np.testing.assert_allclose(found, scipy.special.betaincinv(a, b, p), rtol=5e-16)


def test_steps_into_underflow_return():
    a, b = np.array([0.00521322, 0.00792035]), np.array([490.02805698, 543.72753892])
    p = 1 - np.array([2.10918838e-10, 8.33833003e-12])
    found = compile_definition("BetaIncInv", "float64")(a, b, p)
    np.testing.assert_allclose(found, scipy.special.betaincinv(a, b, p), rtol=1e-13)


def test_a_small_parameter_beside_a_large_one():
    a = np.array([0.174, 0.545, 0.447, 0.534, 0.62, 0.239])
    b = np.array([82166206.0, 89901264.0, 72599211.0, 51339438.0, 30616449.0, 60592254.0])
    p = np.array([0.91, 0.742, 0.7275, 0.7813, 0.695, 0.862])
    found = compile_definition("BetaIncInv", "float64")(a, b, p)
    np.testing.assert_allclose(found, scipy.special.betaincinv(a, b, p), rtol=2e-14)


def test_the_largest_parameters():
    rng = np.random.default_rng(0)
    a, b, p = powers(rng, 10, 13, 500), powers(rng, 10, 13, 500), rng.uniform(0, 1, 500)
    found = compile_definition("BetaIncInv", "float64")(a, b, p)
    # SciPy's inverse is off by more.
    np.testing.assert_allclose(scipy.special.betainc(a, b, found), p, atol=1e-7)


def test_it_inverts_the_function():
    rng = np.random.default_rng(0)
    a, b = powers(rng, -2, 8, 1000), powers(rng, -2, 8, 1000)
    p = rng.uniform(0.0, 1.0, 1000)
    x = compile_definition("BetaIncInv", "float64")(a, b, p)
    inner = (x > 1e-300) & (x < 1)
    a, b, p, x = (v[inner] for v in (a, b, p, x))
    found = compile_definition("BetaInc", "float64")(a, b, x)
    with np.errstate(all="ignore"):
        logarithm = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy.special.betaln(a, b)
    # One unit in the last place of x is this much of the function.
    slope = x * np.exp(logarithm)
    assert len(x) > 800
    np.testing.assert_array_less(np.abs(found - p), 1e-13 * p + 3e-16 * (1 + slope))


def test_elements_that_do_not_converge_are_nan(monkeypatch):
    monkeypatch.setattr(betaincinv, "_STEPS", 1)
    run = compile_definition.__wrapped__("BetaIncInv", "float64")
    assert np.isnan(run(np.array([3.0]), np.array([0.7]), np.array([0.3]))).all()


@pytest.mark.slow
def test_gradients_run_in_functions_and_arguments_are_cast():
    a, b, p = pt.vectors("a", "b", "p")
    k, half = pt.scalar("k", dtype="int64"), pt.vector("half", dtype="float16")
    values = [np.array([0.5, 2.0, 30.0]), np.array([4.0, 0.2, 9.0]), np.array([0.3, 0.9, 0.01])]
    values += [np.array(3), np.array([0.5, 0.25], "float16")]
    result = pt.betaincinv(a, b, p)
    gradient = pt.grad(result.sum(), p)
    inner = called(pt.betaincinv, a, b, p)
    outputs = [result, gradient, inner, pt.betaincinv(k, 2, half), pt.betaincinv(a, b, p[:0, None])]
    compare_onnx_and_py([a, b, p, k, half], outputs, values)
