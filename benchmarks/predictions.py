"""Predictions of a media-mix model: `predict` beside `pymc.sample_posterior_predictive`.

``python -m benchmarks.predictions`` prints wall-clock and processor seconds of the first calls and
of later ones, whose data have other values and lengths.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.timing import Table
from pytensor_onnx.pymc import predict

WEEKS, LAGS, CHANNELS, DRAWS = 52, 8, ["tv", "radio", "web", "print"], 1_000
LENGTHS = (52, 52, 26, 104, 52)
MOST = 0.1
"""Bound of a later call, in seconds."""
QUIET: dict[str, Any] = {"progressbar": False, "predictions": True, "random_seed": 1}


def media_mix() -> pm.Model:
    """Return the model: adstock over lags, saturation, trend and season."""
    rng, n = np.random.default_rng(1), len(CHANNELS)
    with pm.Model(coords={"week": np.arange(WEEKS), "channel": CHANNELS}) as model:
        spend = pm.Data("spend", rng.gamma(2, 0.5, (WEEKS, n)), dims=("week", "channel"))
        year = pm.Data("year", np.arange(WEEKS) / 52, dims="week")
        alpha, rate = pm.Beta("alpha", 2, 2, dims="channel"), pm.Gamma("rate", 3, 1, dims="channel")
        beta, season = pm.HalfNormal("beta", dims="channel"), pm.Normal("season", shape=2)
        weights = alpha ** pt.arange(LAGS)[:, None]
        padded = pt.concatenate([pt.zeros((LAGS - 1, n)), spend])
        parts = [padded[LAGS - 1 - lag : padded.shape[0] - lag] for lag in range(LAGS)]
        stock = (pt.stack(parts) * (weights / weights.sum(axis=0))[:, None, :]).sum(axis=0)
        saturated = (1 - pt.exp(-rate * stock)) / (1 + pt.exp(-rate * stock))
        contribution = pm.Deterministic("contribution", beta * saturated, dims=("week", "channel"))
        waves = season[0] * pt.sin(2 * np.pi * year) + season[1] * pt.cos(2 * np.pi * year)
        base = pm.Normal("intercept") + pm.Normal("slope") * year + waves
        mu = pm.Deterministic("mu", base + contribution.sum(axis=1), dims="week")
        observed = rng.normal(2, 0.3, WEEKS)
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=observed, dims="week")
    return model


def new_data(weeks: int) -> dict[str, np.ndarray]:
    """Return the data of weeks to come."""
    rng = np.random.default_rng(weeks)
    spend = rng.gamma(2, 0.5, (weeks, len(CHANNELS)))
    return {"spend": spend, "year": np.arange(weeks) / 52 + 1}


def main() -> None:
    """Measure and print."""
    logging.getLogger("pymc").setLevel("ERROR")
    model = media_mix()
    prior = pm.sample_prior_predictive(DRAWS, model=model, random_seed=1)["prior"].dataset
    trace = prior[[v.name for v in model.free_RVs]]

    def ours(weeks: int, **options: Any) -> None:
        predict(model, trace, new_data(weeks), coords={"week": range(weeks)}, **options)

    def of_pymc(weeks: int) -> None:
        with model:
            pm.set_data(new_data(weeks), coords={"week": range(weeks)})
            pm.sample_posterior_predictive(trace, **QUIET)

    table = Table("Predictions of a media-mix model", ["call", "wall, s", "processor, s"])

    def measure(name: str, call: Callable[[], None]) -> float:
        wall, processor = time.perf_counter(), time.process_time()
        call()
        seconds = time.perf_counter() - wall, time.process_time() - processor
        table.rows.append([name, *(f"{x:.3f}" for x in seconds)])
        return seconds[0]

    for weeks in LENGTHS:
        last = measure(f"predict, {weeks} weeks", lambda n=weeks: ours(n))
    table.claim("seconds of a later call", last, MOST)
    measure("predict, other outputs", lambda: ours(52, outputs=["mu", "y"]))
    measure("predict, the same, verified", lambda: ours(52, outputs=["mu", "y"], verify=True))
    for weeks in LENGTHS:
        measure(f"sample_posterior_predictive, {weeks} weeks", lambda n=weeks: of_pymc(n))
    table.show()


if __name__ == "__main__":
    main()
