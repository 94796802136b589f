"""Models of `pymc.dims` export as the same models of tensors do."""

import json

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

pm = pytest.importorskip("pymc")
pmd = pytest.importorskip("pymc.dims")

from pytensor_onnx import ArgumentError, ONNXProgram  # noqa: E402
from pytensor_onnx.pymc import (  # noqa: E402
    export_logp,
    export_predictor,
    export_sampler,
    export_transforms,
)

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*experimental")

RNG = np.random.default_rng(5)
COORDS = {"group": ["A", "B", "C"], "row": range(5)}
X, Y = RNG.normal(size=5), RNG.normal(size=5)
ROWS = np.array([0, 2, 1, 2, 0], "int32")
POSTERIOR = {"effect": RNG.normal(size=(2, 7, 3)), "sigma": 0.5 + RNG.random(size=(2, 7))}


@pytest.fixture(scope="module")
def named() -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        x = pmd.Data("x", X, dims="row")
        group = pmd.Data("group_of", ROWS, dims="row")
        effect, sigma = pmd.Normal("effect", dims="group"), pmd.HalfNormal("sigma")
        mu = pmd.Deterministic("mu", effect.isel(group=group) + effect.mean() * x)
        pmd.Deterministic("scaled", pmd.math.exp(sigma) * effect)
        pmd.Normal("y", mu, sigma, observed=pmd.as_xtensor(Y, dims=("row",)))
    return model


@pytest.fixture(scope="module")
def plain() -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        x = pm.Data("x", X, dims="row")
        group = pm.Data("group_of", ROWS, dims="row")
        effect, sigma = pm.Normal("effect", dims="group"), pm.HalfNormal("sigma")
        mu = pm.Deterministic("mu", effect[group] + effect.mean() * x, dims="row")
        pm.Deterministic("scaled", pm.math.exp(sigma) * effect, dims="group")
        pm.Normal("y", mu, sigma, observed=Y, dims="row")
    return model


def described(program: ONNXProgram) -> dict:
    return json.loads(program.model.metadata_props["pymc"])


def sizes(program: ONNXProgram) -> list[tuple[str, list[object]]]:
    values = [*program.model.graph.inputs, *program.model.graph.outputs]
    return [(v.name, [d if isinstance(d, int) else d.value for d in v.shape]) for v in values]


@pytest.mark.slow
def test_a_sampler_draws_every_variable(named):
    sampler = export_sampler(named)
    values = sampler(seed=[1, 2], warmup=100, draws=30, x=X, group_of=ROWS)
    names = [value.name for value in sampler.model.graph.outputs]
    drawn = dict(zip(names, values, strict=True))
    assert drawn["effect"].shape == (2, 30, 3)
    assert drawn["sigma"].shape == (2, 30)
    assert drawn["mu"].shape == (2, 30, 5)
    effect = drawn["effect"]
    mu = effect[..., ROWS] + effect.mean(axis=-1, keepdims=True) * X
    np.testing.assert_allclose(drawn["mu"], mu, rtol=1e-13, atol=1e-14)
    scaled = np.exp(drawn["sigma"])[..., None] * effect
    np.testing.assert_allclose(drawn["scaled"], scaled, rtol=1e-13)
    assert np.unique(drawn["sigma"]).size > 30


