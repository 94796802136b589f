"""Names of the elements of a model's variables, in the order of the point."""

import json

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_logp, parameter_names  # noqa: E402


@pytest.fixture(scope="module")
def model() -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(2))
        weights = pm.Dirichlet("weights", np.ones(3), shape=(2, 3))
        pm.Poisson("count", 2.0)
        latent = pm.Normal("latent", shape=x.shape[0])
        fitted = pm.Deterministic("fitted", latent + weights[:, 0])
        pm.HalfNormal("none", shape=(0, 2))
        pm.Normal("y", fitted, pm.HalfNormal("scale"), observed=x)
    return model


@pytest.mark.slow
def test_names_are_in_the_order_of_the_point(model: pm.Model) -> None:
    names = parameter_names(model)
    assert names == [
        *("weights_simplex__.1.1", "weights_simplex__.1.2"),
        *("weights_simplex__.2.1", "weights_simplex__.2.2"),
        *("latent.1", "latent.2", "scale_log__"),
    ]
    values = {value.name: value.start for value in ModelGraph(model).continuous}
    values["weights_simplex__"] = np.array([[11.0, 12.0], [21.0, 22.0]])
    point = dict(zip(names, ModelGraph(model).raveled(values), strict=True))
    assert point["weights_simplex__.2.1"] == 21.0


def test_names_of_constrained_values_deterministics_and_observed_variables(model: pm.Model) -> None:
    names = parameter_names(model, space="constrained", deterministics=True, generated=True)
    weights = [f"weights.{i}.{j}" for i in (1, 2) for j in (1, 2, 3)]
    rest = ["latent.1", "latent.2", "scale", "fitted.1", "fitted.2", "y.1", "y.2"]
    assert names == weights + rest
    assert parameter_names(model, space="constrained") == names[:9]


@pytest.mark.slow
def test_names_are_in_the_metadata(model: pm.Model) -> None:
    program = export_logp(model, outputs=["logp"], verify=False)
    told = json.loads(program.model.metadata_props["pymc"])
    assert told["names"] == {
        space: parameter_names(model, space=space) for space in ("unconstrained", "constrained")
    }


def test_sizes_are_those_of_the_present_data() -> None:
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(2))
        pm.Normal("latent", shape=x.shape[0])
        pm.set_data({"x": np.zeros(3)})
    assert parameter_names(model) == ["latent.1", "latent.2", "latent.3"]


def test_other_arguments_are_refused(model: pm.Model) -> None:
    with pytest.raises(ArgumentError, match="space='natural': give one of"):
        parameter_names(model, space="natural")
    with pytest.raises(ArgumentError, match="model is of type"):
        parameter_names(model.logp())
