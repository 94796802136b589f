"""Pathfinder draws near posteriors, and exactly from a normal one of one dimension."""

import warnings

import numpy as np
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.kernels.regions import region_of_all  # noqa: E402
from pytensor_onnx.pymc import (  # noqa: E402
    ModelGraph,
    export_laplace,
    export_pathfinder,
    export_sampler,
    to_datatree,
)
from tests.pymc.posteriors import EFFECTS, eight_schools, logistic_regression  # noqa: E402


def call(program, **inputs):
    """Return the results of a program by name."""
    names = [str(value.name) for value in program.model.graph.outputs]
    return dict(zip(names, program(**inputs), strict=True))


def normal_model():
    """A normal mean, whose posterior is normal, with data of any length."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 1.0, 2.0)
        pm.Deterministic("twice", 2 * mu)
        pm.Normal("seen", mu, 1.0, observed=pm.Data("y", np.arange(3.0)))
    return model


@pytest.fixture(scope="module")
def normal():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return export_pathfinder(normal_model(), unconstrained=True)


@pytest.mark.parametrize("y", [np.arange(3.0), np.array([4.0, -2.0, 7.0, 1.0, 0.5])])
def test_a_normal_posterior_is_its_own_approximation(normal, y):
    found = call(normal, seed=[1, 2], draws=4000, y=y)
    precision = 1 / 4 + len(y)
    mean = (1 / 4 + y.sum()) / precision
    seen = stats.multivariate_normal(np.ones(len(y)), np.eye(len(y)) + 4)
    # Each draw has the same ratio, the evidence.
    np.testing.assert_allclose(found["elbo"], seen.logpdf(y), rtol=1e-10)
    assert found["pareto_k"] == 0
    draws = found["mu"]
    assert draws.shape == (1, 4000)
    np.testing.assert_array_equal(found["point"][..., 0], draws)
    np.testing.assert_allclose(found["twice"], 2 * draws)
    # Draws of both paths are drawn with replacement, so that errors are √2 times as large.
    assert abs(draws.mean() - mean) < 6 / np.sqrt(4000 * precision)
    assert abs(draws.std() * np.sqrt(precision) - 1) < 6 / np.sqrt(8000)
    assert 2500 < len(np.unique(draws)) < 4000


def test_results_depend_on_the_seeds_only(normal):
    inputs = {"draws": 20, "y": np.arange(3.0)}
    first, again = (call(normal, seed=[1, 2], **inputs) for _ in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(value, again[name])
    other = call(normal, seed=[7, 2], **inputs)
    assert not np.array_equal(first["mu"], other["mu"])


@pytest.mark.parametrize(("n_paths", "draws"), [(1, 0), (3, 1)])
def test_few_draws_and_paths(normal, n_paths, draws):
    found = call(normal, seed=np.arange(n_paths), draws=draws, y=np.arange(3.0))
    assert found["mu"].shape == found["lp"].shape == (1, draws)
    assert found["elbo"].shape == found["n_steps"].shape == (n_paths,)


@pytest.mark.slow
def test_a_regression_has_the_moments_of_its_posterior():
    """Those of weighted draws of the Laplace approximation, whose errors are 1 % of a deviation."""
    model = logistic_regression()
    data = {v.name: v.get_value() for v in model.data_vars}
    program = export_pathfinder(model, unconstrained=True, verify=False)
    found = call(program, seed=np.arange(4), draws=2000, **data)
    assert found["pareto_k"] < 0.7
    laplace = call(
        export_laplace(model, unconstrained=True, verify=False),
        seed=[1, 2, 3, 4, 5],
        draws=2000,
        **data,
    )
    weights = np.exp(laplace["log_weight"])[..., None]
    mean = (weights * laplace["point"]).sum((0, 1))
    sd = np.sqrt((weights * (laplace["point"] - mean) ** 2).sum((0, 1)))
    np.testing.assert_allclose((found["point"].mean((0, 1)) - mean) / sd, 0, atol=0.15)
    np.testing.assert_allclose(found["point"].std((0, 1)) / sd, 1, atol=0.15)
    # The bound is below the evidence, by little for a posterior that is nearly normal.
    gap = laplace["log_marginal_likelihood"] - found["elbo"]
    assert (np.abs(gap) < 0.5).all()


@pytest.mark.slow
def test_draws_of_eight_schools_are_near_the_posterior():
    """As near as those of pymc-extras 0.15.1: mu 1.5 ± 1.5, tau 4.7 ± 3.3, k 0.74."""
    model = eight_schools()
    program = export_pathfinder(model, unconstrained=True, verify=False)
    found = call(program, seed=np.arange(8), draws=1000)
    assert abs(found["mu"].mean() - 1.5) < 1.0
    assert abs(found["mu"].std() - 1.5) < 0.5
    assert abs(found["tau"].mean() - 4.7) < 1.0
    assert 0.6 < found["pareto_k"] < 1.0
    assert found["theta"].shape == (1, 1000, len(EFFECTS))
    logp = model.compile_logp(mode="FAST_COMPILE")
    splits = np.cumsum([value.start.size for value in ModelGraph(model).continuous])[:-1]
    for point, lp in zip(found["point"][0, :5], found["lp"][0], strict=False):
        mu, tau, z = np.split(point, splits)
        expected = logp({"mu": mu[0], "tau_log__": tau[0], "z": z})
        np.testing.assert_allclose(lp, expected, rtol=1e-12)


@pytest.mark.slow
def test_paths_without_a_finite_start_have_no_draws():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("nowhere", pm.math.log(x - 100.0))
    program = export_pathfinder(model, verify=False)
    found = call(program, seed=[1, 2], draws=3)
    assert (found["elbo"] == -np.inf).all()
    assert np.isnan(found["x"]).all()
    assert np.isnan(found["pareto_k"])


@pytest.mark.slow
def test_other_paths_replace_one_without_a_finite_density():
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0)
        pm.Potential("edge", pm.math.switch(x > 0.0, 0.0, -np.inf))
    program = export_pathfinder(model, verify=False)
    found = call(program, seed=np.arange(6), draws=200)
    assert (found["x"] > 0).all() or np.isnan(found["x"]).all()


def test_trees_have_the_paths_beside_the_draws(normal):
    results = normal(seed=[1, 2, 3], draws=50, y=np.arange(3.0))
    tree = to_datatree(normal, results, normal_model())
    assert tree.posterior["mu"].sizes == {"chain": 1, "draw": 50}
    assert tree.fit["elbo"].dims == tree.fit["n_steps"].dims == ("path",)
    assert tree.fit["pareto_k"].dims == ()


@pytest.mark.slow
def test_points_start_chains():
    model = eight_schools()
    found = call(export_pathfinder(model, unconstrained=True, verify=False), seed=[1, 2], draws=2)
    sampler = export_sampler(model, start=True, verify=False)
    drawn = call(sampler, seed=[1, 2], warmup=200, draws=400, start=found["point"][0])
    assert drawn["finite_start"].all()
    assert abs(drawn["mu"].mean() - 4.4) < 1.5


def two_modes():
    """Modes at -1 and 1, on both sides of the initial point, of which the first has 1 ‰."""
    with pm.Model() as model:
        x = pm.Flat("x")
        terms = [np.log([0.001, 0.999][i]) - 50 * (x - [-1, 1][i]) ** 2 for i in range(2)]
        pm.Potential("modes", pm.math.logaddexp(*terms))
    return model


@pytest.mark.slow
def test_chains_start_in_the_mode_that_most_of_the_mass_has():
    """A chain has four paths, each of which finds either mode: the better one in 15 of 16."""
    seeds = np.arange(40)
    shares = []
    for start in (False, "pathfinder"):
        sampler = export_sampler(two_modes(), start=start, lockstep=False, verify=False)
        found = call(sampler, seed=seeds, warmup=20, draws=1)
        assert found["finite_start"].all()
        shares.append((found["x"] < 0).mean())
    assert shares[0] > 0.3
    assert shares[1] < 0.2
    # A chain depends on its own seed.
    again = call(sampler, seed=seeds[5:7], warmup=20, draws=1)
    np.testing.assert_array_equal(again["x"], found["x"][5:7])


@pytest.mark.slow
def test_starts_are_draws_of_the_posterior():
    sampler = export_sampler(normal_model(), start="pathfinder", unconstrained=True, verify=False)
    for y in (np.arange(3.0), np.array([4.0, -2.0, 7.0, 1.0, 0.5])):
        precision = 1 / 4 + len(y)
        found = call(sampler, seed=np.arange(300), warmup=0, draws=1, y=y)
        # The first draw is of a short trajectory from the start.
        z = (found["mu"][:, 0] - (1 / 4 + y.sum()) / precision) * np.sqrt(precision)
        assert stats.kstest(z, "norm").pvalue > 1e-4
    _, region = region_of_all(sampler.proto)
    assert region is not None
    assert call(sampler, seed=np.zeros(0, "int64"), warmup=2, draws=3, y=y)["mu"].shape == (0, 3)


@pytest.mark.slow
def test_chains_with_an_edge_beside_them_start_within_it():
    """No normal distribution has a finite ELBO."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Potential("edge", pm.math.switch(pm.math.all(x > -0.1), 0.0, -np.inf))
    sampler = export_sampler(model, start="pathfinder", verify=False)
    found = call(sampler, seed=np.arange(6), warmup=100, draws=50)
    assert found["finite_start"].all()
    assert (found["x"] > -0.1).all()


