"""PyMC's uses of a compiled model work in mode ONNX: optimise, sample, predict."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")
arviz = pytest.importorskip("arviz")

from pymc.stats import compute_log_prior  # noqa: E402

from tests.conftest import numbers_in_double, sweep_rest  # noqa: E402
from tests.realworld.models import MODELS  # noqa: E402

IN_ONNX, REFERENCE = {"mode": "ONNX"}, {"mode": "FAST_COMPILE"}
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::FutureWarning")]


# Where nutpie is installed, PyMC takes it for mode NUMBA.
QUIET = {"progressbar": False, "compute_convergence_checks": False, "random_seed": 4}
QUIET["nuts_sampler"] = "pymc"


def sample(model: pm.Model, compile_kwargs: dict[str, str]) -> Any:
    with model:
        return pm.sample(draws=20, tune=20, chains=1, compile_kwargs=compile_kwargs, **QUIET)


@pytest.mark.parametrize("name", ["eight_schools", "linear_regression"])
def test_the_sampler_draws_the_same(name: str) -> None:
    """Trajectories stay together only if the gradients agree to nearly the last bit."""
    model = MODELS[name]()
    found = sample(model, IN_ONNX).posterior
    expected = sample(model, REFERENCE).posterior
    for variable in expected:
        np.testing.assert_allclose(found[variable], expected[variable], rtol=1e-5, atol=1e-6)


def test_discrete_variables_are_sampled_the_same() -> None:
    model = MODELS["coal_mining_disasters"]()
    found = sample(model, IN_ONNX).posterior
    expected = sample(model, REFERENCE).posterior
    np.testing.assert_array_equal(found["switch"], expected["switch"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("start", sweep_rest(["spawn", "fork", "forkserver"], ["fork"]))
def test_chains_run_in_processes_of_their_own(start: str) -> None:
    """The function is pickled to processes that are no forks, which import everything anew."""
    with MODELS["eight_schools"]():
        draws = pm.sample(
            draws=10, tune=10, chains=2, cores=2, mp_ctx=start, compile_kwargs=IN_ONNX, **QUIET
        ).posterior
    assert draws["theta"].shape == (2, 10, 8)
    assert np.isfinite(draws["mu"]).all()


@pytest.mark.parametrize("name", ["linear_regression", "poisson_regression"])
def test_the_optimiser_finds_the_same(name: str) -> None:
    with MODELS[name]():
        found = pm.find_MAP(progressbar=False, compile_kwargs=IN_ONNX)
        expected = pm.find_MAP(progressbar=False, compile_kwargs=REFERENCE)
    for variable, value in expected.items():
        np.testing.assert_allclose(found[variable], value, rtol=1e-4, atol=1e-4)


def test_values_of_draws_are_computed() -> None:
    model = MODELS["eight_schools"]()
    with numbers_in_double():
        in_double = MODELS["eight_schools"]()
    trace = sample(model, REFERENCE)
    draws = trace.posterior.to_dataset()

    def compute(model: pm.Model, compile_kwargs: dict[str, str]) -> tuple[Any, Any]:
        options = {"progressbar": False, "compile_kwargs": compile_kwargs}
        with model:
            theta = pm.compute_deterministics(draws, var_names=["theta"], **options)["theta"]
            prior = compute_log_prior(trace, extend_inferencedata=False, **options)
        return theta, prior["tau"]

    found = compute(model, IN_ONNX)
    with numbers_in_double():
        expected = compute(in_double, REFERENCE)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_likelihoods_of_draws_are_computed() -> None:
    model = MODELS["eight_schools"]()
    trace = sample(model, REFERENCE)

    def compute(compile_kwargs: dict[str, str]) -> Any:
        with model:
            return pm.compute_log_likelihood(
                trace,
                extend_inferencedata=False,
                progressbar=False,
                compile_kwargs=compile_kwargs,
            )["effect"]

    np.testing.assert_allclose(compute(IN_ONNX), compute(REFERENCE), rtol=1e-12)


def test_predictive_draws_have_the_distribution_of_the_model() -> None:
    def predictive(compile_kwargs: dict[str, str]) -> tuple[Any, Any]:
        options = {"compile_kwargs": compile_kwargs, "random_seed": 3}
        draws = {"mu": np.full((1, 600), 3.0), "tau": np.full((1, 600), 2.0)}
        draws["z"] = np.zeros((1, 600, 8))
        with MODELS["eight_schools"]():
            prior = pm.sample_prior_predictive(600, **options)
            posterior = pm.sample_posterior_predictive(
                arviz.from_dict({"posterior": draws}), progressbar=False, **options
            )
        return prior.prior_predictive["effect"], posterior.posterior_predictive["effect"]

    for found, expected in zip(predictive(IN_ONNX), predictive(REFERENCE), strict=True):
        assert found.shape == expected.shape == (1, 600, 8)
        for school in range(8):
            pair = (found.values[0, :, school], expected.values[0, :, school])
            assert stats.ks_2samp(*pair).pvalue > 1e-3


def test_prior_draws_have_the_distributions_of_the_model() -> None:
    with pm.Model():
        a = pm.Normal("a", 1, 2)
        b = pm.Bernoulli("b", pm.math.sigmoid(a))
        c = pm.Categorical("c", p=[0.2, 0.3, 0.5], shape=3)
        y = pm.Normal("y", a, pm.HalfNormal("s", 1), shape=2)
    drawn = pm.draw([a, b, c, y], draws=500, mode="ONNX", random_seed=1)
    again = pm.draw([a, b, c, y], draws=500, mode="ONNX", random_seed=1)
    expected = pm.draw([a, b, c, y], draws=500, random_seed=2, **REFERENCE)
    for found, same, wanted in zip(drawn, again, expected, strict=True):
        np.testing.assert_array_equal(found, same)
        assert found.shape == wanted.shape
        assert stats.ks_2samp(found.ravel(), wanted.ravel()).pvalue > 1e-3
