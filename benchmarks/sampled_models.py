"""PyMC models of public collections, which samplers are compared on; numbers are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm

from benchmarks.densities import eight_schools, radon


def kidscore() -> pm.Model:
    """Scores of 434 children by school and intelligence of their mothers, with an interaction."""
    rng = np.random.default_rng(11)
    school, intelligence = rng.binomial(1, 0.79, 434), rng.normal(100, 15, 434)
    score = 26 + 6 * school + 0.56 * intelligence + rng.normal(0, 18, 434)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 100, shape=4)
        mean = b[0] + b[1] * school + b[2] * intelligence + b[3] * school * intelligence
        pm.Normal("score", mean, pm.HalfCauchy("sigma", 2.5), observed=score)
    return model


def ark() -> pm.Model:
    """An autoregression of order 5 over 200 steps."""
    weights = np.array([0.69, 0.46, -0.13, -0.11, 0.08])
    rng, order = np.random.default_rng(12), len(weights)
    y = [*rng.normal(size=order)]
    for noise in 0.15 * rng.normal(size=200 - order):
        y.append(weights @ y[: -order - 1 : -1] + noise)
    y = np.array(y)
    lagged = np.column_stack([y[order - k - 1 : -k - 1] for k in range(order)])
    with pm.Model() as model:
        mean = pm.Normal("alpha", 0, 10) + lagged @ pm.Normal("beta", 0, 10, shape=order)
        pm.Normal("y", mean, pm.HalfCauchy("sigma", 2.5), observed=y[order:])
    return model


def item_response() -> pm.Model:
    """Answers of 100 people to 20 questions, by ability, difficulty and discrimination."""
    rng = np.random.default_rng(13)
    ability, easiness = rng.normal(size=100), rng.normal(size=20)
    slope = np.exp(0.5 * rng.normal(size=20))
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - easiness)))
    with pm.Model() as model:
        theta = pm.HalfCauchy("sigma_theta", 2) * pm.Normal("theta", shape=(100, 1))
        a = pm.LogNormal("a", 0, pm.HalfCauchy("sigma_a", 2), shape=20)
        b = pm.Normal("mu_b", 0, 5) + pm.HalfCauchy("sigma_b", 2) * pm.Normal("b", shape=20)
        pm.Bernoulli("y", logit_p=a * (theta - b), observed=rng.binomial(1, chance))
    return model


SAMPLED: dict[str, Callable[[], pm.Model]] = {
    made.__name__: made for made in (eight_schools, radon, kidscore, ark, item_response)
}
"""Functions that build the models, by name."""
