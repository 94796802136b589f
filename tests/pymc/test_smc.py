"""Sequential Monte Carlo finds analytic evidence, the weights of modes, and posteriors."""

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.kernels.regions import region_of_all  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_smc, to_datatree  # noqa: E402
from tests.pymc.posteriors import eight_schools  # noqa: E402


def call(program, **inputs):
    """Return the results of a program by name."""
    names = [str(value.name) for value in program.model.graph.outputs]
    return dict(zip(names, program(**inputs), strict=True))


def normal_model():
    """A normal mean, whose posterior and evidence are known, with data of any length."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 1.0, 2.0)
        y = pm.Data("y", np.arange(3.0), dims="row")
        pm.Deterministic("twice", 2 * mu)
        pm.Normal("seen", mu, 1.0, observed=y, dims="row")
    return model


@pytest.fixture(scope="module")
def normal():
    return export_smc(normal_model(), unconstrained=True)


@pytest.mark.parametrize("y", [np.arange(3.0), np.array([4.0, -2.0, 17.0, 11.0, 10.5])])
def test_evidence_and_posterior_are_those_of_a_normal_mean(normal, y):
    found = call(normal, seed=np.arange(8), draws=1000, y=y)
    precision = 1 / 4 + len(y)
    mean = (1 / 4 + y.sum()) / precision
    seen = stats.multivariate_normal(np.ones(len(y)), np.eye(len(y)) + 4)
    evidence = found["log_marginal_likelihood"]
    assert evidence.shape == found["n_stages"].shape == (8,)
    assert abs(evidence.mean() - seen.logpdf(y)) < 0.1
    assert evidence.std() < 0.2
    # Particles that have not moved apart leave fewer independent draws.
    assert abs(found["mu"].mean() - mean) * np.sqrt(precision) < 0.1
    assert abs(found["mu"].std() * np.sqrt(precision) - 1) < 0.1
    assert found["mu"].shape == found["lp"].shape == (8, 1000)
    np.testing.assert_array_equal(found["point"][..., 0], found["mu"])
    np.testing.assert_allclose(found["twice"], 2 * found["mu"])
    expected = stats.norm(1, 2).logpdf(found["mu"])
    expected += stats.norm(found["mu"][..., None], 1).logpdf(y).sum(-1)
    np.testing.assert_allclose(found["lp"], expected, rtol=1e-12)


def test_modes_have_their_weights():
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 10.0, shape=2)
        parts = [-2 * ((x - 5) ** 2).sum() + np.log(0.3), -2 * ((x + 5) ** 2).sum() + np.log(0.7)]
        pm.Potential("modes", pt.logaddexp(*parts))
    found = call(export_smc(model, verify=False), seed=np.arange(8), draws=1000)
    assert abs((found["x"][..., 0] > 0).mean() - 0.3) < 0.05
    near = found["x"][np.abs(found["x"] - 5).max(-1) < 3]
    assert abs(near.std() - 0.5) < 0.05
    evidence = np.log(np.pi / 2) + stats.norm(0, np.sqrt(100.25)).logpdf([5, 5]).sum()
    assert abs(found["log_marginal_likelihood"].mean() - evidence) < 0.1


@pytest.mark.slow
def test_eight_schools_have_the_moments_of_their_posterior():
    """Those of NUTS: mu 4.4 and 3.3, tau 3.6 and 3.2."""
    model = eight_schools()
    found = call(export_smc(model, unconstrained=True, verify=False), seed=range(4), draws=1000)
    assert abs(found["mu"].mean() - 4.4) < 0.5
    assert abs(found["mu"].std() - 3.3) < 0.4
    assert abs(found["tau"].mean() - 3.6) < 0.6
    logp = model.compile_logp(mode="FAST_COMPILE")
    splits = np.cumsum([value.start.size for value in ModelGraph(model).continuous])[:-1]
    for point, lp in zip(found["point"][0, :5], found["lp"][0], strict=False):
        mu, tau, z = np.split(point, splits)
        expected = logp({"mu": mu[0], "tau_log__": tau[0], "z": z})
        np.testing.assert_allclose(lp, expected, rtol=1e-12)


def test_a_chain_depends_on_its_seed_only(normal):
    y = np.arange(3.0)
    both = call(normal, seed=[1, 2], draws=30, y=y)
    alone = call(normal, seed=[2], draws=30, y=y)
    again = call(normal, seed=[1, 2], draws=30, y=y)
    for name, value in both.items():
        np.testing.assert_array_equal(value[1:], alone[name])
        np.testing.assert_array_equal(value, again[name])


@pytest.mark.slow
def test_starts_have_the_distribution_of_the_prior():
    """A likelihood of one leaves the prior, whose draws are transformed."""
    with pm.Model() as model:
        pm.Gamma("g", 3.0, 2.0)
        pm.Beta("b", 2.0, 5.0, shape=2)
        pm.Exponential("e", pm.HalfNormal("h", 1.0) + 1.0)
    found = call(export_smc(model, verify=False), seed=[1, 2], draws=2000)
    assert (found["n_stages"] == 1).all()
    np.testing.assert_allclose(found["log_marginal_likelihood"], 0, atol=1e-12)
    assert abs(found["g"].mean() - 1.5) < 0.1
    assert abs(found["b"].mean() - 2 / 7) < 0.02
    assert stats.kstest(found["g"].ravel(), stats.gamma(3, scale=0.5).cdf).pvalue > 1e-4


@pytest.mark.slow
def test_an_impossible_likelihood_leaves_no_draws():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("nowhere", pm.math.log(x - 100.0))
    found = call(export_smc(model, verify=False), seed=[1], draws=30)
    assert np.isnan(found["x"]).all()
    assert np.isnan(found["log_marginal_likelihood"]).all()


def test_a_file_runs_as_one_region_and_makes_a_tree(normal):
    _, region = region_of_all(normal.proto)
    assert region is not None
    tree = to_datatree(normal, normal(seed=[1, 2], draws=50, y=np.arange(3.0)), normal_model())
    assert tree.posterior["mu"].dims == ("chain", "draw")
    assert tree.fit["log_marginal_likelihood"].dims == ("chain",)


def test_names_of_results_are_refused():
    with pm.Model() as model:
        pm.Normal("n_stages")
    with pytest.raises(ArgumentError, match="'n_stages' would name two"):
        export_smc(model)


def test_flat_priors_are_refused():
    with pm.Model() as model:
        pm.Normal("y", pm.Flat("level"), 1, observed=1.0)
    with pytest.raises(ArgumentError, match="that of level is flat"):
        export_smc(model)
