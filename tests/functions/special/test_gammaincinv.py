"""The inverses of the regularized incomplete gamma functions."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx.functions.special import gammainc
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan
NAMES = {"GammaIncInv": pt.gammaincinv, "GammaIncCInv": pt.gammainccinv}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(1)
def test_values_at_the_ends_and_outside_are_those_of_scipy(name, dtype):
    a, p = (
        v.ravel().astype(dtype)
        for v in np.meshgrid(
            [0.0, -0.0, -1.0, 0.5, 3.0, inf, -inf, nan],
            [0.0, -0.0, 1.0, -0.5, 1.5, 1e-9, 0.3, 1 - 2**-24, inf, -inf, nan],
        )
    )
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name.lower())(a, p)
    # SciPy's results for a parameter of zero are zero or NaN, also outside of the domain.
    inner = (p > 0) & (p < 1)
    expected[(a == 0) & inner] = 0
    expected[(a == 0) & ~inner & (p != 0) & (p != 1)] = nan
    found = compile_definition(name, dtype)(a, p)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-13)


def test_values_that_underflow_are_zero():
    a, p = np.array([1e-300, 1e-3, 0.5, 0.5]), np.array([0.5, 0.1, 1e-300, 1e-150])
    found = compile_definition("GammaIncInv", "float64")(a, p)
    np.testing.assert_allclose(found, scipy.special.gammaincinv(a, p), rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_huge_parameters_give_the_normal_quantile(name):
    a, p = (
        v.ravel()
        for v in np.meshgrid([1e13, 1e17, 1e30, 1e155, 1e300, 1.7e308], [1e-300, 0.1, 0.5, 0.999])
    )
    s = scipy.special.ndtri(p)
    s = s if name == "GammaIncInv" else -s
    # The next term of the expansion is s (s**2 - 7) / (36 sqrt(a)), below 1e-15 of a.
    expected = a + s * np.sqrt(a) + (s * s - 1) / 3
    found = compile_definition(name, "float64")(a, p)
    np.testing.assert_allclose(found, expected, rtol=2e-15)


@pytest.mark.parametrize("name", NAMES)
def test_inverses_round_trip(name):
    rng = np.random.default_rng(0)
    a, p = np.exp(rng.uniform(-2, 9, 500)), rng.uniform(0.0, 1.0, 500)
    x = compile_definition(name, "float64")(a, p)
    forward = compile_definition(name.removesuffix("Inv"), "float64")(a, x)
    # One unit in the last place of x is this much of the function.
    slope = np.exp(a * np.log(x) - x - scipy.special.gammaln(a))
    np.testing.assert_array_less(np.abs(forward - p), 1e-14 * p + 1e-15 * (1 + slope))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NAMES)
def test_elements_that_do_not_converge_are_nan(name, monkeypatch):
    monkeypatch.setattr(gammainc, "_NEWTON_STEPS", 1)
    run = compile_definition.__wrapped__(name, "float64")
    assert np.isnan(run(np.array([3.0]), np.array([0.3]))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_gradients_run_in_functions(name):
    a, p = pt.vector("a"), pt.vector("p")
    values = [np.array([0.5, 2.0, 30.0]), np.array([0.3, 0.9, 0.01])]
    result = NAMES[name](a, p)
    inner = called(NAMES[name], a, p)
    compare_onnx_and_py([a, p], [result, pt.grad(result.sum(), p), inner], values)


@pytest.mark.slow
def test_arguments_broadcast_and_are_cast_as_by_pytensor():
    a, p = pt.col("a", dtype="float32"), pt.vector("p", dtype="float64")
    k, half = pt.scalar("k", dtype="int64"), pt.vector("half", dtype="float16")
    values = [
        np.array([[0.3], [2.0]], "float32"),
        np.array([0.0, 0.2, 1.0]),
        np.array(3),
        np.array([0.5, 0.25], "float16"),
    ]
    empty = pt.gammaincinv(a, p[:0])
    outputs = [*(f(*v) for f in NAMES.values() for v in ((a, p), (k, half))), empty]
    compare_onnx_and_py([a, p, k, half], outputs, values)
