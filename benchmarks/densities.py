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


def media_mix(times: int) -> pm.Model:
    """Sales of 179 weeks, or a multiple of them, by spending in 4 channels with 8 lags."""
    rng = np.random.default_rng(8)
    n, channels, lags = 179 * times, 4, 8
    spend, week = rng.gamma(2, 1, size=(n, channels)), np.arange(n)
    waves = [f(2 * np.pi * week * k / 52) for k in (1, 2) for f in (np.sin, np.cos)]
    with pm.Model() as model:
        decay, rate = pm.Beta("decay", 1, 3, shape=channels), pm.Gamma("rate", 3, 1, shape=channels)
        weights = decay[None, :] ** np.arange(lags)[:, None]
        weights = weights / weights.sum(axis=0)
        padded = pt.concatenate([pt.zeros((lags - 1, channels)), pt.as_tensor(spend)])
        shifted = pt.stack([padded[lags - 1 - k : lags - 1 - k + n] for k in range(lags)], axis=2)
        stock = rate * (shifted * weights.T[None]).sum(axis=-1)
        effect = pm.HalfNormal("beta", 2, shape=channels) * pt.tanh(stock / 2)
        season = pt.as_tensor(np.column_stack(waves)) @ pm.Normal("season", shape=4)
        mean = pm.Normal("a", 0, 2) + effect.sum(axis=-1) + season + pm.Normal("trend") * (week / n)
        pm.Normal("sales", mean, pm.HalfNormal("sd", 2), observed=rng.normal(size=n))
    return model


@density
def media_mix_1() -> pm.Model:
    """179 weeks of `media_mix`."""
    return media_mix(1)


@density
def media_mix_10() -> pm.Model:
    """1,790 weeks of `media_mix`."""
    return media_mix(10)


@density
def media_mix_100() -> pm.Model:
    """17,900 weeks of `media_mix`."""
    return media_mix(100)


@density
def factors() -> pm.Model:
    """A matrix of 60 rows and 80 columns by five factors."""
    with pm.Model() as model:
        rows, columns = pm.Normal("rows", shape=(60, 5)), pm.Normal("columns", shape=(80, 5))
        observed = np.random.default_rng(9).normal(size=(60, 80))
        pm.Normal("y", rows @ columns.T, 0.5, observed=observed)
    return model


@density
def network() -> pm.Model:
    """1,000 rows through a network of two layers of five units."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=(1000, 2))
    with pm.Model() as model:
        hidden = pt.tanh(x @ pm.Normal("a", shape=(2, 5)))
        logits = pt.tanh(hidden @ pm.Normal("b", shape=(5, 5))) @ pm.Normal("c", shape=5)
        pm.Bernoulli("y", logit_p=logits, observed=rng.integers(0, 2, 1000))
    return model


@density
def horseshoe() -> pm.Model:
    """100 rows of 200 predictors, most without effect."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(100, 200))
    with pm.Model() as model:
        tau, local = pm.HalfCauchy("tau", 1), pm.HalfCauchy("local", 1, shape=200)
        slab = pm.InverseGamma("slab", 2, 2)
        scale = tau * pt.sqrt(slab) * local / pt.sqrt(slab + tau**2 * local**2)
        mean = x @ (pm.Normal("z", shape=200) * scale)
        pm.Normal("y", mean, pm.HalfNormal("sd", 1), observed=rng.normal(size=100))
    return model


@density
def items() -> pm.Model:
    """Answers of 100 people to 20 questions."""
    with pm.Model() as model:
        ability, slope = pm.Normal("ability", shape=100), pm.LogNormal("slope", 0, 0.5, shape=20)
        logits = slope * (ability[:, None] - pm.Normal("difficulty", shape=20))
        answers = np.random.default_rng(13).integers(0, 2, (100, 20))
        pm.Bernoulli("y", logit_p=logits, observed=answers)
    return model


@density
def inflated_counts() -> pm.Model:
    """1,000 counts with many zeros, in eight groups."""
    rng = np.random.default_rng(14)
    x, group = rng.normal(size=(1000, 3)), rng.integers(0, 8, 1000)
    with pm.Model() as model:
        effects = pm.Normal("effects", 0, pm.HalfNormal("sd", 1), shape=8)
        mean = pt.exp(x @ pm.Normal("b", shape=3) + effects[group])
        pm.ZeroInflatedNegativeBinomial(
            "y",
            psi=pm.Beta("psi", 2, 2),
            mu=mean,
            alpha=pm.Exponential("alpha", 1),
            observed=rng.poisson(2, 1000) * rng.integers(0, 2, 1000),
        )
    return model


def grouped(rows: int) -> pm.Model:
    """Return a logistic regression of rows of eight predictors in 40 groups."""
    rng = np.random.default_rng(15)
    x, group = rng.normal(size=(rows, 8)), rng.integers(0, 40, rows)
    with pm.Model() as model:
        effects = pm.Normal("m", 0, 2) + pm.HalfNormal("s", 1) * pm.Normal("z", shape=40)
        logits = effects[group] + x @ pm.Normal("b", shape=8)
        pm.Bernoulli("y", logit_p=logits, observed=rng.integers(0, 2, rows))
    return model


@density
def groups() -> pm.Model:
    """5,000 rows of `grouped`."""
    return grouped(5000)
