"""The inverse of the regularized incomplete beta function."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx.functions.special import betaincinv
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.operations.incomplete_beta import powers

inf, nan = np.inf, np.nan


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


@pytest.mark.slow
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
