"""Variational inference finds normal posteriors exactly, and those of eight schools nearly."""

import numpy as np
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.kernels.regions import region_of_all  # noqa: E402
from pytensor_onnx.pymc import export_advi, export_laplace, to_datatree  # noqa: E402
from tests.pymc.posteriors import (  # noqa: E402
    COVARIANCE,
    correlated_normal,
    eight_schools,
    logistic_regression,
)


def call(program, **inputs):
    """Return the results of a program by name."""
    names = [str(value.name) for value in program.model.graph.outputs]
    return dict(zip(names, program(**inputs), strict=True))


def normal_model():
    """Independent normal means, whose posteriors are normal, with data of any length."""
    with pm.Model(coords={"axis": ["a", "b"]}) as model:
        mu = pm.Normal("mu", 1.0, 2.0, dims="axis")
        y = pm.Data("y", np.arange(3.0))
        pm.Normal("seen", mu[:, None], [[1.0], [30.0]], observed=y[None, :] * np.ones((2, 1)))
    return model


@pytest.fixture(scope="module")
def normal():
    return export_advi(normal_model(), unconstrained=True, verify=False)


@pytest.mark.parametrize("y", [np.arange(3.0), np.array([4.0, -2.0, 7.0, 1.0, 0.5])])
def test_independent_normal_posteriors_are_found(normal, y):
    found = call(normal, seed=[1, 2], draws=500, y=y)
    weights = np.array([1.0, 1 / 900])
    precision = 1 / 4 + len(y) * weights
    mean = (1 / 4 + y.sum() * weights) / precision
    assert found["converged"]
    deviation = (found["mean_point"] - mean) * np.sqrt(precision)
    np.testing.assert_allclose(deviation, 0, atol=1e-3)
    # The 30 draws of two coordinates are not quite uncorrelated.
    np.testing.assert_allclose(found["sd_point"] * np.sqrt(precision), 1, atol=1e-3)
    evidence = sum(
        stats.multivariate_normal(np.ones(len(y)), np.eye(len(y)) / w + 4).logpdf(y)
        for w in weights
    )
    np.testing.assert_allclose(found["elbo"], evidence, atol=1e-5)
    assert found["pareto_k"] < 0.5
    assert found["mu"].shape == (2, 500, 2)
    np.testing.assert_array_equal(found["mu"], found["point"])
    spread = (found["mu"] - found["mean_point"]) / found["sd_point"]
    assert abs(spread.mean()) < 0.1
    assert abs(spread.std() - 1) < 0.1
    np.testing.assert_allclose(np.exp(found["log_weight"]).sum(), 1, rtol=1e-12)


def test_a_correlated_normal_has_its_mean_and_conditional_deviations():
    precision = np.array([[2.0, 0.8], [0.8, 1.0]])
    with pm.Model() as model:
        x = pm.Flat("x", shape=2)
        pm.Potential("normal", -0.5 * (x - 3) @ precision @ (x - 3))
    found = call(export_advi(model, unconstrained=True, verify=False), seed=[0], draws=0)
    np.testing.assert_allclose(found["mean_point"], 3, atol=1e-3)
    np.testing.assert_allclose(found["sd_point"], np.diag(precision) ** -0.5, rtol=0.2)


def test_results_do_not_depend_on_the_seed_but_for_draws(normal):
    first, second = (call(normal, seed=[i], draws=5, y=np.arange(3.0)) for i in (1, 2))
    again = call(normal, seed=[1], draws=5, y=np.arange(3.0))
    for name, value in first.items():
        np.testing.assert_array_equal(value, again[name])
    np.testing.assert_array_equal(first["mean_point"], second["mean_point"])
    assert not np.array_equal(first["mu"], second["mu"])


def test_eight_schools_are_near_the_posterior():
    """Means and deviations of NUTS: mu 4.4 and 3.3, tau 3.6 and 3.2."""
    found = call(export_advi(eight_schools()), seed=[1, 2], draws=2000)
    weights = np.exp(found["log_weight"])
    assert found["pareto_k"] < 0.7
    assert abs((weights * found["mu"]).sum() - 4.4) < 0.5
    assert abs((weights * found["tau"]).sum() - 3.6) < 0.7


