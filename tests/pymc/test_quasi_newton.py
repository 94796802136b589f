"""The ascent of L-BFGS finds the maxima that SciPy finds, and its matrices are those of BFGS."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import optimize, stats

pytest.importorskip("pymc")

from pytensor.gradient import grad

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.pymc.nuts import State
from pytensor_onnx.pymc.quasi_newton import (
    PAIRS,
    Inverse,
    ascend,
    first_inverse,
    normal_draws,
    normal_log_densities,
    times,
    updated,
)


def rosenbrock(x, scale):
    """The negative of a function with a bent valley."""
    value = -(scale * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    return [value, grad(value, x)]


def stiff(x, scale):
    """A normal log-density of standard deviations from one to the scale."""
    sd = scale ** (pt.arange(x.shape[0]) / (x.shape[0] - 1))
    value = -0.5 * ((x - 3) ** 2 / sd**2).sum()
    return [value, grad(value, x)]


def bounded(x, scale):
    """Gamma densities, without a value for half of the points."""
    value = (scale * pt.log(x) - x).sum()
    return [value, grad(value, x)]


@pytest.mark.parametrize(
    ("density", "scale", "start", "maximum"),
    [
        (rosenbrock, 100.0, np.array([-1.2, 1.0]), 1.0),
        pytest.param(rosenbrock, 100.0, np.zeros(12), 1.0, marks=pytest.mark.slow),
        pytest.param(stiff, 1e4, np.zeros(20), 3.0, marks=pytest.mark.slow),
        (stiff, 1.0, np.full(3, 3.0), 3.0),
        (bounded, 50.0, np.full(4, 0.01), 50.0),
    ],
)
def test_maxima_are_found(density, scale, start, maximum):
    x, s = pt.vector("x"), pt.scalar("s")
    last, n_steps, _ = ascend(density, [s], State(x, *density(x, s)))
    f = pytensor.function([x, s], [last.x, n_steps, *density(x, s)], mode="ONNX")
    found, count, *_ = f(start, scale)
    # In standard deviations: a wide direction is hardly known when the ascent ends.
    sd = scale ** (np.arange(len(start)) / (len(start) - 1)) if density is stiff else maximum
    np.testing.assert_allclose((found - maximum) / sd, 0.0, atol=5e-3)

    def negative(x):
        _, _, value, gradient = f(x, scale)
        return -value, -gradient

    if density is not bounded:
        known = optimize.minimize(negative, start, jac=True, method="L-BFGS-B")
        assert count <= 2 * known.nit + 5


def dense(diagonal, pairs):
    """Return the covariance by the formula of BFGS."""
    matrix = np.diag(diagonal)
    for step, turn in pairs:
        weight = 1 / (step @ turn)
        factor = np.eye(len(step)) - weight * np.outer(step, turn)
        matrix = factor @ matrix @ factor.T + weight * np.outer(step, step)
    return matrix


@pytest.mark.parametrize("count", [0, 2, PAIRS, PAIRS + 3])
def test_products_and_densities_are_those_of_the_matrix(count):
    rng = np.random.default_rng(count)
    n = 5
    root = rng.normal(size=(n, n))
    precision = root @ root.T + np.eye(n)
    g = pt.vector("g")
    pairs = [(step, precision @ step) for step in rng.normal(size=(count, n))]
    # The first pair has no curvature, and counts as none.
    rows = np.array([(np.ones(n), -np.ones(n)), *pairs])
    (inverse,) = iterate(
        lambda pair, inverse: [updated(inverse, pair[0], pair[1])],
        [first_inverse(g)],
        sequences=[pt.constant(rows)],
        n_steps=len(rows),
    )
    normals, vector = pt.matrix("normals"), pt.vector("vector")
    draws = normal_draws(inverse, normals)
    outputs = [*inverse, times(inverse, vector), draws, normal_log_densities(inverse, draws)]
    f = pytensor.function([g, normals, vector], outputs, mode="ONNX", on_unused_input="ignore")
    gradient, given = np.array([3.0, 0, 4, 0, 0]), rng.normal(size=n)
    unit = np.eye(n + PAIRS)
    *state, product, columns, _ = f(gradient, unit, given)
    state = Inverse(*state)
    if not count:
        np.testing.assert_array_equal(state.diagonal, 0.2)
    covariance = dense(state.diagonal, pairs[-PAIRS:])
    np.testing.assert_allclose(product, covariance @ given, rtol=1e-9)
    np.testing.assert_allclose(columns.T @ columns, covariance, rtol=1e-9, atol=1e-12)
    *_, draws, densities = f(gradient, rng.normal(size=(7, n + PAIRS)), given)
    expected = stats.multivariate_normal(np.zeros(n), covariance).logpdf(draws)
    np.testing.assert_allclose(densities, expected, rtol=1e-8)
