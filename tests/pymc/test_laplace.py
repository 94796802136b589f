"""Laplace approximations have the modes that SciPy and PyMC find, and the Hessian there."""

import json
import warnings

import numpy as np
import pytensor
import pytest
from scipy import optimize, stats

pm = pytest.importorskip("pymc")

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.kernels.regions import region_of_all  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_laplace, export_logp, to_datatree  # noqa: E402
from tests.pymc.posteriors import eight_schools, logistic_regression  # noqa: E402

FIT = ["mode_lp", "pareto_k", "log_marginal_likelihood", "converged", "n_steps"]


def call(program, **inputs):
    """Return the results of a program by name."""
    names = [str(value.name) for value in program.model.graph.outputs]
    return dict(zip(names, program(**inputs), strict=True))


def normal_model(n=3):
    """A normal mean, whose posterior is normal, with data of any length."""
    with pm.Model(coords={"axis": ["a", "b"]}) as model:
        mu = pm.Normal("mu", 1.0, 2.0, dims="axis")
        y = pm.Data("y", np.arange(float(n)))
        pm.Deterministic("twice", 2 * mu, dims="axis")
        pm.Normal("seen", mu[:, None], 1.0, observed=y[None, :] * np.ones((2, 1)))
    return model


@pytest.fixture(scope="module")
def normal():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return export_laplace(normal_model(), unconstrained=True)


@pytest.mark.parametrize("y", [np.arange(3.0), np.array([4.0, -2.0, 7.0, 1.0, 0.5])])
def test_a_normal_posterior_is_its_own_approximation(normal, y):
    found = call(normal, seed=[1, 2], draws=2000, y=y)
    precision = 1 / 4 + len(y)
    mean = (1 / 4 + y.sum()) / precision
    assert found["converged"]
    np.testing.assert_allclose(found["mode_mu"], mean, rtol=1e-12)
    np.testing.assert_allclose(found["mode_twice"], 2 * mean, rtol=1e-12)
    np.testing.assert_allclose(found["mode_point"], mean, rtol=1e-12)
    np.testing.assert_allclose(found["covariance"], np.eye(2) / precision, rtol=1e-12)
    seen = stats.multivariate_normal(np.ones(len(y)), np.eye(len(y)) + 4)
    np.testing.assert_allclose(found["log_marginal_likelihood"], 2 * seen.logpdf(y), rtol=1e-12)
    assert found["pareto_k"] == 0
    np.testing.assert_allclose(found["log_weight"], -np.log(4000), rtol=1e-12)
    draws = found["point"]
    assert draws.shape == (2, 2000, 2)
    np.testing.assert_array_equal(draws, found["mu"])
    np.testing.assert_allclose(found["twice"], 2 * draws)
    assert abs(draws.mean() - mean) < 4 / np.sqrt(8000 * precision)
    assert abs(draws.std() * np.sqrt(precision) - 1) < 4 / np.sqrt(16000)
    assert not np.array_equal(draws[0], draws[1])


def test_a_chain_depends_on_its_seed_only(normal):
    y = np.arange(3.0)
    both = call(normal, seed=[1, 2], draws=20, y=y)
    alone = call(normal, seed=[2], draws=30, y=y)
    again = call(normal, seed=[1, 2], draws=20, y=y)
    np.testing.assert_array_equal(both["mu"][1], alone["mu"][0, :20])
    for name, value in both.items():
        np.testing.assert_array_equal(value, again[name])


@pytest.mark.parametrize(("chains", "draws"), [(1, 0), (0, 5), (2, 1)])
def test_numbers_of_draws_and_chains_may_be_zero(normal, chains, draws):
    found = call(normal, seed=np.arange(chains), draws=draws, y=np.arange(3.0))
    assert found["mu"].shape == (chains, draws, 2)
    assert found["lp"].shape == found["log_weight"].shape == (chains, draws)
    assert found["converged"]
    assert np.isnan(found["pareto_k"])


def hessian_at(model, point):
    program = export_logp(model, outputs=["d2logp", "logp"], verify=False)
    data = {v.name: v.get_value() for v in model.data_vars}
    return program(point, **data)[0]


@pytest.mark.parametrize("build", [eight_schools, logistic_regression])
@pytest.mark.slow
def test_modes_are_those_of_scipy(build):
    model = build()
    program = export_laplace(model, unconstrained=True, verify=False)
    found = call(program, seed=[3], draws=300, **{v.name: v.get_value() for v in model.data_vars})
    graph = ModelGraph(model, data="stored")
    outputs = graph.of_point([graph.logp, graph.join(graph.gradient(graph.logp))])
    f = pytensor.function([graph.point], outputs, mode="FAST_COMPILE")

    def negative(x):
        value, gradient = f(x)
        return -value, -gradient

    known = optimize.minimize(negative, graph.start, jac=True, method="BFGS", tol=1e-9)
    np.testing.assert_allclose(found["mode_lp"], -known.fun, rtol=1e-10)
    np.testing.assert_allclose(found["mode_point"], known.x, rtol=1e-5, atol=1e-6)
    hessian = hessian_at(model, found["mode_point"])
    np.testing.assert_allclose(found["covariance"] @ -hessian, np.eye(len(known.x)), atol=1e-8)
    n = len(known.x)
    evidence = found["mode_lp"] + 0.5 * n * np.log(2 * np.pi)
    evidence += 0.5 * np.linalg.slogdet(found["covariance"])[1]
    np.testing.assert_allclose(found["log_marginal_likelihood"], evidence, rtol=1e-10)
    for point, lp in zip(found["point"][0, :5], found["lp"][0], strict=False):
        np.testing.assert_allclose(lp, f(point)[0], rtol=1e-12)
    np.testing.assert_allclose(np.exp(found["log_weight"]).sum(), 1.0, rtol=1e-12)
    # Eight schools have a mode far from their mean, a regression is nearly normal.
    assert (found["pareto_k"] < 0.7) == (build is logistic_regression)