@pytest.mark.slow
def test_the_bound_is_below_the_evidence():
    model = logistic_regression()
    data = {v.name: v.get_value() for v in model.data_vars}
    program = export_advi(model, verify=False)
    found = call(program, seed=[1], draws=100, **data)
    laplace = call(export_laplace(model, verify=False), seed=[1], draws=0, **data)
    gap = laplace["log_marginal_likelihood"] - found["elbo"]
    assert 0 < gap < 1
    np.testing.assert_allclose(found["b"].mean((0, 1)), laplace["mode_b"], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("approximation", ["mean_field", "full_rank"])
def test_without_a_finite_start_draws_are_nan(approximation):
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("nowhere", pm.math.log(x - 100.0))
    program = export_advi(model, approximation=approximation, verify=False)
    results = program(seed=[1], draws=3)
    found = dict(zip([v.name for v in program.model.graph.outputs], results, strict=True))
    assert not found["converged"]
    assert np.isnan(found["x"]).all()
    with pytest.warns(UserWarning, match="converged is false"):
        to_datatree(program, results)


def test_a_file_runs_as_one_region_and_makes_a_tree(normal):
    _, region = region_of_all(normal.proto)
    assert region is not None
    tree = to_datatree(normal, normal(seed=[1, 2], draws=50, y=np.arange(3.0)), normal_model())
    assert tree.posterior["mu"].dims == ("chain", "draw", "axis")
    assert set(tree.fit.data_vars) >= {"elbo", "pareto_k", "converged"}


def bound(found):
    """Return the mean of the ratios of all draws, and its Monte Carlo error."""
    mean, covariance = found["mean_point"], found.get("covariance")
    covariance = np.diag(found["sd_point"] ** 2) if covariance is None else covariance
    log_q = stats.multivariate_normal(mean, covariance).logpdf(found["point"])
    ratios = found["lp"] - log_q
    return ratios.mean(), ratios.std() / np.sqrt(ratios.size)


@pytest.mark.slow
def test_a_correlated_normal_of_more_coordinates_than_fixed_draws_is_found():
    program = export_advi(
        correlated_normal(), approximation="full_rank", unconstrained=True, verify=False
    )
    found = call(program, seed=[1, 2], draws=2000)
    assert found["converged"]
    whitened = np.linalg.inv(np.linalg.cholesky(COVARIANCE))
    np.testing.assert_allclose(whitened @ found["mean_point"], 0, atol=1e-3)
    np.testing.assert_allclose(whitened @ found["covariance"] @ whitened.T, np.eye(50), atol=1e-3)
    np.testing.assert_allclose(
        found["elbo"], 0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1], atol=1e-3
    )
    # Covariances of 4,000 draws of 50 coordinates have eigenvalues within 1 ± 2 √(50 / 4000).
    drawn = np.cov((found["x"] @ whitened.T).reshape(-1, 50).T)
    assert np.abs(np.linalg.eigvalsh(drawn) - 1).max() < 0.35
    assert found["pareto_k"] < 0.3


def test_a_posterior_with_correlations_and_data_of_another_length():
    with pm.Model() as model:
        x = pm.Data("x", np.arange(3.0))
        a, b = pm.Normal("a", 0, 10), pm.Normal("b", 0, 10)
        pm.Normal("seen", a + b * x, 1.0, observed=0 * x)
    program = export_advi(model, approximation="full_rank", unconstrained=True, verify=False)
    for x in (np.arange(3.0), np.arange(5.0) + 20):
        found = call(program, seed=[1], draws=30, x=x)
        design = np.stack([np.ones_like(x), x], axis=1)
        expected = np.linalg.inv(design.T @ design + np.eye(2) / 100)
        np.testing.assert_allclose(found["covariance"], expected, rtol=1e-5)
        np.testing.assert_allclose(found["mean_point"], 0, atol=1e-5)
    _, region = region_of_all(program.proto)
    assert region is not None


@pytest.mark.slow
def test_the_bound_of_full_rank_is_the_larger_one():
    made = [
        export_advi(eight_schools(), approximation=kind, unconstrained=True, verify=False)
        for kind in ("mean_field", "full_rank")
    ]
    independent, correlated = (call(program, seed=[1, 2], draws=4000) for program in made)
    (low, first_error), (high, second_error) = bound(independent), bound(correlated)
    assert high - low > -3 * np.hypot(first_error, second_error)
    assert abs(correlated["elbo"] - high) < 0.2
    np.testing.assert_array_equal(
        correlated["covariance"], call(made[1], seed=[3], draws=0)["covariance"]
    )


@pytest.mark.slow
def test_a_regression_has_the_covariance_of_its_laplace_approximation():
    model = logistic_regression()
    data = {v.name: v.get_value() for v in model.data_vars}
    found, laplace = (
        call(made, seed=[1], draws=1000, **data)
        for made in (
            export_advi(model, approximation="full_rank", unconstrained=True, verify=False),
            export_laplace(model, unconstrained=True, verify=False),
        )
    )
    whitened = np.linalg.inv(np.linalg.cholesky(laplace["covariance"]))
    np.testing.assert_allclose(whitened @ found["covariance"] @ whitened.T, np.eye(6), atol=0.1)
    assert found["pareto_k"] < 0.5
    assert 0 < laplace["log_marginal_likelihood"] - found["elbo"] + 0.1 < 0.2


def test_a_probability_of_one_has_a_gradient():
    """The derivative of log(1 - p) is infinite, and is not chosen."""
    counts = np.array([0.0, 0.0, 1.0, 2.0, 3.0])
    seen = np.array([1, 1, 1, 0, 1])
    with pm.Model() as model:
        a = pm.Beta("a", 4.0, 2.0)
        pm.Bernoulli("seen", a**counts, observed=seen)
    found = call(export_advi(model, verify=False), seed=[1], draws=900)
    grid = (np.arange(1000) + 0.5) / 1000
    weights = stats.beta(4, 2).pdf(grid) * (grid * (1 - grid**2) * grid**3)
    assert found["converged"]
    mean = (weights * grid).sum() / weights.sum()
    np.testing.assert_allclose(found["a"].mean(), mean, atol=0.02)


def test_no_variables_leave_the_points():
    program = export_advi(normal_model(), variables=[], unconstrained=True, verify=False)
    found = call(program, seed=[1], draws=4, y=np.arange(3.0))
    assert "mu" not in found
    assert found["point"].shape == (1, 4, 2)


def test_unknown_approximations_are_refused():
    with pytest.raises(ArgumentError, match="approximation='full': give one of 'mean_field'"):
        export_advi(normal_model(), approximation="full")


def test_names_of_results_are_refused():
    with pm.Model() as model:
        pm.Normal("elbo")
    with pytest.raises(ArgumentError, match="'elbo' would name two"):
        export_advi(model)
