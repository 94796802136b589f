"""`predict` returns what `pymc.sample_posterior_predictive` returns, and never of an old model."""

import gc
import logging
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")
pd = pytest.importorskip("pandas")

import pymc.dims as pmd  # noqa: E402
import xarray as xr  # noqa: E402
from pymc.model.transform.optimization import freeze_dims_and_data  # noqa: E402
from xarray import DataArray, Dataset, DataTree  # noqa: E402

from pytensor_onnx import ArgumentError, PyTensorONNXError  # noqa: E402
from pytensor_onnx.pymc import predict, predictions  # noqa: E402
from pytensor_onnx.pymc.kept_programs import MOST_PROGRAMS, _kept  # noqa: E402

CHAINS, DRAWS = 2, 400
QUIET = {"progressbar": False, "random_seed": 1}
CHANNELS = ["tv", "radio", "web"]


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


def media_mix() -> pm.Model:
    """Return a media-mix model: spending that acts for weeks and saturates."""
    rng, weeks, lags = np.random.default_rng(5), 20, 4
    spend = rng.gamma(2, 0.5, (weeks, len(CHANNELS)))
    with pm.Model(coords={"week": np.arange(weeks), "channel": CHANNELS}) as model:
        x = pm.Data("spend", spend, dims=("week", "channel"))
        trend = pm.Data("trend", np.arange(weeks) / 52, dims="week")
        level = pm.Data("level", 1.0)
        sales = pm.Data("sales", rng.normal(2, 0.3, weeks), dims="week")
        retention = pm.Beta("retention", 2, 2, dims="channel")
        rate = pm.Gamma("rate", 3, 1, dims="channel")
        effect = pm.HalfNormal("effect", dims="channel")
        padded = pt.concatenate([pt.zeros((lags - 1, len(CHANNELS))), x])
        shifted = [padded[lags - 1 - lag : padded.shape[0] - lag] for lag in range(lags)]
        stock = sum(retention**lag * part for lag, part in enumerate(shifted))
        saturated = effect * pt.tanh(rate * stock)
        contribution = pm.Deterministic("contribution", saturated, dims=("week", "channel"))
        base = level + pm.Normal("intercept") + pm.Normal("slope") * trend
        mu = pm.Deterministic("mu", base + contribution.sum(axis=1), dims="week")
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=sales, dims="week")
    return model


def trace_of(model: pm.Model, seed: int = 0, names: list[str] | None = None) -> DataTree:
    """Return draws of the prior in the place of those of a posterior."""
    draws = pm.draw(model.free_RVs, CHAINS * DRAWS, random_seed=seed)
    coords, dims = pm.backends.arviz.coords_and_dims_for_inferencedata(model)
    arrays = {
        str(v.name): (
            ["chain", "draw", *dims.get(v.name, [f"{v.name}_{i}" for i in range(v.ndim)])],
            np.reshape(values, (CHAINS, DRAWS, *np.shape(values)[1:])),
        )
        for v, values in zip(model.free_RVs, draws, strict=True)
        if names is None or v.name in names
    }
    used = {dim for found, _ in arrays.values() for dim in found}
    labels = {"chain": [3, 7], "draw": np.arange(DRAWS) + 10}
    labels |= {dim: x for dim, x in coords.items() if dim in used}
    return DataTree.from_dict({"/posterior": Dataset(arrays, coords=labels)})


