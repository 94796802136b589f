"""Models whose posteriors are hard in different ways, for samplers."""

from collections.abc import Callable

import numpy as np
import pymc as pm

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
POSITIONS = np.arange(50)
COVARIANCE = 0.9 ** np.abs(POSITIONS[:, None] - POSITIONS) * np.multiply.outer(
    *2 * [np.exp(np.linspace(-2, 2, 50))]
)


def eight_schools() -> pm.Model:
    """A funnel, not centred."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        theta = pm.Deterministic("theta", mu + tau * pm.Normal("z", shape=8))
        pm.Normal("effect", theta, ERRORS, observed=EFFECTS)
    return model


def regression_with_groups() -> pm.Model:
    """Intercepts and slopes of 50 groups, 600 rows as data."""
    rng = np.random.default_rng(3)
    group, x = rng.integers(0, 50, 600), rng.normal(size=600)
    intercepts, slopes = rng.normal(1, 0.7, 50), rng.normal(-0.5, 0.3, 50)
    y = intercepts[group] + slopes[group] * x + rng.normal(0, 0.8, 600)
    with pm.Model() as model:
        of_row, x = pm.Data("group", group), pm.Data("x", x)
        parts = [
            pm.Normal(f"mean_{name}", 0, 2)
            + pm.HalfNormal(f"sd_{name}", 1) * pm.Normal(f"z_{name}", shape=50)
            for name in ("intercept", "slope")
        ]
        mean = parts[0][of_row] + parts[1][of_row] * x
        pm.Normal("y", mean, pm.HalfNormal("sigma", 2), observed=y)
    return model


def correlated_normal() -> pm.Model:
    """50 dimensions with neighbours correlated by 0.9, scales from 0.1 to 7."""
    with pm.Model() as model:
        x = pm.Flat("x", shape=50)
        pm.Potential("normal", -0.5 * x @ (np.linalg.inv(COVARIANCE) @ x))
    return model


def logistic_regression() -> pm.Model:
    """1,000 rows as data."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 5))
    p = 1 / (1 + np.exp(0.5 - x @ [1.0, -1.0, 0.5, 0.0, 2.0]))
    y = (rng.uniform(size=1000) < p).astype("int64")
    with pm.Model() as model:
        logits = pm.Normal("a", 0, 2) + pm.Data("x", x) @ pm.Normal("b", 0, 2, shape=5)
        pm.Bernoulli("y", logit_p=logits, observed=pm.Data("y_data", y))
    return model


POSTERIORS: dict[str, Callable[[], pm.Model]] = {
    build.__name__: build
    for build in (
        eight_schools,
        regression_with_groups,
        correlated_normal,
        logistic_regression,
    )
}
