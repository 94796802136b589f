"""Densities of long loops and large products, with their gradients, as functions of a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

N_STEPS, N_OBSERVED, N_POINTS = 2_000, 500, 5_000

LONG: dict[str, tuple[Callable[[], Any], float]] = {}
"""Functions that build PyMC models or graphs by name, with the largest ratio to NUMBA's call."""


def bounded(bound: float) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a model or graph by the name of its function."""

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        LONG[build.__name__] = build, bound
        return build

    return register


@bounded(1.6)
def ode() -> tuple[Variable, list[Variable], np.ndarray]:
    """Predators and prey by the fourth-order method of Runge and Kutta, without a gradient."""
    rates = pt.vector("rates", dtype="float64", shape=(4,))
    a, b, c, d = (rates[i] for i in range(4))
    h = 0.01

    def slope(x: Any, y: Any) -> tuple[Any, Any]:
        return a * x - b * x * y, c * x * y - d * y

    def step(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
        x1, y1 = slope(x, y)
        x2, y2 = slope(x + h / 2 * x1, y + h / 2 * y1)
        x3, y3 = slope(x + h / 2 * x2, y + h / 2 * y2)
        x4, y4 = slope(x + h * x3, y + h * y3)
        sum_x, sum_y = x1 + 2 * x2 + 2 * x3 + x4, y1 + 2 * y2 + 2 * y3 + y4
        return x + h / 6 * sum_x, y + h / 6 * sum_y

    start = pt.constant(np.array(1.0))
    results = pytensor.scan(
        step,
        outputs_info=[start, start],
        non_sequences=[a, b, c, d],
        n_steps=N_STEPS,
        return_updates=False,
    )
    return rates, list(results), np.array([0.7, 0.5, 0.4, 0.6])


@bounded(1.0)
def kalman() -> tuple[Variable, list[Variable], np.ndarray]:
    """Density and gradient of a local linear trend: two states, one observation a step."""
    variances = pt.vector("variances", dtype="float64", shape=(3,))
    level, trend, noise = (variances[i] for i in range(3))
    observed = np.cumsum(np.random.default_rng(8).normal(size=N_OBSERVED))
    moves = pt.constant(np.array([[1.0, 1.0], [0.0, 1.0]]))
    spread = pt.diag(pt.stack([level, trend]))

    def step(y: Any, mean: Any, cov: Any, spread: Any, noise: Any) -> tuple[Any, Any, Any]:
        mean = moves @ mean
        cov = moves @ cov @ moves.T + spread
        error, variance = y - mean[0], cov[0, 0] + noise
        gain = cov[:, 0] / variance
        density = -0.5 * (pt.log(2 * np.pi * variance) + error**2 / variance)
        return mean + gain * error, cov - pt.outer(gain, cov[0]), density

    *_, densities = pytensor.scan(
        step,
        sequences=[pt.constant(observed)],
        outputs_info=[pt.zeros(2), 10 * pt.eye(2), None],
        non_sequences=[spread, noise],
        return_updates=False,
    )
    density = densities.sum()
    return variances, [density, pt.grad(density, variances)], np.array([0.4, 0.1, 0.3])


@bounded(1.6)
def hsgp() -> pm.Model:
    """A Gaussian process of 5,000 points by 25 basis functions."""
    rng = np.random.default_rng(9)
    x = np.linspace(-1, 1, N_POINTS)[:, None]
    with pm.Model() as model:
        length, scale = pm.InverseGamma("length", 5, 1), pm.HalfNormal("scale", 1)
        process = pm.gp.HSGP(m=[25], c=1.5, cov_func=scale**2 * pm.gp.cov.ExpQuad(1, ls=length))
        pm.Normal(
            "y", process.prior("f", X=x), pm.HalfNormal("sd", 1), observed=rng.normal(size=5000)
        )
    return model
