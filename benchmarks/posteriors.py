"""Nine models of posteriordb, a public collection of posteriors, on its data.

The data are downloaded, or read from a clone: ``POSTERIORDB=file:///path/to/posteriordb``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.request import urlopen
from zipfile import ZipFile

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

PUBLIC = "https://raw.githubusercontent.com/stan-dev/posteriordb"
COMMIT = "28f8d3d6e975315f42aa274a8399f21e07a43b30"
Data = dict[str, Any]


def read(name: str) -> Data:
    """Return a data set of posteriordb, its lists as arrays."""
    base = os.environ.get("POSTERIORDB", f"{PUBLIC}/{COMMIT}")
    with urlopen(f"{base}/posterior_database/data/data/{name}.json.zip") as response:
        archive = ZipFile(BytesIO(response.read()))
    values = json.loads(archive.read(f"{name}.json"))
    return {k: np.asarray(v) if isinstance(v, list) else v for k, v in values.items()}


def kidscore(data: Data) -> pm.Model:
    """Scores of children by the intelligence of their mothers."""
    with pm.Model() as model:
        b = pm.Flat("beta", shape=2)
        sigma = pm.HalfCauchy("sigma", 2.5)
        pm.Normal("score", b[0] + b[1] * data["mom_iq"], sigma, observed=data["kid_score"])
    return model


def wells(data: Data) -> pm.Model:
    """Whether households change their well, by the distance of the next one."""
    with pm.Model() as model:
        logits = pm.Flat("alpha") + pm.Flat("beta") * data["dist"] / 100
        pm.Bernoulli("switched", logit_p=logits, observed=data["switched"])
    return model


def ark(data: Data) -> pm.Model:
    """An autoregression."""
    y, order = data["y"], data["K"]
    lagged = np.column_stack([y[order - k - 1 : -k - 1] for k in range(order)])
    with pm.Model() as model:
        mean = pm.Normal("alpha", 0, 10) + lagged @ pm.Normal("beta", 0, 10, shape=order)
        pm.Normal("y", mean, pm.HalfCauchy("sigma", 2.5), observed=y[order:])
    return model


def eight_schools(data: Data) -> pm.Model:
    """Effects of schools, not centred."""
    with pm.Model() as model:
        z, mu = pm.Normal("theta_trans", shape=data["J"]), pm.Normal("mu", 0, 5)
        effects = mu + pm.HalfCauchy("tau", 5) * z
        pm.Normal("y", effects, data["sigma"], observed=data["y"])
    return model


def diamonds(data: Data) -> pm.Model:
    """Prices of diamonds, by 24 predictors that are nearly dependent."""
    x = data["X"][:, 1:]
    with pm.Model() as model:
        b = pm.Normal("b", shape=x.shape[1])
        mean = pm.StudentT("Intercept", nu=3, mu=8, sigma=10) + (x - x.mean(axis=0)) @ b
        pm.Normal("y", mean, pm.HalfStudentT("sigma", nu=3, sigma=10), observed=data["Y"])
    return model


def radon_minnesota(data: Data) -> pm.Model:
    """Radon in 919 houses of Minnesota: intercepts by county."""
    with pm.Model() as model:
        mean = pm.Normal("beta", 0, 10) * data["floor_measure"] + _by_county(data)
        pm.Normal("y", mean, pm.HalfNormal("sigma_y"), observed=data["log_radon"])
    return model


def item_response(data: Data) -> pm.Model:
    """Answers of 100 people to 20 questions, by ability, difficulty and discrimination."""
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, pm.HalfCauchy("sigma_theta", 2), shape=data["J"])
        a = pm.LogNormal("a", 0, pm.HalfCauchy("sigma_a", 2), shape=data["I"])
        b = pm.Normal("b", pm.Normal("mu_b", 0, 5), pm.HalfCauchy("sigma_b", 2), shape=data["I"])
        logits = a[:, None] * (theta - b[:, None])
        pm.Bernoulli("y", logit_p=logits, observed=data["y"])
    return model


def radon_states(data: Data) -> pm.Model:
    """Radon in 12,573 houses of all states: intercepts by county, and uranium."""
    with pm.Model() as model:
        b = pm.Normal("beta", 0, 10, shape=2)
        mean = b[0] * data["log_uppm"] + b[1] * data["floor_measure"] + _by_county(data)
        pm.Normal("y", mean, pm.HalfNormal("sigma_y"), observed=data["log_radon"])
    return model


def _by_county(data: Data) -> TensorVariable:
    """Return the intercepts of the houses' counties, not centred."""
    z = pm.Normal("alpha_raw", shape=data["J"])
    alpha = pm.Normal("mu_alpha", 0, 10) + pm.HalfNormal("sigma_alpha") * z
    return alpha[data["county_idx"] - 1]


def horseshoe(data: Data) -> pm.Model:
    """A logistic regression of 54 rows and 1,536 predictors, by a regularised horseshoe."""
    with pm.Model() as model:
        intercept = pm.Normal("beta0", 0, data["scale_icept"])
        z = pm.Normal("z", shape=data["d"])
        tau = pm.HalfStudentT("tau", nu=data["nu_global"], sigma=2 * data["scale_global"])
        local = pm.HalfStudentT("lambda", nu=data["nu_local"], sigma=1, shape=data["d"])
        caux = pm.InverseGamma("caux", data["slab_df"] / 2, data["slab_df"] / 2)
        slab = data["slab_scale"] ** 2 * caux
        shrunk = pt.sqrt(slab * local**2 / (slab + tau**2 * local**2))
        pm.Bernoulli("y", logit_p=intercept + data["x"] @ (z * shrunk * tau), observed=data["y"])
    return model


POSTERIORS: dict[str, tuple[Callable[[Data], pm.Model], str]] = {
    "kidiq-kidscore_momiq": (kidscore, "kidiq"),
    "wells_data-wells_dist100_model": (wells, "wells_data"),
    "arK-arK": (ark, "arK"),
    "eight_schools-eight_schools_noncentered": (eight_schools, "eight_schools"),
    "diamonds-diamonds": (diamonds, "diamonds"),
    "radon_mn-radon_variable_intercept_noncentered": (radon_minnesota, "radon_mn"),
    "irt_2pl-irt_2pl": (item_response, "irt_2pl"),
    "radon_all-radon_hierarchical_intercept_noncentered": (radon_states, "radon_all"),
    "ovarian-logistic_regression_rhs": (horseshoe, "ovarian"),
}
"""Functions that build the models from data, and names of these, by names of posteriordb."""