def test_the_mode_is_that_of_pymc(normal):
    with normal_model(), pytensor.config.change_flags(mode="FAST_COMPILE"):
        known = pm.find_MAP(progressbar=False, jitter=False, return_inferencedata=False)
    found = call(normal, seed=[0], draws=0, y=np.arange(3.0))
    np.testing.assert_allclose(found["mode_mu"], known["mu"], rtol=1e-6)


@pytest.mark.parametrize(
    "potential",
    [
        pytest.param(lambda x: x**2, id="saddle", marks=pytest.mark.slow),
        pytest.param(lambda x: 1.0 * x, id="no maximum"),
        pytest.param(lambda x: pm.math.log(x - 100.0), id="no start", marks=pytest.mark.slow),
    ],
)
def test_without_a_mode_draws_are_nan(potential):
    with pm.Model() as model:
        x = pm.Flat("x")
        pm.Normal("y", pm.Normal("z"), 1, observed=1.0)
        pm.Potential("growth", potential(x))
    program = export_laplace(model, verify=False)
    results = program(seed=[1], draws=3)
    names = [str(value.name) for value in program.model.graph.outputs]
    found = dict(zip(names, results, strict=True))
    assert not found["converged"]
    for name in ("x", "z", "lp", "log_weight", "log_marginal_likelihood"):
        assert np.isnan(found[name]).all()
    with pytest.warns(UserWarning, match="no maximum"):
        to_datatree(program, results)


def test_a_probability_of_one_has_a_second_derivative():
    """That of log(1 - p) is infinite, and is not chosen."""
    with pm.Model() as model:
        a = pm.Beta("a", 4.0, 2.0)
        pm.Bernoulli("seen", a ** np.array([0.0, 1.0, 2.0, 3.0]), observed=[1, 1, 0, 1])
    found = call(export_laplace(model, verify=False), seed=[1], draws=100)
    density = lambda u: -model.compile_logp(mode="FAST_COMPILE")({"a_logodds__": u})  # noqa: E731
    mode = optimize.minimize_scalar(density, (0.0, 1.0)).x
    assert found["converged"]
    np.testing.assert_allclose(found["mode_a"], 1 / (1 + np.exp(-mode)), rtol=1e-6)


def test_trees_have_the_fit_beside_the_draws(normal):
    model = normal_model()
    results = normal(seed=[1, 2], draws=50, y=np.arange(3.0))
    for tree in (to_datatree(normal, results, model), to_datatree(normal, results)):
        assert tree.posterior["mu"].dims == ("chain", "draw", "axis")
        assert set(tree.posterior.data_vars) == {"mu", "twice"}
        assert tree.fit["mode_mu"].dims == ("axis",)
        assert tree.fit["mode_mu"]["axis"].values.tolist() == ["a", "b"]
        assert set(FIT) <= set(tree.fit.data_vars)
        assert tree.sample_stats["log_weight"].dims == ("chain", "draw")


@pytest.mark.slow
def test_an_approximation_that_is_far_off_is_told():
    program = export_laplace(eight_schools(), verify=False)
    results = program(seed=[1], draws=400)
    with pytest.warns(UserWarning, match="Pareto k is"):
        to_datatree(program, results)


def test_the_file_describes_itself(normal):
    graph = normal.proto.graph
    assert [value.name for value in graph.input] == ["seed", "draws", "y"]
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in graph.output
    }
    assert shapes["mu"] == ["chain", "draw", 2]
    assert shapes["lp"] == ["chain", "draw"]
    assert shapes["mode_mu"] == [2]
    assert shapes["covariance"] == [2, 2]
    told = json.loads(normal.model.metadata_props["pymc"])
    assert told["sampler"]["method"] == "laplace"


def test_a_file_runs_as_one_region(normal):
    _, region = region_of_all(normal.proto)
    assert region is not None


def test_names_of_results_and_discrete_variables_are_refused():
    with pm.Model() as model:
        pm.Normal("converged")
    with pytest.raises(ArgumentError, match="'converged' would name two"):
        export_laplace(model)
    with pm.Model() as model:
        pm.Normal("y", pm.Poisson("count", 2.0) + pm.Normal("x"), 1, observed=1.0)
    with pytest.raises(ArgumentError, match="discrete variables: count is Poisson"):
        export_laplace(model)