@pytest.mark.slow
@pytest.mark.parametrize("lockstep", [True, False])
def test_chains_from_paths_go_on_from_a_state(lockstep):
    sampler = export_sampler(
        normal_model(), start="pathfinder", state=True, lockstep=lockstep, verify=False
    )
    inputs = {"seed": [1, 2], "warmup": 60, "y": np.arange(3.0)}
    nothing = np.zeros((0, 6))
    whole, first = (call(sampler, draws=n, state=nothing, **inputs) for n in (50, 30))
    second = call(sampler, draws=20, state=first["next_state"], **inputs)
    joined = np.concatenate([first["mu"], second["mu"]], axis=1)
    np.testing.assert_array_equal(joined, whole["mu"])


def test_other_starts_are_refused():
    with pytest.raises(ArgumentError, match="start='mode': give one of 'pathfinder'"):
        export_sampler(normal_model(), start="mode")


def test_a_file_runs_as_one_region(normal):
    _, region = region_of_all(normal.proto)
    assert region is not None
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in [*normal.proto.graph.input, *normal.proto.graph.output]
    }
    assert shapes["seed"] == shapes["elbo"] == ["path"]
    assert shapes["mu"][1:] == ["draw"]


def test_names_of_results_are_refused():
    with pm.Model() as model:
        pm.Normal("elbo")
    with pytest.raises(ArgumentError, match="'elbo' would name two"):
        export_pathfinder(model)
