"""Distribution functions that PyMC lacks, against integrals of the density in mpmath."""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.stats as st

from pytensor_onnx.catalogue.compile_entry import compile_entry
from pytensor_onnx.catalogue.library import entries, model_of
from pytensor_onnx.catalogue.vectors import run

BY_NAME = {entry.name: entry for entry in entries()}


def called(name: str, *operands: Any, dtype: str = "float64") -> np.ndarray:
    """Return the result of a function in ONNX Runtime."""
    entry = BY_NAME[name]
    given = [np.asarray(x, a.dtype_in(dtype)) for x, a in zip(operands, entry.inputs, strict=True)]
    (found,) = run(model_of(compile_entry(entry, dtype), [x.ndim for x in given]), given)
    return found


def skew_normal(x: Any, alpha: Any) -> Any:
    return 2 * mp.npdf(x) * mp.ncdf(alpha * x)


def rice(x: Any, nu: Any) -> Any:
    return x * mp.exp(-(x**2 + nu**2) / 2) * mp.besseli(0, x * nu)


def von_mises(x: Any, mu: Any, kappa: Any) -> Any:
    return mp.exp(kappa * (mp.cos(x - mu) - 1)) / (
        2 * mp.pi * mp.besseli(0, kappa) * mp.exp(-kappa)
    )


def tails(density: Callable, x: float, low: Any, high: Any, *of: float) -> tuple[float, float]:
    """Return the logarithms of both tails."""
    # The first parameter is the location, or a number beside it.
    breaks = {c + d for c in (x, of[0]) for d in (-10, -1, -0.1, 0, 0.1, 1, 10)}

    def log_integral(a: Any, b: Any) -> float:
        inner = sorted(mp.mpf(c) for c in breaks if a < c < b)
        # Errors of the quadrature are absolute.
        at = density(mp.mpf(x), *of)
        whole = mp.quad(lambda t: density(t, *of) / at, [a, *inner, b])
        return float(mp.log(whole) + mp.log(at))

    with mp.workdps(20):
        lower, upper = log_integral(low, mp.mpf(x)), None
        if lower > np.log(0.5):
            upper = log_integral(mp.mpf(x), high)
            lower = np.log1p(-np.exp(upper))
        return lower, np.log1p(-np.exp(lower)) if upper is None else upper


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("x", "alpha"), [(0, -2), (-30, 0.5), (-6, 3), (-0.5, 20), (1, 3), (5, -1), (25, 2), (2, -200)]
)
def test_tails_of_skew_normal(x: float, alpha: float) -> None:
    lower, upper = tails(lambda t, _, a: skew_normal(t, a), x, x - 60, x + 60, 0.0, alpha)
    for name, exact in (("LogCdf", lower), ("LogSurvival", upper)):
        found = called(f"SkewNormal{name}", [float(x)], [0.0], [1.0], [float(alpha)])
        # The larger tail is one minus the smaller one.
        np.testing.assert_allclose(found, [exact], 2e-13, 1e-14)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("x", "nu"), [(2, 1), (1e-8, 0), (0.1, 3), (30, 0), (5, 20), (40, 20), (250, 300), (301, 300)]
)
def test_tails_of_rice(x: float, nu: float) -> None:
    lower, upper = tails(rice, x, 0, max(x, nu) + 40, nu)
    for name, exact in (("LogCdf", lower), ("LogSurvival", upper)):
        found = called(f"Rice{name}", [float(x)], [float(nu)], [1.0])
        np.testing.assert_allclose(found, [exact], 2e-13, 1e-14)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("x", "mu", "kappa"),
    [
        (-3, 0, 2),
        (1, 0.5, 0.1),
        (-3, 2, 4),
        (3, 2, 4),
        (3, -2.5, 30),
        (-1, 1, 300),
        (0.5, 0.5, 1e4),
    ],
)
def test_tails_of_von_mises(x: float, mu: float, kappa: float) -> None:
    lower, upper = tails(von_mises, x, -mp.pi, mp.pi, mu, kappa)
    for name, exact in (("LogCdf", lower), ("LogSurvival", upper)):
        found = called(f"VonMises{name}", [float(x)], [float(mu)], [float(kappa)])
        np.testing.assert_allclose(found, [exact], 2e-12, 1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tails_of_half_student_t(dtype: str) -> None:
    x, nu, sigma = np.array([0.0, 1e-3, 0.5, 4.0, 300.0]), np.full(5, 3.0), np.full(5, 2.0)
    survival = 2 * st.t.sf(x / sigma, nu)
    rtol = {"float64": 1e-13, "float32": 1e-5}[dtype]
    for name, exact in (("Cdf", 1 - survival), ("LogSurvival", np.log(survival))):
        found = called(f"HalfStudentT{name}", x, nu, sigma, dtype=dtype)
        np.testing.assert_allclose(found, exact, rtol, rtol)


P = np.array([0.0, 1e-12, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-10, 1.0])


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "parameters", "distribution"),
    [
        ("SkewNormal", [1.0, 2.0, -3.0], st.skewnorm(-3.0, 1.0, 2.0)),
        ("Rice", [2.0, 0.5], st.rice(4.0, scale=0.5)),
        ("Wald", [0.5, 3.0], st.invgauss(0.5 / 3.0, scale=3.0)),
        ("ExGaussian", [1.0, 0.5, 2.0], st.exponnorm(4.0, 1.0, 0.5)),
    ],
)
def test_quantiles_are_those_of_scipy(name: str, parameters: list, distribution: Any) -> None:
    found = called(f"{name}Icdf", P, *([x] * len(P) for x in parameters))
    # Quantiles next to one have the error of one minus the probability.
    np.testing.assert_allclose(found, distribution.ppf(P), 1e-7)
    wrong = called(f"{name}Icdf", [-0.1, 1.1, np.nan], *([x] * 3 for x in parameters))
    assert np.isnan(wrong).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("mu", [-2.0, 0.0, 3.0])