def new_weeks(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(count)
    return {"spend": rng.gamma(2, 0.5, (count, len(CHANNELS))), "trend": np.arange(count) / 52 + 1}


def of_pymc(
    model: pm.Model,
    trace: Any,
    data: dict[str, Any] | None = None,
    coords: dict[str, Any] | None = None,
    **options: Any,
) -> DataTree:
    """Return PyMC's predictions by a model that it may change."""
    with model:
        if data or coords:
            pm.set_data(data or {}, coords=coords)
        return pm.sample_posterior_predictive(trace, predictions=True, **QUIET, **options)


def described(group: Any) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    variables = {k: (str(v.dtype), v.dims, v.shape) for k, v in group.data_vars.items()}
    return variables, {k: v.values.tolist() for k, v in group.coords.items()}


def assert_same_moments(found: Any, expected: Any) -> None:
    """Compare means and variances of draws within bounds of Monte Carlo errors."""
    shape = (CHAINS * DRAWS, -1)
    found, expected = (np.asarray(x, float).reshape(shape) for x in (found, expected))
    bound = stats.norm.isf(1e-4 / found.shape[1])
    for power in (1, 2):
        # The scale of both keeps heavy tails from deciding.
        scale = expected.std(axis=0)
        a, b = ((x - expected.mean(axis=0)) ** power / scale**power for x in (found, expected))
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / len(a))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < bound * error).all()


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows by each export."""
    made: list[Any] = []
    export = predictions.predictor_of

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return export(*arguments)

    monkeypatch.setattr(predictions, "predictor_of", counted)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 7, 52])
def test_the_tree_is_that_of_pymc(count: int) -> None:
    model, changed = media_mix(), media_mix()
    trace, names = trace_of(model), ["mu", "contribution", "y", "effect"]
    data, coords = new_weeks(count), {"week": np.arange(count) + 100}
    found = predict(model, trace, data, outputs=names, coords=coords, random_seed=1)
    # PyMC's group of constant data needs sales of the new length only where these count.
    expected = of_pymc(changed, trace, data, coords, var_names=names)
    assert set(found.children) == set(expected.children)
    for group in ("predictions", "predictions_constant_data"):
        assert described(found[group]) == described(expected[group])
    for name in ("mu", "contribution", "effect"):
        np.testing.assert_allclose(
            found.predictions[name], expected.predictions[name], rtol=1e-10, atol=1e-12
        )
    for name in ("spend", "trend", "level"):
        np.testing.assert_array_equal(
            found["predictions_constant_data"][name], changed[name].eval()
        )
    residuals = [tree.predictions["y"] - tree.predictions["mu"] for tree in (found, expected)]
    assert_same_moments(*residuals)


@pytest.mark.slow
def test_the_model_keeps_its_data_and_labels() -> None:
    model = media_mix()
    before = {v.name: v.get_value() for v in model.data_vars}
    coords = {"week": np.arange(3)}
    predict(model, trace_of(model), new_weeks(3), coords=coords)
    for name, value in before.items():
        np.testing.assert_array_equal(model[name].get_value(), value)
    assert len(model.coords["week"]) == 20 == model.dim_lengths["week"].eval()


@pytest.mark.slow
def test_default_outputs_are_those_of_pymc() -> None:
    def of() -> pm.Model:
        with pm.Model() as model:
            a = pm.Normal("a")
            y = pm.Normal("y", a, observed=[1.0, 2.0])
            pm.Deterministic("total", y.sum())
            pm.Deterministic("double", 2 * a)
            pm.Normal("partly", a, observed=np.ma.masked_invalid([1.0, np.nan, 2.0]))
        return model

    with pytest.warns(UserWarning, match="partly contains missing values"):
        model = of()
    trace = trace_of(model)
    expected = of_pymc(model, trace)
    found = predict(model, trace, random_seed=1)
    assert described(found.predictions) == described(expected.predictions)
    np.testing.assert_allclose(found.predictions["total"], found.predictions["y"].sum("y_dim_0"))
    unobserved = trace.posterior["partly_unobserved"].values[..., 0]
    np.testing.assert_array_equal(found.predictions["partly"][..., 1], unobserved)


@pytest.mark.slow
def test_a_seed_gives_the_same_draws_and_none_others() -> None:
    model = media_mix()
    trace = trace_of(model)

    def draws(seed: Any) -> np.ndarray:
        return predict(model, trace, random_seed=seed).predictions["y"].values

    np.testing.assert_array_equal(draws(4), draws(4))
    assert (draws(4) != draws(5)).all()
    assert (draws(None) != draws(None)).all()
    generator = np.random.default_rng(4)
    assert (draws(generator) != draws(generator)).all()


def test_later_calls_export_nothing(exports: list[Any]) -> None:
    model = media_mix()
    trace = trace_of(model)
    for count in (20, 20, 5, 60):
        data, coords = new_weeks(count), {"week": range(count)}
        tree = predict(model, trace, data, coords=coords)
        assert tree.predictions["y"].shape == (CHAINS, DRAWS, count)
    with model:
        predict(None, trace.posterior)
        predict(None, trace.posterior.dataset)
    assert len(exports) == 1
    predict(model, trace, outputs=["mu"])
    assert len(exports) == 2
    predict(model, trace)
    predict(model, trace, outputs="mu")
    assert len(exports) == 2
    predict(model, trace, outputs="mu", verify=True)
    predict(model, trace, outputs="mu", verify=True)
    predict(model, trace, outputs="mu")
    assert len(exports) == 3


def in_place_change_of_trace(model: pm.Model, trace: DataTree) -> DataTree:
    trace.posterior["a"].values[...] += 1
    return trace


def other_trace(model: pm.Model, trace: DataTree) -> DataTree:
    return trace_of(model, seed=9)


def data_set(model: pm.Model, trace: DataTree) -> DataTree:
    with model:
        pm.set_data({"x": [5.0, 6.0]})
    return trace


def shared_set(model: pm.Model, trace: DataTree) -> DataTree:
    model.offset.set_value(np.array(7.0))
    return trace


def shared_changed_in_place(model: pm.Model, trace: DataTree) -> DataTree:
    model.offset.get_value(borrow=True)[...] = 3.0
    return trace


def replaced_graph(model: pm.Model, trace: DataTree) -> DataTree:
    node = model["mu"].owner.inputs[0].owner
    node.inputs[0] = pt.exp(node.inputs[0])
    return trace


@pytest.mark.parametrize(
    "change",
    [
        *(in_place_change_of_trace, other_trace, data_set, shared_set, shared_changed_in_place),
        replaced_graph,
    ],
)
def test_changes_are_seen(change: Callable[[pm.Model, DataTree], DataTree]) -> None:
    with pm.Model() as model:
        model.offset = pytensor.shared(np.array(1.0))
        a, x = pm.Normal("a"), pm.Data("x", [1.0, 2.0])
        mu = pm.Deterministic("mu", a * x + model.offset)
        pm.Normal("y", mu, observed=[0.0, 1.0])
    trace = trace_of(model)
    before = predict(model, trace, outputs="mu").predictions["mu"].values
    trace = change(model, trace)
    expected = of_pymc(model, trace, var_names=["mu"]).predictions["mu"].values
    assert np.abs(before - expected).max() > 0.1
    found = predict(model, trace, outputs="mu").predictions["mu"].values
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.slow
def test_variables_that_are_added_are_outputs(exports: list[Any]) -> None:
    model = media_mix()
    trace = trace_of(model)
    assert list(predict(model, trace).predictions.data_vars) == ["y"]
    with model:
        pm.Deterministic("largest", model["mu"].max())
        pm.Normal("z", model["intercept"], 1e-9, observed=0.0)
    found = predict(model, trace).predictions
    assert list(found.data_vars) == ["y", "z"]
    np.testing.assert_allclose(found["z"], trace.posterior["intercept"], atol=1e-7)
    found = predict(model, trace, outputs=["largest", "mu"]).predictions
    np.testing.assert_allclose(found["largest"], found["mu"].max("week"))
    assert len(exports) == 3


def test_programs_end_with_their_model_and_few_are_kept(exports: list[Any]) -> None:
    with pm.Model() as model:
        x = pm.Data("x", [1.0, 2.0])
        pm.Normal("y", pm.Normal("a") * x, observed=x)
    number, alive = id(model), weakref.ref(model)
    for seed in range(MOST_PROGRAMS + 1):
        predict(model, trace_of(model, seed))
    predict(model, trace_of(model, seed))
    assert len(exports) == MOST_PROGRAMS + 1
    predict(model, trace_of(model, 0))
    assert len(exports) == MOST_PROGRAMS + 2
    assert len(_kept[number][1].programs) == MOST_PROGRAMS
    exports.clear()
    del model, x
    gc.collect()
    assert alive() is None
    assert number not in _kept


def groups() -> pm.Model:
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        index = pm.Data("index", [0, 1, 2, 1])
        effect = pm.Normal("effect", pm.Normal("mean", 3, 0.1), 0.5, dims="group")
        pm.Deterministic("doubled", 2 * effect, dims="group")
        pm.Normal("y", effect[index], 0.1, shape=index.shape, observed=np.zeros(4))
    return model


def test_new_groups_are_drawn_from_their_distribution(exports: list[Any]) -> None:
    model, changed = groups(), groups()
    trace = trace_of(model)
    data, coords = {"index": [0, 4]}, {"group": list("abcde")}
    names = ["effect", "doubled", "y"]
    for _ in range(2):
        found = predict(
            *(model, trace, data),
            coords=coords,
            outputs=names,
            sample_vars=["effect", "y"],
            random_seed=1,
        ).predictions
    assert len(exports) == 1
    with changed:
        changed.set_dim("group", 5, coord_values=coords["group"])
    expected = of_pymc(changed, trace, data, var_names=names, sample_vars=["effect"]).predictions
    assert described(found) == described(expected)
    np.testing.assert_allclose(found["doubled"], 2 * found["effect"])
    for name in names:
        assert_same_moments(found[name], expected[name])
    assert model.coords["group"] == ("a", "b", "c")
    assert predict(model, trace, outputs="doubled").predictions.sizes["group"] == 3


def test_new_groups_without_a_distribution_are_refused() -> None:
    model = groups()
    trace = trace_of(model)
    with pytest.raises(ArgumentError, match=r"draws of effect, .* sample_vars=\['effect'\]"):
        predict(model, trace, {"index": [0, 4]}, coords={"group": list("abcde")})
    with pytest.raises(PyTensorONNXError, match=r"index 4 .* out of range"):
        predict(model, trace, {"index": [0, 4]})
    with pm.Model(coords={"group": ["a", "b", "c", "d"]}) as other:
        effect = pm.Normal("effect", pm.Normal("mean"), 0.5, dims="group")
        pm.Normal("y", effect, 0.1, observed=np.zeros(4), dims="group")
    with pytest.raises(ArgumentError, match=r"model has 4, .* sample_vars=\['effect'\]"):
        predict(other, trace)


@pytest.mark.slow
def test_variables_without_draws_are_drawn(caplog: pytest.LogCaptureFixture) -> None:
    with pm.Model() as model:
        a = pm.Normal("a", 5, 1)
        b = pm.Normal("b", a, 0.5)
        pm.Normal("y", b, 0.1, observed=[0.0, 0.0])
    trace = trace_of(model, names=["a"])
    with caplog.at_level(logging.INFO, "pymc"):
        found = predict(model, trace, outputs=["b", "y"], random_seed=1).predictions
    assert "Sampling: [b, y]" in caplog.text
    expected = of_pymc(model, trace, var_names=["b", "y"]).predictions
    for name in ("b", "y"):
        assert_same_moments(found[name], expected[name])


def test_deterministics_stand_in_for_variables_that_the_trace_lacks() -> None:
    with pm.Model(coords={"group": [0, 1]}) as model:
        offset = pm.Normal("1|group_offset", dims="group")
        effect = pm.Deterministic("1|group", 3 * offset, dims="group")
        pm.Normal("y", effect, 1e-9, observed=[0.0, 0.0], dims="group")
    values = np.random.default_rng(2).normal(size=(CHAINS, DRAWS, 2))
    found = predict(model, {"1|group": values}, outputs=["1|group", "y"]).predictions
    np.testing.assert_array_equal(found["1|group"], values)
    np.testing.assert_allclose(found["y"], values, atol=1e-7)


def test_tables_fill_containers() -> None:
    with pm.Model(coords={"row": list("abc"), "feature": ["age", "income"]}) as model:
        x = pm.Data("x", np.zeros((3, 2)), dims=("row", "feature"))
        dose = pm.Data("dose", np.zeros(3), dims="row")
        pm.Deterministic("mu", x @ pm.Normal("w", dims="feature") + dose, dims="row")
    trace = trace_of(model)
    columns = {"dose": [1.0, 2.0], "income": [3.0, 4.0], "unused": ["?", "!"], "age": [5.0, 6.0]}
    table = pd.DataFrame(columns, index=["d", "e"])
    found = predict(model, trace, table, outputs="mu").predictions["mu"]
    expected = (
        trace.posterior["w"].values @ table[["age", "income"]].values.T + table["dose"].values
    )
    np.testing.assert_allclose(found, expected)
    assert found["row"].values.tolist() == ["d", "e"]
    coords = {"row": ["f", "g"]}
    found = predict(model, trace, table, outputs="mu", coords=coords).predictions
    assert found["row"].values.tolist() == ["f", "g"]
    with pytest.raises(ArgumentError, match=r"no column .* unused, .* the model has x, dose"):
        predict(model, trace, table[["unused"]], outputs="mu")
    with pytest.raises(ArgumentError, match=r"data container x has it: give new_data\['x'\]"):
        predict(model, trace, table[["dose"]], outputs="mu")


def test_arrays_get_the_dtype_and_the_order_of_the_container() -> None:
    with pm.Model(coords={"row": [0, 1], "column": [0, 1]}) as model:
        x = pm.Data("x", np.zeros((2, 2)), dims=("row", "column"))
        pm.Deterministic("mu", pm.Normal("a") * x, dims=("row", "column"))
    trace = trace_of(model)
    values = np.array([[1, 2], [3, 4]])
    transposed = DataArray(values.T, dims=["column", "row"])
    expected = predict(model, trace, {"x": values.astype(float)}, outputs="mu")
    for given in (values, values.tolist(), transposed):
        found = predict(model, trace, {"x": given}, outputs="mu")
        xr.testing.assert_equal(found, expected)
        assert described(found["predictions_constant_data"]) == described(
            expected["predictions_constant_data"]
        )


def test_lengths_that_the_model_fixes_are_refused() -> None:
    model = freeze_dims_and_data(groups())
    with pytest.raises(ArgumentError, match="fixes the length of group, 3, not 2"):
        predict(model, trace_of(model), coords={"group": ["a", "b"]}, sample_vars=["effect"])


def test_dimensions_in_a_list_as_bambi_gives_them() -> None:
    with pm.Model(coords={"row": [0, 1, 2]}) as model:
        mu = pm.Normal("mu", dims=["row"])
        model.named_vars_to_dims["mu"] = ["row"]
        pm.Deterministic("twice", 2 * mu, dims="row")
    tree = predict(model, {"mu": np.arange(6.0).reshape(1, 2, 3)}, outputs=["twice"])
    np.testing.assert_array_equal(tree.predictions["twice"], [[[0, 2, 4], [6, 8, 10]]])


def test_named_dimensions() -> None:
    with pm.Model(coords={"row": [0, 1, 2]}) as model:
        x = pmd.Data("x", [1.0, 2.0, 3.0], dims="row")
        mu = pmd.Deterministic("mu", pmd.Normal("a") * x)
        pmd.Normal("y", mu, 1e-9, observed=pmd.as_xtensor(np.zeros(3), dims="row"))
    trace = trace_of(model)
    found = predict(model, trace, {"x": [4.0, 5.0]}, outputs=["mu", "y"], coords={"row": [7, 8]})
    expected = trace.posterior["a"].values[..., None] * [4.0, 5.0]
    np.testing.assert_allclose(found.predictions["mu"], expected)
    np.testing.assert_allclose(found.predictions["y"], expected, atol=1e-7)
    assert found.predictions["y"].dims == ("chain", "draw", "row")
    assert found.predictions["row"].values.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": ["nu"]}, "no variable 'nu': it has .*contribution, mu"),
        ({"outputs": []}, "no outputs"),
        ({"sample_vars": ["efect"]}, "no free variable 'efect': did you mean effect"),
        ({"new_data": {"spent": 1}}, "no data container 'spent': did you mean spend"),
        ({"new_data": {"mu": 1}}, "no data container 'mu': .*pymc.Data"),
        ({"new_data": [1.0]}, "new_data is of type list"),
        ({"new_data": {"trend": 1.0}}, "0 dimensions: the data container has 1"),
        ({"new_data": new_weeks(3)}, r"week has 20 labels and gets 3 values: .*coords"),
        ({"new_data": new_weeks(3), "coords": {"week": [1, 2]}}, "2 labels of week, .* 3 values"),
        ({"coords": {"weak": [1, 2]}}, "no dimension 'weak': did you mean week"),
        (
            {"new_data": {"trend": [1.0, 2.0]}, "coords": {"week": [1, 2]}},
            r"container spend has it: give new_data\['spend'\]",
        ),
        (
            {"new_data": {**new_weeks(3), "trend": [1.0, 2.0]}, "coords": {"week": [1, 2]}},
            "3 values along week in spend and 2 in trend",
        ),
        ({"new_data": {"trend": ["a"] * 20}}, "trend"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    model = media_mix()
    with pytest.raises(PyTensorONNXError, match=message):
        predict(model, trace_of(model), **arguments)


def test_what_the_model_and_the_trace_lack_is_named() -> None:
    with pm.Model() as model:
        pm.Normal("a")
    with pytest.raises(ArgumentError, match="no observed variables: name the outputs"):
        predict(model, trace_of(model))
    with pytest.raises(ArgumentError, match="no variable of the model takes draws"):
        predict(model, {"b": np.zeros((1, 5))}, outputs="a")
    with pytest.raises(ArgumentError, match="no variable of the model takes draws"):
        predict(model, trace_of(model), outputs="a", sample_vars="a")
    with pytest.raises(ArgumentError, match="idata has no group posterior"):
        predict(model, DataTree(), outputs="a")
    with pytest.raises(TypeError, match="context"):
        predict(None, {"a": np.zeros((1, 5))})


@pytest.mark.slow
def test_transposed_draws_are_those_of_their_chains() -> None:
    model = media_mix()
    trace = trace_of(model)
    transposed = trace.posterior.dataset.transpose("draw", ..., "chain")
    found = predict(model, transposed, outputs="mu").predictions
    expected = predict(model, trace, outputs="mu").predictions
    assert described(found) == described(expected)
    np.testing.assert_array_equal(found["mu"], expected["mu"])
