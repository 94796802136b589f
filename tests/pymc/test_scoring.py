"""Files of PyMC models score tables."""

import json

import arviz
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pytensor_onnx.errors import ArgumentError
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
    with model:
        x = np.stack([table["age"], table["income"]], axis=1)
        pm.set_data({"x": x, "seen": table["seen"]}, coords={"person": range(5)})
        idata = arviz.from_dict({"posterior": {k: v[None] for k, v in draws.items()}})
        pm.compute_log_likelihood(idata, progressbar=False)
    of_pymc = idata.log_likelihood["y"].values.reshape(7, 5)
    np.testing.assert_allclose(found.T, of_pymc, rtol=1e-13)


@pytest.fixture(scope="module")
def drawn():
    """A model that draws for rows, for groups, and by rejection."""
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(3))
        slope, new = pm.Normal("slope"), pm.Normal("new")
        mu = slope * x + new
        pm.Normal("y", mu, 0.5, observed=np.zeros(3), shape=mu.shape)
        pm.Poisson("count", pm.math.exp(mu), observed=np.zeros(3), shape=mu.shape)
    return model, {"slope": RNG.normal(1, 0.1, (2, 100))}


def test_draws_depend_on_the_key_of_a_row_and_not_on_batches(drawn, tmp_path):
    export_predictor(
        *drawn,
        tmp_path / "y.onnx",
        outputs={"y": ["mean", "hdi"], "count": "quantiles"},
        sample_vars=["new"],
        row_id="key",
        seed=3,
    )
    table = {"x": RNG.normal(size=1000), "key": RNG.permutation(2**60 + np.arange(1000))}
    whole = Scorer(tmp_path / "y.onnx", batch_size=1000)(table)
    order = RNG.permutation(1000)
    permuted = {name: x[order] for name, x in table.items()}
    for batch_size, given, rows in ((500, table, slice(None)), (1000, permuted, order)):
        found = Scorer(tmp_path / "y.onnx", batch_size=batch_size)(given)
        for name, values in whole.items():
            np.testing.assert_array_equal(found[name], values[rows])
    assert len(set(whole["y_mean"])) == 1000


def test_draws_by_rows_have_their_distributions(tmp_path):
    with pm.Model() as model:
        x = pm.Data("x", np.ones(2))
        slope = pm.Normal("slope")
        given = {"shape": x.shape, "observed": np.ones(2)}
        pm.Normal("normal", slope * x, 2.0, **given)
        pm.Gamma("gamma", 0.7, slope * x, **given)
        pm.Categorical("category", [0.2, 0.5, 0.3], shape=x.shape, observed=[0, 1])
    names = ["normal", "gamma", "category"]
    path = tmp_path / "draws.onnx"
    export_predictor(model, {"slope": np.ones((1, 101))}, path, outputs=names, row_id="key")
    table = {"x": np.ones(400), "key": np.arange(400) - 200}
    draws = Scorer(path, constants={"seed": 5})(table)
    assert draws["normal"].shape == (400, 101)
    assert stats.kstest(draws["normal"].ravel(), stats.norm(1, 2).cdf).pvalue > 0.01
    assert stats.kstest(draws["gamma"].ravel(), stats.gamma(0.7).cdf).pvalue > 0.01
    counts = np.bincount(draws["category"].ravel())
    assert stats.chisquare(counts, np.array([0.2, 0.5, 0.3]) * draws["category"].size).pvalue > 0.01
    noise = np.corrcoef(draws["normal"])[np.triu_indices(400, 1)]
    assert abs(noise).max() < 6 / np.sqrt(101)
    assert abs(np.corrcoef(draws["normal"].ravel(), draws["gamma"].ravel())[0, 1]) < 0.03


