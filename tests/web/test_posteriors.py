"""Samplers of public models as tapes, compared with reference draws of posteriordb.

`posteriordb.json` has data and reference posteriors of github.com/stan-dev/posteriordb
(BSD-3-Clause, commit 28f8d3d).
"""

import json
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from arviz_stats.base import array_stats

from pytensor_onnx.pymc import export_sampler
from tests.web.tapes import needs_tapes, run_in_node


def kidscore(data):
    with pm.Model() as model:
        b = pm.Flat("beta", shape=2)
        sigma = pm.HalfCauchy("sigma", 2.5)
        pm.Normal("score", b[0] + b[1] * data["mom_iq"], sigma, observed=data["kid_score"])
    return model


def ark(data):
    y, order = data["y"], data["K"]
    lagged = np.column_stack([y[order - k - 1 : -k - 1] for k in range(order)])
    with pm.Model() as model:
        mean = pm.Normal("alpha", 0, 10) + lagged @ pm.Normal("beta", 0, 10, shape=order)
        pm.Normal("y", mean, pm.HalfCauchy("sigma", 2.5), observed=y[order:])
    return model


def eight_schools(data):
    with pm.Model() as model:
        z, mu = pm.Normal("theta_trans", shape=data["J"]), pm.Normal("mu", 0, 5)
        effects = mu + pm.HalfCauchy("tau", 5) * z
        pm.Normal("y", effects, data["sigma"], observed=data["y"])
    return model


MODELS = {
    "kidiq-kidscore_momiq": kidscore,
    "arK-arK": ark,
    "eight_schools-eight_schools_noncentered": eight_schools,
}
KNOWN = json.loads(Path(__file__).with_name("posteriordb.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_the_draws_in_node_have_the_moments_of_the_reference(tmp_path, name):
    needs_tapes()
    given = KNOWN[name]["data"].items()
    model = MODELS[name]({k: np.array(v) if type(v) is list else v for k, v in given})
    path = tmp_path / "model.onnx"
    export_sampler(model, path, verify=False)
    feeds = {"seed": np.arange(4), "warmup": np.array(500), "draws": np.array(1000)}
    [found] = run_in_node(path, tmp_path, feeds)
    assert found["finite_start"].all()
    for variable, reference in KNOWN[name]["reference"].items():
        mean, sd, mcse = (np.array(reference[k]) for k in ("mean", "sd", "mcse"))
        draws = found[variable].reshape(4, 1000, -1)
        effective = np.array([array_stats.ess(draws[:, :, i]) for i in range(draws.shape[2])])
        assert (effective > 400).all()
        error = np.hypot(sd / np.sqrt(effective), mcse)
        assert (abs(draws.mean(axis=(0, 1)) - mean) < 4 * error).all()
        np.testing.assert_allclose(draws.std(axis=(0, 1)), sd, rtol=0.15)
