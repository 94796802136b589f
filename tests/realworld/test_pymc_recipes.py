"""Recipes of docs/how-to/pymc-recipes.md whose packages are not among the test requirements.

`uv pip install bambi pymc-extras` into the environment of the tests runs them.
"""

import numpy as np
import pandas as pd
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402

from pytensor_onnx.pymc import export_predictor, predict, sample  # noqa: E402

FEW = {"draws": 200, "tune": 200, "chains": 2, "random_seed": 1, "quiet": True}


def test_bambi_predicts_for_new_data_by_a_trace_of_sample():
    bambi = pytest.importorskip("bambi")
    rng = np.random.default_rng(1)
    people, days = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
    slopes = 10 + rng.normal(0, 3, 18)
    reaction = 250 + slopes[people] * days + rng.normal(0, 10, 180)
    names = [f"s{i}" for i in people]
    table = pd.DataFrame({"Subject": names, "Days": days, "Reaction": reaction})
    formula = "Reaction ~ Days + (Days|Subject)"
    model = bambi.Model(formula, table, center_predictors=False)
    model.build()
    inner = model.backend.model
    trace = sample(**FEW, model=inner)
    new = pd.DataFrame({"Subject": ["s0", "s1"], "Days": [9.0, 9.0]})
    found = model.predict(trace, data=new, inplace=False).posterior["mu"].mean(("chain", "draw"))
    np.testing.assert_allclose(found, 250 + slopes[:2] * 9, rtol=0.06)
    tree = predict(inner, trace, {}, outputs=["mu"])
    fitted = tree.predictions["mu"].mean(("chain", "draw")).to_numpy()
    program = export_predictor(inner, trace, outputs={"mu": "mean"}, verify=False)
    np.testing.assert_allclose(program()[0], fitted, rtol=1e-9)
    np.testing.assert_allclose(fitted[9], found[0], rtol=1e-6)


def test_a_state_space_model_is_sampled_and_forecasts():
    structural = pytest.importorskip("pymc_extras.statespace").structural
    rng = np.random.default_rng(1)
    level = np.cumsum(rng.normal(0, 0.3, 60)) + 5
    table = pd.DataFrame({"y": level + rng.normal(0, 0.2, 60)}, index=pd.RangeIndex(60))
    trend = structural.LevelTrend(order=1, innovations_order=[1])
    space = (trend + structural.MeasurementError(name="obs")).build(verbose=False)
    with pm.Model(coords=space.coords) as model:
        for name in space.param_names:
            dims = space.param_dims.get(name)
            if name == "P0":
                pm.Deterministic(name, pt.eye(space.k_states) * 5.0, dims=dims)
            elif name.startswith("sigma"):
                pm.HalfNormal(name, 1.0, dims=dims)
            else:
                pm.Normal(name, 0, 5.0, dims=dims)
        space.build_statespace_graph(table)
    trace = sample(**FEW, model=model)
    assert abs(float(trace.posterior["sigma_obs"].mean()) - 0.2) < 0.15
    forecast = space.forecast(trace, start=59, periods=3, random_seed=1)
    means = forecast["forecast_observed"].mean(("chain", "draw")).to_numpy().ravel()
    np.testing.assert_allclose(means, level[-1], atol=0.6)
