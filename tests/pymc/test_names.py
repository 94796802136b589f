"""Names of variables that are no identifiers, in all files and samplers of a model."""

import json

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

from pytensor_onnx import ArgumentError, load  # noqa: E402
from pytensor_onnx.pymc import (  # noqa: E402
    export_logp,
    export_model,
    export_predictor,
    export_sampler,
    export_transforms,
)

SCALE, GROUP, SPLINE, SAME = "1|g_sigma", "w[T.b]", "scale(x)", "scale_x"
DATA, OBSERVED = "my x", "y (kg)"
RENAMED = {
    SCALE: "1_g_sigma",
    GROUP: "w_T.b",
    SPLINE: "scale_x_1",
    DATA: "my_x",
    OBSERVED: "y_kg",
}
X = np.array([1.0, 2.0, 4.0])


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"row": ["a", "b", "c"], "k l": [1, 2]}) as model:
        x = pm.Data(DATA, X, dims="row")
        scale = pm.HalfNormal(SCALE)
        weights = pm.Dirichlet(GROUP, np.ones(2), dims="k l")
        spline = pm.Deterministic(SPLINE, scale * x, dims="row")
        pm.Deterministic(SAME, weights[0] + x.sum())
        pm.Normal(OBSERVED, spline, 1.0, observed=np.ones(3), dims="row")
    return model


def renamed(program):
    return json.loads(program.model.metadata_props["pymc"])["renamed"]


@pytest.mark.slow
def test_densities_transforms_and_whole_models_have_the_names_of_the_file(model):
    point = np.zeros(2)
    density = export_logp(model, outputs=["logp", SCALE, SPLINE, f"logp_{OBSERVED}"])
    assert renamed(density) == {
        DATA: "my_x",
        SCALE: "1_g_sigma",
        SPLINE: "scale_x",
        f"logp_{OBSERVED}": "logp_y_kg",
    }
    expected = model.compile_logp()({f"{SCALE}_log__": 0.0, f"{GROUP}_simplex__": [0.0]})
    found = density(point, X)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    np.testing.assert_allclose(found[2], X)
    constrain = export_transforms(model, deterministics=True)
    assert renamed(constrain) == {k: v for k, v in RENAMED.items() if k != OBSERVED}
    assert [v.name for v in constrain.model.graph.outputs][2:] == ["scale_x_1", "scale_x"]
    np.testing.assert_allclose(constrain(point, X)[3], 7.5)
    inverse = export_transforms(model, to="unconstrained")
    np.testing.assert_allclose(inverse(1.0, [0.5, 0.5])[0], point, atol=1e-15)
    whole = export_model(model, inputs="named")
    assert RENAMED.items() <= renamed(whole).items()
    cut = whole.select("scale_x_1")
    assert json.loads(cut.model.metadata_props["pymc"])["data"][DATA]["input"]
    with pytest.raises(ArgumentError, match="would name two inputs or outputs"):
        export_transforms(_named("point"), deterministics=True)


def _named(name):
    with pm.Model() as model:
        pm.Deterministic(name, 2 * pm.Normal("x"))
    return model


def test_predictors_have_the_names_of_the_file(model, tmp_path):
    posterior = {SCALE: np.ones((1, 4)), GROUP: np.full((1, 4, 2), 0.5)}
    wanted = {SPLINE: ["mean", "hdi"], SAME: "mean", OBSERVED: "draws"}
    export_predictor(model, posterior, tmp_path / "p.onnx", outputs=wanted)
    program = load(tmp_path / "p.onnx")
    names = [value.name for value in program.model.graph.outputs]
    assert names == ["scale_x__mean", "scale_x__hdi", "scale_x_mean", "y_kg"]
    mean, _, same, draws = program(my_x=X, seed=1)
    np.testing.assert_allclose(mean, X)
    np.testing.assert_allclose(same, 7.5)
    assert draws.shape == (4, 3)
    told = json.loads(program.select("y_kg").model.metadata_props["pymc"])
    assert told["outputs"] == {OBSERVED: ["draws"]}
    assert told["data"][DATA]["input"]


@pytest.mark.slow
def test_samplers_have_the_names_of_the_file(model):
    program = export_sampler(model, verify=False)
    assert renamed(program) == {k: v for k, v in RENAMED.items() if k != OBSERVED}
    names = [value.name for value in program.model.graph.outputs][:4]
    draws = dict(zip(names, program(seed=[1], warmup=5, draws=3, my_x=X), strict=False))
    np.testing.assert_allclose(draws["scale_x_1"], draws["1_g_sigma"][..., None] * X)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["c", "python"])
def test_traces_of_nutpie_have_the_names_of_the_model(model, kind, monkeypatch):
    nutpie = pytest.importorskip("nutpie")
    from pytensor_onnx.pymc import nutpie_model

    if kind == "python":
        monkeypatch.setattr("pytensor_onnx.pymc.nutpie.takes_c_functions", lambda: False)
    compiled = nutpie_model(model).with_data(**{DATA: 2 * X})
    options = {"chains": 1, "cores": 1, "progress_bar": False, "seed": 1}
    trace = nutpie.sample(compiled, draws=5, tune=20, **options).posterior
    assert set(trace.data_vars) == {SCALE, GROUP, SPLINE, SAME}
    assert trace[SPLINE].dims == ("chain", "draw", "row")
    np.testing.assert_allclose(trace[SPLINE], trace[SCALE].values[..., None] * 2 * X)
    np.testing.assert_allclose(trace[SAME], trace[GROUP][..., 0] + 14)
