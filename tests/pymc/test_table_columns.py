"""Columns of a table in place of design matrices."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx.pymc.table_columns import told_columns, with_columns

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.normal(size=12).round(2), "place": list("abcacbbacbca")})
LEVELS = ["a", "b", "c"]


def design(age, place):
    """Return columns as a formula makes them, and the codes of the places."""
    codes = np.array([LEVELS.index(x) for x in place])
    dummies = (codes[:, None] == [1, 2]).astype(float)
    return np.column_stack([age, dummies, age[:, None] * dummies]), codes


def formula(columns, codes):
    with pm.Model(coords={"row": range(len(codes))}) as model:
        slopes, effects = pm.Normal("age", shape=columns.shape[1]), pm.Normal("effects", shape=3)
        mean = pt.dot(columns, slopes) + effects[codes] * np.ones(len(codes), "int64")
        pm.Deterministic("mean", mean, dims="row")
        pm.Normal("y", mean, 1.0, observed=RNG.normal(size=len(codes)), dims="row")
    return model


def mean_of(model, slopes, effects):
    with model:
        given = [model["age"], model["effects"]]
        return pytensor.function(given, model["mean"], mode="FAST_COMPILE")(slopes, effects)


@pytest.mark.parametrize("is_centred", [False, True])
def test_a_design_matrix_follows_the_columns_of_the_table(is_centred):
    columns, codes = design(TABLE.age.to_numpy(), TABLE.place)
    center = columns.mean(axis=0) * is_centred
    model = formula(columns - center, codes)
    changed, used, labels = with_columns(model, TABLE, "row")
    assert used == {"age_data": "age", "place_data": "place"}
    assert labels == {"place": LEVELS}
    point = model.initial_point()
    found, expected = (x.compile_logp(mode="FAST_COMPILE")(point) for x in (changed, model))
    np.testing.assert_allclose(found, expected)
    slopes, effects = RNG.normal(size=5), RNG.normal(size=3)
    np.testing.assert_allclose(mean_of(changed, slopes, effects), mean_of(model, slopes, effects))
    age, place = RNG.normal(size=4), list("cabb")
    others, new = design(age, place)
    with changed:
        pm.set_data({"age_data": age, "place_data": new}, coords={"row": range(4)})
    expected = (others - center) @ slopes + effects[new]
    np.testing.assert_allclose(mean_of(changed, slopes, effects), expected)


def test_other_functions_of_columns_stay():
    columns, codes = design(TABLE.age.to_numpy(), TABLE.place)
    assert with_columns(formula(np.exp(columns), codes), TABLE, "row") is None
    with pm.Model(coords={"row": range(12)}) as plain:
        pm.Normal("y", pm.Normal("mean"), observed=RNG.normal(size=12), dims="row")
    assert with_columns(plain, TABLE, "row") is None


def test_a_column_of_two_variables_is_none():
    columns, codes = design(TABLE.age.to_numpy(), TABLE.place)
    twice = TABLE.assign(years=TABLE.age)
    assert with_columns(formula(columns, codes), twice, "row") is None


def test_indicators_of_nested_groups_are_those_of_the_inner_one():
    outer = TABLE.assign(country=["x" if p == "a" else "y" for p in TABLE.place])
    columns, codes = design(TABLE.age.to_numpy(), TABLE.place)
    found = with_columns(formula(columns[:, :2], codes), outer, "row")
    assert found is not None
    assert "place_data" in found[1]


def test_facts_have_the_names_and_labels_of_columns():
    told = told_columns({"coords": {"row": [0]}}, {"place_data": "place"}, {"place": LEVELS})
    assert told["coords"] == {"row": [0], "place": LEVELS}
    assert told["indices"] == {"place_data": "place"}
