"""The inverses of the regularized incomplete gamma functions."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.functions.special import gammainc
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.functions.special.test_gammainc import exact_pair
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan
NAMES = {"GammaIncInv": pt.gammaincinv, "GammaIncCInv": pt.gammainccinv}


def exact_inverse(which: int, approximate: Callable) -> Callable[[mp.mpf, mp.mpf], mp.mpf]:
    """Improve SciPy's values by Newton's method."""

    def exact(a: mp.mpf, p: mp.mpf) -> mp.mpf:
        x = mp.mpf(float(approximate(float(a), float(p))))
        if x < 1e-300:
            # The first term of the series.
            p = p if which == 0 else 1 - p
            return mp.exp((mp.log(p) + mp.loggamma(a + 1)) / a)
        for _ in range(2):
            slope = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
            x -= (exact_pair(a, x)[which] - p) / (slope if which == 0 else -slope)
        return x

    return exact


def region(
    parameters: tuple[float, float],
    shares: tuple[float, float],
    dtypes: tuple[str, ...] = BOTH,
    *,
    bound: float = 450.0,
) -> Region:
    """Draw 40 parameters, and shares that are small on a logarithmic scale."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a = np.exp(rng.uniform(*np.log(parameters), min(size, 40)))
        if shares[0] < 1e-4:
            return [a, np.exp(rng.uniform(*np.log(shares), len(a)))]
        return [a, rng.uniform(*shares, len(a))]

    label = "a {:g} … {:g}, share {:g} … {:g}".format(*parameters, *shares)
    return Region(label, draw, dtypes, bound)


def next_to_zero(which: int) -> Region:
    """Draw small parameters, for results between 1e-300 and 1e-100."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a = np.exp(rng.uniform(*np.log([1e-8, 1e-2]), min(size, 100)))
        power = a * rng.uniform(-690, -230, len(a))
        return [a, -np.expm1(power) if which else np.exp(power)]

    return Region("a 1e-08 … 0.01, results 1e-300 … 1e-100", draw, FLOAT64, 40)


REGIONS = [
    region((0.5, 20), (0.001, 0.999), bound=40),
    region((0.1, 50), (1e-30, 0.5), bound=100),
    region((0.02, 1), (1e-6, 0.9), FLOAT64),
    region((1, 1e3), (1e-250, 1e-10), FLOAT64, bound=100),
    region((20, 1e5), (0.001, 0.999), FLOAT64, bound=40),
]
CASES = [
    Accuracy(
        psm.GammaIncInv,
        exact_inverse(0, scipy.special.gammaincinv),
        [*REGIONS, next_to_zero(0)],
        scipy.special.gammaincinv,
    ),
    Accuracy(
        psm.GammaIncCInv,
        exact_inverse(1, scipy.special.gammainccinv),
        [*REGIONS, next_to_zero(1)],
        scipy.special.gammainccinv,
    ),
]


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


@pytest.mark.parametrize("name", NAMES)
def test_elements_that_do_not_converge_are_nan(name, monkeypatch):
    monkeypatch.setattr(gammainc, "_NEWTON_STEPS", 1)
    run = compile_definition.__wrapped__(name, "float64")
    assert np.isnan(run(np.array([3.0]), np.array([0.3]))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(1)
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
