"""Densities with gradients in mode ONNX: with `pm.Data`, and of the same model with frozen data."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.transform.optimization import freeze_dims_and_data

import pytensor_onnx  # noqa: F401  (registers mode ONNX)
from benchmarks.timing import Table, interleaved

BOUND = 1.15


def hsgp(rng: np.random.Generator) -> Any:
    x = pm.Data("x", rng.uniform(-3, 3, (500, 1)))
    scale = pm.HalfNormal("scale")
    kernel = scale**2 * pm.gp.cov.ExpQuad(1, ls=pm.InverseGamma("length", 5, 5))
    return pm.gp.HSGP(m=[40], c=1.5, cov_func=kernel).prior("f", X=x)


def spline(rng: np.random.Generator) -> Any:
    x, knots = pm.Data("x", rng.uniform(size=400)), pm.Data("knots", np.linspace(0, 1, 12))
    basis = pt.maximum(x[:, None] - knots, 0) ** 3
    return basis @ pm.Normal("b", shape=12)


def seasonality(rng: np.random.Generator) -> Any:
    t = pm.Data("t", np.arange(300.0))
    angles = 2 * np.pi * t[:, None] * np.arange(1, 7) / 365.25
    basis = pt.concatenate([pt.sin(angles), pt.cos(angles)], axis=1)
    return pm.Normal("a") + pm.Normal("c") * t / 100 + basis @ pm.Normal("b", shape=12)


def distances(rng: np.random.Generator) -> Any:
    x = pm.Data("x", rng.uniform(0, 5, 40))
    return pt.exp(-((x[:, None] - x) ** 2)) @ pm.Normal("b", shape=40)


def one_hot(rng: np.random.Generator) -> Any:
    groups = pm.Data("groups", rng.integers(0, 8, 500))
    return pt.eq(groups[:, None], np.arange(8)).astype("float64") @ pm.Normal("b", shape=8)


MEANS = [hsgp, spline, seasonality, distances, one_hot]


def call_of(model: pm.Model) -> Callable[[], object]:
    """Return a call of the density and its gradient at the initial point."""
    f = model.logp_dlogp_function(ravel_inputs=True, mode="ONNX")
    point = np.concatenate([np.ravel(x) for x in model.initial_point().values()])
    return lambda: f([point])


def measure() -> Table:
    """Time calls of densities with their gradients."""
    table = Table("What depends on data alone", ["µs a call", "pm.Data", "frozen", "ratio"])
    for mean in MEANS:
        rng = np.random.default_rng(0)
        with pm.Model() as model:
            mu = mean(rng)
            size = int(mu.shape[0].eval())
            pm.Normal("y", mu, pm.HalfNormal("s"), observed=rng.normal(size=size))
        frozen = freeze_dims_and_data(model)
        times = interleaved({"data": call_of(model), "frozen": call_of(frozen)}, rounds=400)
        ratio = times["data"] / times["frozen"]
        table.rows.append(
            [mean.__name__, *(f"{x * 1e6:.1f}" for x in times.values()), f"{ratio:.2f}"]
        )
        table.claim(mean.__name__, ratio, BOUND)
    return table


if __name__ == "__main__":
    measure().show()