@pytest.mark.slow
def test_zero_inflated_and_censored_variables_and_mixtures_draw_by_rows(tmp_path):
    with pm.Model() as model:
        x = pm.Data("x", np.ones(2))
        slope = pm.Normal("slope")
        given = {"shape": x.shape, "observed": np.ones(2)}
        pm.ZeroInflatedPoisson("inflated", 0.6, 3 * slope * x, **given)
        pm.Censored("censored", pm.Normal.dist(slope * x, 1.0), lower=1, upper=None, **given)
        parts = [pm.Normal.dist(-5 * slope * x, 1.0), pm.Normal.dist(5 * x, 1.0)]
        pm.Mixture("mixed", [0.3, 0.7], parts, **given)
    expected = {"inflated": 1.8, "censored": 1 + 1 / np.sqrt(2 * np.pi), "mixed": 2.0}
    path = tmp_path / "draws.onnx"
    fit = {"slope": np.ones((1, 100))}
    options = {"row_id": "key", "seed": 1, "verify": False}
    export_predictor(model, fit, path, outputs=list(expected), **options)
    table = {"x": np.ones(400), "key": RNG.permutation(400)}
    whole, cut = (Scorer(path, batch_size=n)(table) for n in (400, 150))
    for name, mean in expected.items():
        np.testing.assert_array_equal(whole[name], cut[name])
        values = whole[name]
        assert abs(values.mean() - mean) < 5 * values.std() / np.sqrt(values.size)


def test_what_is_not_drawn_by_rows_is_refused():
    with pm.Model(coords={"row": range(2), "group": range(3), "pair": range(2)}) as model:
        x = pm.Data("x", np.ones(2), dims="row")
        pm.Data("size", np.ones(3), dims="group")
        mu = pm.Normal("mu")
        pm.NormalMixture("mixed", [0.3, 0.7], pt.stack([mu * x, x], axis=-1), 1.0, dims="row")
        pm.AR("series", pt.stack([mu, 0.1]), 1.0, init_dist=pm.DiracDelta.dist(x), steps=3)
        pm.Multinomial("counts", 5, pt.stack([x, x], axis=-1) / 2, dims=("row", "pair"))
        pm.MvNormal("joint", mu * x, pt.eye(x.shape[0]), dims="row")
    fit = {"mu": np.zeros((1, 4))}
    options = {"row_id": "key", "verify": False}
    refused = {
        "counts": "a loop over one generator",
        "mixed": "two of its axes",
        "joint": "together",
        "series": "one draw after another",
    }
    for name, message in refused.items():
        chosen = {"outputs": {name: "mean"}, "sample_vars": [name], "data": ["x"]}
        with pytest.raises(ArgumentError, match=message):
            export_predictor(model, fit, **chosen, **options)
    with pytest.raises(ArgumentError, match=r"several first dimensions \(group, row\)"):
        export_predictor(model, fit, outputs={"joint": "mean"}, sample_vars=["joint"], **options)
    with pytest.raises(ArgumentError, match="seed=-1"):
        export_predictor(model, fit, outputs={"joint": "mean"}, sample_vars=["joint"], seed=-1)


def test_a_seed_is_stored_or_an_input(drawn):
    wanted = {"outputs": {"y": "mean"}, "sample_vars": ["new"], "verify": False}
    by_seed = export_predictor(*drawn, **wanted)
    assert [x.name for x in by_seed.inputs] == ["x", "seed"]
    stored = export_predictor(*drawn, **wanted, seed=np.int64(7))
    np.testing.assert_array_equal(stored([1.0, 2.0])[0], by_seed([1.0, 2.0], seed=7)[0])
    keyed = export_predictor(*drawn, **wanted, row_id="key")
    assert [list(x.shape)[-1:] for x in keyed.inputs][-1] == [1]


def test_keys_have_a_column_of_their_own():
    with pm.Model(coords={"feature": ["age", "id"]}) as model:
        x = pm.Data("x", np.ones((2, 2)), dims=("row", "feature"))
        pm.Normal("y", x @ pm.Normal("slopes", dims="feature"), 1, observed=[1.0, 2.0], dims="row")
    draws = {"slopes": np.ones((1, 50, 2))}
    with pytest.raises(
        ArgumentError, match="row_id='id' is a column of x: name the keys otherwise"
    ):
        export_predictor(model, draws, row_id="id", verify=False)
