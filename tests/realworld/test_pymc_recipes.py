"""Recipes of docs/how-to/pymc-recipes.md whose packages are not among the test requirements.

`uv pip install bambi pymc-extras` into the environment of the tests runs the first two. The others
need an environment of their own: one with pymc-marketing and one with hssm, beside this package.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402

from pytensor_onnx import export_onnx  # noqa: E402
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


def test_customer_lifetimes_have_the_density_of_the_paper_and_predict_by_a_trace_of_sample():
    clv = pytest.importorskip("pymc_marketing.clv")
    rng = np.random.default_rng(1)
    count = rng.poisson(2, 40).astype(float)
    weeks = rng.uniform(20, 40, 40)
    last = np.where(count > 0, weeks * rng.uniform(0.1, 0.9, 40), 0.0)
    ids = np.arange(40)
    table = pd.DataFrame({"customer_id": ids, "frequency": count, "recency": last, "T": weeks})
    model = clv.BetaGeoModel()
    model.build_model(table)
    inner = model.model
    point = inner.initial_point()
    variables = [inner[name] for name in ("r", "alpha", "a", "b")]
    values = inner.replace_rvs_by_values(variables)
    given = {"inputs": inner.value_vars, "point_fn": True, "on_unused_input": "ignore"}
    r, alpha, a, b = inner.compile_fn(values, **given)(point)
    # Fader, Hardie and Lee (2005), equation 6.
    bought = gammaln(r + count) - gammaln(r) + r * np.log(alpha)
    kept = gammaln(a + b) + gammaln(b + count) - gammaln(b) - gammaln(a + b + count)
    stays = -(r + count) * np.log(alpha + weeks)
    left = np.log(a / (b + np.maximum(count, 1) - 1)) - (r + count) * np.log(alpha + last)
    expected = bought + kept + np.logaddexp(stays, np.where(count > 0, left, -np.inf))
    logp = inner.compile_logp(inner.observed_RVs, sum=False, mode="ONNX")
    np.testing.assert_allclose(logp(point)[0], expected, rtol=1e-10)
    model.idata, model.data = sample(**FEW, model=inner), table
    alive = model.expected_probability_alive(table).mean(("chain", "draw")).to_numpy()
    assert ((alive > 0) & (alive <= 1)).all()
    np.testing.assert_allclose(alive[count == 0], 1.0)


def test_a_budget_of_a_media_mix_is_that_of_pytensors_own_operations():
    mmm = pytest.importorskip("pymc_marketing.mmm")
    rng = np.random.default_rng(1)
    dates = pd.date_range("2024-01-01", periods=52, freq="W-MON")
    spent = {name: rng.uniform(0, 1, 52) for name in ("tv", "web")}
    table = pd.DataFrame({"date": dates, **spent})
    response = spent["tv"] / (0.5 + spent["tv"]) + 2 * spent["web"] / (0.5 + spent["web"])
    sales = pd.Series(1 + response + rng.normal(0, 0.05, 52), name="sales")
    mix = mmm.MMM(
        date_column="date",
        channel_columns=list(spent),
        target_column="sales",
        adstock=mmm.GeometricAdstock(l_max=2),
        saturation=mmm.MichaelisMentenSaturation(),
    )
    mix.build_model(table, sales)
    mix.idata = sample(**FEW, model=mix.model)
    weeks = {"start_date": "2025-01-06", "end_date": "2025-02-24"}
    found = {}
    for mode in ("ONNX", "FAST_COMPILE"):
        plan = mix.budget_optimizer(**weeks, compile_kwargs={"mode": mode})
        found[mode] = plan.allocate_budget(total_budget=1.0)
    ours, expected = found["ONNX"], found["FAST_COMPILE"]
    np.testing.assert_allclose(ours.budgets, expected.budgets, atol=1e-5)
    np.testing.assert_allclose(ours.scipy_result.fun, expected.scipy_result.fun, rtol=1e-9)
    assert float(ours.budgets.sel(channel="web")) > 0.5


def test_hssm_samples_with_a_network_of_a_file(tmp_path):
    hssm = pytest.importorskip("hssm")
    rng = np.random.default_rng(1)
    x = pt.matrix("x", shape=(1, 6), dtype="float32")
    first = rng.normal(0, 0.3, (6, 20)).astype("float32")
    second = rng.normal(0, 0.3, (20, 1)).astype("float32")
    file = tmp_path / "lan.onnx"
    export_onnx([x], pt.tanh(x @ first) @ second - 3, file)
    # HSSM replaces the network where a time is below that of no decision, 2 at the initial point.
    times, choices = rng.uniform(2.5, 4, 100), rng.choice([-1.0, 1.0], 100)
    model = hssm.HSSM(
        data=pd.DataFrame({"rt": times, "response": choices}),
        model="ddm",
        loglik_kind="approx_differentiable",
        loglik=str(file),
        model_config={"backend": "pytensor"},
        p_outlier=0,
    )
    inner = model.pymc_model
    point = {**inner.initial_point()}
    value = inner.compile_logp(inner.observed_RVs, mode="ONNX", jacobian=False)(point)
    names = ("v", "a", "z", "t")
    values = inner.replace_rvs_by_values([inner[name] for name in names])
    given = {"inputs": inner.value_vars, "point_fn": True, "on_unused_input": "ignore"}
    settings = inner.compile_fn(values, **given)(point)
    rows = np.column_stack([*(np.full(100, x) for x in settings), times, choices])
    np.testing.assert_allclose(value, (np.tanh(rows @ first) @ second - 3).sum(), rtol=1e-6)
    trace = sample(**FEW, model=inner)
    assert set(names) <= set(trace.posterior.data_vars)