@pytest.mark.slow
def test_a_sampler_of_stored_data_draws_as_that_of_the_model_of_tensors(named, plain):
    inputs = {"seed": [3], "warmup": 20, "draws": 5}
    of_named, of_plain = (
        export_sampler(m, data="stored", lockstep=False, verify=False)(**inputs)
        for m in (named, plain)
    )
    for found, expected in zip(of_named, of_plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.slow
def test_a_predictor_is_that_of_the_model_of_tensors(named, plain):
    outputs = {"mu": ["draws", "mean", "hdi"], "scaled": "draws", "y": "draws"}
    files = [export_predictor(m, POSTERIOR, outputs=outputs) for m in (named, plain)]
    assert sizes(files[0]) == sizes(files[1])
    inputs = {"x": np.array([1.0, -2.0]), "group_of": np.array([1, 1], "int32"), "seed": 4}
    of_named, of_plain = (file(**inputs) for file in files)
    for found, expected in zip(of_named, of_plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert of_named[-1].shape == (14, 2)


@pytest.mark.slow
def test_a_predictor_draws_variables_anew(named):
    program = export_predictor(
        named, POSTERIOR, outputs=["effect", "mu", "y"], sample_vars=["effect"]
    )
    effect, mu, y = program(x=X, group_of=ROWS, seed=4)
    assert effect.shape == (14, 3)
    assert np.unique(effect).size == effect.size
    expected = effect[:, ROWS] + effect.mean(axis=-1, keepdims=True) * X
    np.testing.assert_allclose(mu, expected, rtol=1e-13, atol=1e-14)
    assert np.unique(y).size == 14 * 5


def test_a_predictor_computes_one_draw_after_another_where_there_is_no_batch():
    with pm.Model(coords=COORDS) as model:
        x = pmd.Data("x", X, dims="row")
        effect = pmd.Normal("effect", dims="group")
        mu = pmd.Deterministic("mu", effect.mean() + effect.isel(group=0) * x)
        clipped = pmd.Censored("clipped", pmd.Normal.dist(mu, 1.0), lower=-1.0, upper=1.0)
        pmd.Bernoulli("y", p=pmd.math.sigmoid(mu), observed=pmd.as_xtensor(Y > 0, dims=("row",)))
    assert clipped.type.dims == ("row",)
    program = export_predictor(model, POSTERIOR, outputs=["mu", "clipped"], sample_vars=["clipped"])
    mu, drawn = program(x=np.array([0.5, 2.0, -1.0]), seed=1)
    effect = POSTERIOR["effect"].reshape(14, 3)
    expected = effect.mean(axis=1, keepdims=True) + effect[:, :1] * np.array([0.5, 2.0, -1.0])
    np.testing.assert_allclose(mu, expected, rtol=1e-13, atol=1e-14)
    assert drawn.shape == (14, 3)
    assert np.abs(drawn).max() == 1.0
    with pytest.raises(ArgumentError, match="'y' is of pymc"):
        export_predictor(model, POSTERIOR, outputs={"y": "probabilities"}, categories={"y": [0, 1]})


def test_a_density_has_the_derivatives_of_the_model_of_tensors(named, plain):
    outputs = ["logp", "dlogp", "d2logp", "pointwise", "deterministics"]
    files = [export_logp(m, outputs=outputs) for m in (named, plain)]
    assert sizes(files[0]) == sizes(files[1])
    inputs = {"point": [0.3, -1.0, 0.2, 0.7], "x": 2 * X, "group_of": ROWS}
    for found, expected in zip(*(file(**inputs) for file in files), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_transforms_keep_the_names_of_open_axes(named, plain):
    files = [export_transforms(m, deterministics=True) for m in (named, plain)]
    assert sizes(files[0]) == sizes(files[1])
    assert ("mu", ["row"]) in sizes(files[0])


@pytest.mark.slow
def test_the_metadata_has_the_dims_of_every_variable(named, plain):
    found, expected = (described(export_logp(m, verify=False)) for m in (named, plain))
    assert found["dims"] == {**expected["dims"], "sigma": []}
    for key in ("coords", "values", "observed", "deterministics", "data"):
        assert found[key] == expected[key]


def test_mode_onnx_samples_and_computes_densities(named):
    point = named.initial_point()
    point["effect"] = np.array([0.5, -1.0, 2.0])
    found = named.compile_logp(mode="ONNX")(point)
    assert found == pytest.approx(named.compile_logp(mode="FAST_COMPILE")(point), rel=1e-12)
    with pytensor.config.change_flags(mode="ONNX"), named:
        drawn = pm.sample(
            draws=5, tune=5, chains=1, cores=1, progressbar=False, random_seed=1,
            compute_convergence_checks=False, quiet=True,
        )  # fmt: skip
    assert drawn.posterior["mu"].dims == ("chain", "draw", "row")
    assert drawn.posterior["scaled"].shape == (1, 5, 3)


def test_operations_within_loops_have_gradients():
    def step(noise, last, rho):
        named = [pmd.as_xtensor(x, dims=("group",)) for x in (noise, last, rho)]
        return (named[1] * named[2] + named[0] + named[1].mean()).values

    with pm.Model(coords={"group": ["A", "B", "C"], "time": range(4)}) as named:
        rho, noise = pmd.Normal("rho", dims="group"), pmd.Normal("noise", dims=("time", "group"))
        start, values = pt.zeros(3), noise.transpose("time", "group").values
        path = pytensor.scan(step, values, start, rho.values, return_updates=False)
        pmd.Deterministic("path", pmd.as_xtensor(path, dims=("time", "group")))
        pm.Potential("near", -((path - 1.0) ** 2).sum())
    with pm.Model() as plain:
        rho, noise = pm.Normal("rho", shape=3), pm.Normal("noise", shape=(4, 3))
        last, cost = pt.zeros(3), 0.0
        for i in range(4):
            last = last * rho + noise[i] + last.mean()
            cost -= ((last - 1.0) ** 2).sum()
        pm.Potential("near", cost)
    point = RNG.normal(size=15)
    logp, dlogp, path = export_logp(named, outputs=["logp", "dlogp", "path"])(point)
    expected = export_logp(plain)(point)
    np.testing.assert_allclose(logp, expected[0], rtol=1e-13)
    np.testing.assert_allclose(dlogp, expected[1], rtol=1e-12)
    assert path.shape == (4, 3)
