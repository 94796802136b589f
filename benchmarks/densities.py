"""PyMC models whose densities and gradients samplers call, as functions of a vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

DENSITIES: dict[str, Callable[[], pm.Model]] = {}
"""Functions that build the models, by name."""


def density(build: Callable[[], pm.Model]) -> Callable[[], pm.Model]:
    """Register a model by the name of its function."""
    DENSITIES[build.__name__] = build
    return build


@density
def eight_schools() -> pm.Model:
    """Effects of schools, not centred."""
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        pm.Normal("effect", mu + tau * pm.Normal("z", shape=8), errors, observed=effects)
    return model


@density
def radon() -> pm.Model:
    """919 houses in 85 counties: intercepts and slopes by county."""
    rng = np.random.default_rng(1)
    county, floor = rng.integers(0, 85, 919), rng.integers(0, 2, 919).astype(float)
    level = rng.normal(1.5, 0.8, 919)
    with pm.Model() as model:
        intercepts = pm.Normal("mu_a", 0, 5) + pm.HalfNormal("sd_a", 1) * pm.Normal("z_a", shape=85)
        slopes = pm.Normal("mu_b", 0, 5) + pm.HalfNormal("sd_b", 1) * pm.Normal("z_b", shape=85)
        mean = intercepts[county] + slopes[county] * floor
        pm.Normal("level", mean, pm.HalfNormal("sd", 2), observed=level)
    return model


@density
def scalars() -> pm.Model:
    """25 scalar variables, each the mean of the next."""
    with pm.Model() as model:
        last = pm.Normal("x0")
        for i in range(1, 25):
            last = pm.Normal(f"x{i}", last, 1 + pt.exp(last / 5))
    return model


@density
def logistic() -> pm.Model:
    """200 rows of 25 predictors."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 25))
    with pm.Model() as model:
        logits = pm.Normal("a") + x @ pm.Normal("b", shape=25)
        pm.Bernoulli("y", logit_p=logits, observed=rng.integers(0, 2, 200))
    return model


@density
def mixture() -> pm.Model:
    """Three normal distributions, 200 points."""
    rng = np.random.default_rng(3)
    with pm.Model() as model:
        weights = pm.Dirichlet("w", np.ones(3))
        means, sds = pm.Normal("mu", 0, 3, shape=3), pm.HalfNormal("sd", 1, shape=3)
        pm.NormalMixture("y", weights, means, sds, observed=rng.normal(size=200))
    return model


@density
def ordinal() -> pm.Model:
    """200 ordered answers of five kinds, three predictors."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 3))
    with pm.Model() as model:
        cuts = pm.Normal(
            "cuts",
            np.array([-1.0, -0.3, 0.3, 1.0]),
            1.0,
            shape=4,
            transform=pm.distributions.transforms.ordered,
            initval=np.array([-1.0, -0.3, 0.3, 1.0]),
        )
        slopes = pm.Normal("b", shape=3)
        pm.OrderedLogistic("y", eta=x @ slopes, cutpoints=cuts, observed=rng.integers(0, 5, 200))
    return model


@density
def correlated() -> pm.Model:
    """An LKJ prior of three dimensions."""
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.Normal("y", factor @ pm.Normal("z", shape=3), 1.0, observed=np.array([0.3, -0.5, 1.0]))
    return model


@density
def volatility() -> pm.Model:
    """Returns of 400 days, whose volatility is a random walk."""
    rng = np.random.default_rng(5)
    with pm.Model() as model:
        step = pm.Exponential("step", 10.0)
        walk = pm.GaussianRandomWalk("walk", sigma=step, init_dist=pm.Normal.dist(0, 1), shape=400)
        nu = pm.Exponential("nu", 0.1)
        pm.StudentT("r", nu=nu + 2, lam=pt.exp(-2 * walk), observed=rng.normal(size=400))
    return model


@density
def counts() -> pm.Model:
    """A negative binomial regression of 200 rows."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=200)
    with pm.Model() as model:
        mean = pt.exp(pm.Normal("a") + pm.Normal("b") * x)
        alpha = pm.Exponential("alpha", 1.0)
        pm.NegativeBinomial("y", mu=mean, alpha=alpha, observed=rng.poisson(2.0, 200))
    return model


@density
def gaussian_process() -> pm.Model:
    """50 points with a squared exponential covariance."""
    rng = np.random.default_rng(7)
    x = np.linspace(0, 3, 50)[:, None]
    with pm.Model() as model:
        length, scale = pm.Gamma("length", 2, 1), pm.HalfNormal("scale", 1)
        process = pm.gp.Marginal(cov_func=scale**2 * pm.gp.cov.ExpQuad(1, ls=length))
        process.marginal_likelihood("y", X=x, y=rng.normal(size=50), sigma=pm.HalfNormal("sd", 1))
    return model
