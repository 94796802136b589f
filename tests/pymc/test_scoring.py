"""Files of PyMC models score tables."""

import json

import numpy as np
import pymc as pm
import pytest

from pytensor_onnx.pymc import export_logp, export_predictor
from pytensor_onnx_scoring import Scorer

RNG = np.random.default_rng(1)


@pytest.fixture(scope="module")
def regression():
    coords = {"feature": ["age", "income"], "person": range(3)}
    with pm.Model(coords=coords) as model:
        x = pm.Data("x", np.ones((3, 2)), dims=("person", "feature"))
        slope = pm.Normal("slope", dims="feature")
        mu = pm.Deterministic("mu", x @ slope)
        pm.Normal("y", mu, 0.5, observed=np.zeros(3), shape=mu.shape)
    return model, {"slope": RNG.normal(size=(2, 50, 2))}


def test_columns_of_predictors_have_names(regression, tmp_path):
    wanted = {"mu": ["mean", "hdi", "quantiles"]}
    export_predictor(*regression, tmp_path / "mu.onnx", outputs=wanted, quantiles=[0.05, 0.975])
    scorer = Scorer(tmp_path / "mu.onnx")
    assert list(scorer.input_columns) == ["age", "income"]
    assert list(scorer.output_columns) == [
        *("mu_mean", "mu_hdi_low", "mu_hdi_high", "mu_quantiles_5", "mu_quantiles_97.5"),
    ]
    age, income = RNG.normal(size=(2, 5))
    draws = regression[1]["slope"].reshape(-1, 2) @ [age, income]
    result = scorer({"age": age, "income": income})
    np.testing.assert_allclose(result["mu_mean"], draws.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(result["mu_quantiles_5"], np.quantile(draws, 0.05, axis=0))
    np.testing.assert_array_less(result["mu_hdi_low"], result["mu_hdi_high"])


def test_the_metadata_have_the_axis_of_rows(regression):
    metadata = export_predictor(
        *regression, outputs={"mu": "hdi"}, verify=False
    ).model.metadata_props
    assert metadata["batch_axis"] == "person"
    assert json.loads(metadata["feature_names"]) == {
        "x": ["age", "income"],
        "mu_hdi": ["mu_hdi_low", "mu_hdi_high"],
    }


def test_pointwise_densities_are_columns_of_the_data(regression, tmp_path):
    with pm.Model(coords={"feature": ["age", "income"], "person": range(3)}) as model:
        x = pm.Data("x", np.ones((3, 2)), dims=("person", "feature"))
        seen = pm.Data("seen", np.zeros(3), dims="person")
        slope, sigma = pm.Normal("slope", dims="feature"), pm.HalfNormal("sigma")
        pm.Normal("y", x @ slope, sigma, observed=seen, dims="person")
    path = tmp_path / "pointwise.onnx"
    export_logp(model, path, outputs="pointwise", batch=True, space="constrained", inputs="named")
    draws = {"slope": RNG.normal(size=(7, 2)), "sigma": RNG.uniform(0.5, 2, 7)}
    table = dict(zip(("age", "income", "seen"), RNG.normal(size=(3, 5)), strict=True))
    found = Scorer(path, constants=draws)(table)["logp_y"]
    mean = draws["slope"] @ [table["age"], table["income"]]
    expected = pm.logp(pm.Normal.dist(mean, draws["sigma"][:, None]), table["seen"])
    np.testing.assert_allclose(found, expected.eval(mode="FAST_COMPILE").T, rtol=1e-13)
