"""A file of all functions of a model computes each of them as PyMC does."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytensor
import pytest

pm = pytest.importorskip("pymc")
arviz = pytest.importorskip("arviz")

from pymc.distributions.transforms import ordered  # noqa: E402

from pytensor_onnx import ArgumentError, ONNXProgram  # noqa: E402
from pytensor_onnx.pymc import (  # noqa: E402
    export_model,
    export_transforms,
    parameter_names,
)

RNG = np.random.default_rng(6)
X, Y = RNG.normal(size=4), RNG.normal(size=4)
POINT = RNG.normal(size=7)
VALUES = {
    "scale_log__": POINT[0],
    "weights_simplex__": POINT[1:3],
    "slopes": POINT[3:7].reshape(2, 2),
}


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def model() -> pm.Model:
    with pm.Model(coords={"row": range(4)}) as model:
        x = pm.Data("x", X, dims="row")
        scale, weights = pm.HalfNormal("scale"), pm.Dirichlet("weights", np.ones(3))
        slopes = pm.Normal("slopes", shape=(2, 2))
        fitted = pm.Deterministic("fitted", slopes.sum() * x + weights[0], dims="row")
        y = pm.Normal("y", fitted, scale, observed=Y, shape=x.shape)
        pm.Poisson("count", pm.math.exp(y / 4), observed=[0, 1, 2, 1], shape=x.shape)
    return model


@pytest.fixture(scope="module")
def program(model: pm.Model, tmp_path_factory: pytest.TempPathFactory) -> ONNXProgram:
    return export_model(model, tmp_path_factory.mktemp("model") / "model.onnx")


@pytest.fixture(scope="module")
def batched(model: pm.Model) -> ONNXProgram:
    return export_model(model, batch=True)


def constrained(model: pm.Model) -> dict[str, np.ndarray]:
    variables = [*model.free_RVs, *model.deterministics]
    graphs = model.replace_rvs_by_values(variables)
    compute = model.compile_fn(graphs, inputs=model.value_vars, on_unused_input="ignore")
    return dict(zip([v.name for v in variables], compute(VALUES), strict=True))


@pytest.mark.slow
def test_the_interface(program: ONNXProgram) -> None:
    assert [(value.name, value.shape) for value in program.inputs] == [
        ("point", [7]),
        ("constrained", [8]),
        ("x", [4]),
        ("seed", []),
    ]
    names = ["logp", "dlogp", "scale", "weights", "slopes", "fitted", "y", "count"]
    assert [value.name for value in program.model.graph.outputs] == [*names, "unconstrained"]


@pytest.mark.slow
def test_functions_are_chosen_by_their_outputs(model: pm.Model, program: ONNXProgram) -> None:
    density = program.select(["dlogp", "logp"])
    assert [value.name for value in density.inputs] == ["point", "x"]
    gradient, logp = density(POINT, X)
    np.testing.assert_allclose(logp, model.compile_logp()(VALUES), rtol=1e-12)
    np.testing.assert_allclose(gradient, model.compile_dlogp()(VALUES), rtol=1e-12)
    wanted = constrained(model)
    found = program.select(list(wanted))(POINT, X)
    for name, array in zip(wanted, found, strict=True):
        np.testing.assert_allclose(array, wanted[name], rtol=1e-13, err_msg=name)
    unconstrain = program.select("unconstrained")
    assert [value.name for value in unconstrain.inputs] == ["constrained"]
    flat = np.concatenate([np.ravel(wanted[v.name]) for v in model.free_RVs])
    assert len(flat) == len(parameter_names(model, space="constrained"))
    np.testing.assert_allclose(unconstrain(flat), POINT, rtol=1e-12)
    assert len(unconstrain.model.graph) < len(program.model.graph) / 4


@pytest.mark.slow
def test_the_metadata_name_the_inputs_and_outputs_that_are_left(program: ONNXProgram) -> None:
    def is_input(selected: ONNXProgram) -> bool:
        return json.loads(selected.model.metadata_props["pymc"])["data"]["x"]["input"]

    assert is_input(program)
    assert is_input(program.select("fitted"))
    assert not is_input(program.select("unconstrained"))


@pytest.mark.slow
def test_a_session_of_the_whole_file(model: pm.Model, program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    feeds = {"point": POINT, "constrained": np.zeros(8), "x": X, "seed": np.array(0)}
    logp, fitted = session.run(["logp", "fitted"], feeds)
    np.testing.assert_allclose(logp, model.compile_logp()(VALUES), rtol=1e-12)
    np.testing.assert_allclose(fitted, constrained(model)["fitted"], rtol=1e-13)


def test_generated_quantities_have_the_moments_of_predictive_draws(model: pm.Model) -> None:
    draws, n = export_transforms(model, generated=True, batch=True, data="stored"), 3000
    *_, y, count = draws(np.tile(POINT, (n, 1)), np.arange(n))
    values = constrained(model)
    posterior = {v.name: np.array([[values[v.name]] * n]) for v in model.free_RVs}
    expected = pm.sample_posterior_predictive(
        arviz.from_dict({"posterior": posterior}),
        model,
        random_seed=1,
        progressbar=False,
        compile_kwargs={"mode": "FAST_COMPILE"},
    ).posterior_predictive
    for found, wanted in ((y, expected["y"].values[0]), (count, expected["count"].values[0])):
        error = 5 * wanted.std(0) * (2 / n) ** 0.5
        assert (np.abs(found.mean(0) - wanted.mean(0)) < error).all()
        np.testing.assert_allclose(found.std(0), wanted.std(0), rtol=0.15)
    # A count follows the draw that it depends on, and not the observation.
    pairs = (y, count), (expected["y"].values[0], expected["count"].values[0])
    for column in range(4):
        found, wanted = (np.corrcoef(a[:, column], b[:, column])[0, 1] for a, b in pairs)
        assert abs(found - wanted) < 0.12


@pytest.mark.slow
def test_draws_depend_on_their_seeds_only(program: ONNXProgram, batched: ONNXProgram) -> None:
    one, many = program.select(["y", "count"]), batched.select(["y", "count"])
    y, count = one(POINT, X, seed=5)
    np.testing.assert_array_equal(one(POINT, X, seed=5)[0], y)
    ys, counts = many(np.stack([POINT, POINT, POINT + 1]), X, [5, 6, 5])
    np.testing.assert_allclose(ys[0], y, rtol=1e-14)
    np.testing.assert_array_equal(counts[0], count)
    assert not np.any(ys[1] == y)
    np.testing.assert_allclose(ys[2], one(POINT + 1, X, seed=5)[0], rtol=1e-14)
    assert many(np.empty((0, 7)), X, np.empty(0, "int64"))[1].shape == (0, 4)


def test_one_input_for_each_variable_and_discrete_ones() -> None:
    with pm.Model() as model:
        k, p = pm.Binomial("k", 5, 0.3), pm.Beta("p", 2, 2, shape=2)
        pm.Uniform("low", 0.0, p[0])
        pm.Normal("y", k * p, 1, observed=[1.0, 2.0])
    program = export_model(model, inputs="named", outputs=["logp", "p", "unconstrained"])
    assert repr(program) == (
        "ONNXProgram(p_logodds__: float64[2], low_interval__: float64[], k: int64[], "
        "constrained_p: float64[2], constrained_low: float64[] -> logp: float64[], p: float64[2], "
        "unconstrained_p_logodds__: float64[2], unconstrained_low_interval__: float64[])"
    )
    logits, low = np.array([0.3, -0.2]), np.array(0.1)
    p = 1 / (1 + np.exp(-logits))
    _, found, back, interval = program(logits, low, 2, p, p[0] / (1 + np.exp(-low)))
    np.testing.assert_allclose(found, p, rtol=1e-14)
    np.testing.assert_allclose(back, logits, rtol=1e-13)
    np.testing.assert_allclose(interval, low, rtol=1e-12)


@pytest.mark.slow
def test_points_in_a_batch(model: pm.Model, batched: ONNXProgram) -> None:
    points = RNG.normal(size=(3, 7))
    outputs = [value.name for value in batched.model.graph.outputs]
    found = dict(zip(outputs, batched(points, np.full((3, 8), 0.5), X, [1, 2, 3]), strict=True))
    flat = [found[name].reshape(3, -1) for name in ("scale", "weights", "slopes")]
    inputs = {k: [v.name for v in batched.select(k).inputs] for k in ("logp", "scale", "y")}
    assert inputs == {"logp": ["point", "x"], "scale": ["point"], "y": ["point", "x", "seed"]}
    back = batched.select("unconstrained")(np.concatenate(flat, axis=1))
    np.testing.assert_allclose(back, points, rtol=1e-11)
    for i, point in enumerate(points):
        parts = {"scale_log__": point[0], "weights_simplex__": point[1:3]}
        parts["slopes"] = point[3:].reshape(2, 2)
        np.testing.assert_allclose(found["logp"][i], model.compile_logp()(parts), rtol=1e-12)


@pytest.mark.slow
def test_variables_as_long_as_the_data() -> None:
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(3))
        latent = pm.HalfNormal("latent", shape=x.shape[0])
        pm.Normal("y", latent, 1.0, observed=x)
    program = export_model(model)
    x = RNG.normal(size=5)
    latent = np.abs(RNG.normal(size=5))
    point = program.select("unconstrained")(constrained=latent, x=x)
    np.testing.assert_allclose(point, np.log(latent), rtol=1e-14)
    assert program(point, latent, x, 3)[-2].shape == (5,)


@pytest.mark.slow
def test_draws_of_series_ordered_categories_and_correlated_pairs() -> None:
    with pm.Model() as model:
        pm.AR("path", pm.Normal("rho", shape=2), init_dist=pm.Normal.dist(), observed=Y)
        cuts = pm.Normal("cuts", shape=2, transform=ordered, initval=[-1.0, 1.0])
        pm.OrderedLogistic("rank", Y, cuts, observed=[0, 1, 2, 1])
        chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
        pm.MvNormal("pair", np.zeros(2), chol=chol, observed=np.ones((3, 2)))
    program = export_model(model, outputs=["generated", "unconstrained"], batch=True)
    program = program.select(["path", "rank", "pair"])
    assert [value.name for value in program.inputs] == ["point", "seed"]
    for n in (2, 0):
        path, rank, pair = program(np.zeros((n, 7)), np.ones(n, "int64"))
        assert pair.shape == (n, 3, 2)
        assert path.shape == rank.shape == (n, 4)


def test_unknown_names_are_refused(model: pm.Model) -> None:
    with pytest.raises(ArgumentError, match="no output 'generate': did you mean generated"):
        export_model(model, outputs=["generate"])
    with pytest.raises(ArgumentError, match="no argument 'space'"):
        export_model(model, space="constrained")