def test_quantiles_of_angles_are_those_of_their_probabilities(mu: float) -> None:
    p = P[1:-1]
    found = called("VonMisesIcdf", p, [mu] * len(p), [2.0] * len(p))
    exact = called("VonMisesCdf", found, [mu] * len(p), [2.0] * len(p))
    # A probability near zero is a difference of two near one turn.
    np.testing.assert_allclose(exact, p, 1e-9, 1e-15)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "parameters", "distribution"),
    [
        ("Poisson", [1e5], st.poisson(1e5)),
        ("Poisson", [0.1], st.poisson(0.1)),
        ("Binomial", [40, 0.3], st.binom(40, 0.3)),
        ("NegativeBinomial", [3.0, 0.5], st.nbinom(0.5, 0.5 / 3.5)),
        ("BetaBinomial", [12, 0.5, 2.0], st.betabinom(12, 0.5, 2.0)),
        ("HyperGeometric", [30, 12, 25], st.hypergeom(30, 12, 25)),
    ],
)
def test_quantiles_of_integers_are_those_of_scipy(
    name: str, parameters: list, distribution: Any
) -> None:
    p = P[1:-1]
    found = called(f"{name}Icdf", p, *([x] * len(p) for x in parameters))
    assert found.tolist() == distribution.ppf(p).tolist()
    if name != "Poisson":
        (low,) = called(f"{name}Icdf", [0.0], *([x] for x in parameters))
        assert low == 0


def test_survival_of_integers_keeps_its_digits() -> None:
    k = np.array([-1, 0, 30, 80])
    for name, parameters, exact in (
        ("Poisson", [2.0], st.poisson(2.0)),
        ("Binomial", [100, 0.01], st.binom(100, 0.01)),
        ("NegativeBinomial", [2.0, 5.0], st.nbinom(5.0, 5.0 / 7.0)),
    ):
        found = called(f"{name}LogSurvival", k, *([x] * 4 for x in parameters))
        np.testing.assert_allclose(found, exact.logsf(k), 1e-11)
    inflated = called("ZeroInflatedPoissonLogSurvival", k, [0.3] * 4, [2.0] * 4)
    exact = np.log(0.3) + st.poisson(2.0).logsf(k)
    np.testing.assert_allclose(inflated, np.where(k < 0, 0.0, exact), 1e-11)


def test_draws_with_extra_zeros_have_their_shares() -> None:
    entry = BY_NAME["ZeroInflatedPoissonRandom"]
    n = 20_000
    given = [np.array([0, 5]), np.array([n]), np.array([0.4]), np.array([3.0])]
    drawn, _ = run(model_of(compile_entry(entry, "float64"), [1, 1, 1, 1]), given)
    shares = 0.4 * st.poisson(3.0).pmf(np.arange(8)) + 0.6 * (np.arange(8) == 0)
    counts = np.bincount(drawn, minlength=8)[:8]
    assert (abs(counts - n * shares) < 4.5 * np.sqrt(n * shares)).all()


@pytest.mark.parametrize("xi", [-0.4, 0.0, 1e-9, 0.7])
def test_extremes_are_those_of_scipy_beyond_their_support(xi: float) -> None:
    x = np.array([-50.0, -1.0, 0.5, 2.0, 50.0])
    for name, exact in (
        ("GeneralizedExtremeValue", st.genextreme(-xi, 0.5, 2.0)),
        ("GeneralizedPareto", st.genpareto(xi, 0.0, 2.0)),
    ):
        of = [[0.5] * 5, [2.0] * 5, [xi] * 5][name == "GeneralizedPareto" :]
        for suffix, wanted in (("LogProb", exact.logpdf), ("LogCdf", exact.logcdf)):
            found = called(f"{name}{suffix}", x, *of)
            np.testing.assert_allclose(found, wanted(x), 1e-7, 1e-12, err_msg=f"{name}{suffix}")


def test_tails_of_wide_distributions_keep_their_digits() -> None:
    x = np.array([-1e12, -3.0, 0.5, 1e12])
    for name, of, exact in (
        ("Cauchy", [0.5, 2.0], st.cauchy(0.5, 2.0)),
        ("ExGaussian", [0.0, 1.0, 0.5], st.exponnorm(0.5)),
        ("HyperbolicSecant", [0.0, 1.0], st.hypsecant()),
    ):
        at = x if name == "Cauchy" else np.array([-9.0, -3.0, 0.5, 30.0])
        if name == "ExGaussian":
            at = np.array([-3.0, 0.5, 4.0, 30.0])
        for suffix, wanted in (("LogCdf", exact.logcdf), ("LogSurvival", exact.logsf)):
            found = called(f"{name}{suffix}", at, *([v] * 4 for v in of))
            np.testing.assert_allclose(found, wanted(at), 1e-9, 1e-12, err_msg=f"{name}{suffix}")
