"""Predictors give PyMC's deterministic quantities, and draws of the same distribution."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytensor
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")
arviz = pytest.importorskip("arviz")

import pytensor.tensor as pt  # noqa: E402
from pymc.distributions.transforms import ordered  # noqa: E402

from pytensor_onnx import ArgumentError, InputError, ONNXProgram  # noqa: E402
from pytensor_onnx.pymc import export_predictor  # noqa: E402

RNG = np.random.default_rng(8)
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


def named(program: ONNXProgram, **inputs: object) -> dict[str, np.ndarray]:
    names = [value.name for value in program.model.graph.outputs]
    results = program(**inputs)
    return dict(zip(names, results, strict=True))


def linear() -> pm.Model:
    with pm.Model(coords={"row": range(5)}) as model:
        x = pm.Data("x", np.arange(5.0), dims="row")
        mu = pm.Deterministic("mu", pm.Normal("a") + pm.Normal("b") * x, dims="row")
        y = np.arange(5.0)
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=y, dims="row")
    return model


POSTERIOR = {
    "a": RNG.normal(size=(2, 30)),
    "b": 1 + 0.1 * RNG.normal(size=(2, 30)),
    "sigma": 0.5 + RNG.random(size=(2, 30)),
}


def as_tree(posterior: dict[str, np.ndarray]) -> object:
    return arviz.from_dict({"posterior": posterior})


@pytest.mark.slow
def test_summaries_are_those_of_arviz_and_numpy(tmp_path: Path) -> None:
    model = linear()
    summaries = ["draws", "mean", "sd", "quantiles", "hdi"]
    program = export_predictor(
        model,
        as_tree(POSTERIOR),
        tmp_path / "p.onnx",
        outputs={"mu": summaries, "y": ["mean", "draws", "hdi"]},
        quantiles=[0.0, 0.05, 0.5, 1.0],
        hdi_prob=0.8,
    )
    x = np.array([-1.0, 0.5, 7.0])
    with model:
        pm.set_data({"x": x}, coords={"row": range(3)})
        expected = pm.sample_posterior_predictive(
            as_tree(POSTERIOR), var_names=["mu"], progressbar=False, predictions=True
        ).predictions["mu"]
    found = named(program, x=x, seed=3)
    mu = expected.values.reshape(-1, 3)
    np.testing.assert_allclose(found["mu"], mu, rtol=1e-13)
    np.testing.assert_allclose(found["mu_mean"], mu.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found["mu_sd"], mu.std(axis=0, ddof=1), rtol=1e-12)
    quantiles = np.quantile(mu, [0.0, 0.05, 0.5, 1.0], axis=0).T
    np.testing.assert_allclose(found["mu_quantiles"], quantiles, rtol=1e-13)
    np.testing.assert_array_equal(found["mu_hdi"], arviz.hdi(found["mu"], prob=0.8, axis=0))
    np.testing.assert_array_equal(found["y_hdi"], arviz.hdi(found["y"], prob=0.8, axis=0))
    np.testing.assert_allclose(found["y_mean"], found["y"].mean(axis=0), rtol=1e-13)
    session = onnxruntime.InferenceSession(tmp_path / "p.onnx")
    assert [value.name for value in session.get_inputs()] == ["x", "seed"]
    told = json.loads(session.get_modelmeta().custom_metadata_map["pymc"])
    assert told["draws"] == 60
    assert told["outputs"]["y"] == ["mean", "draws", "hdi"]
    assert named(program, x=np.zeros(0), seed=1)["mu_hdi"].shape == (0, 2)
    selected = program.select(["y_hdi", "mu"]).model.metadata_props["pymc"]
    assert json.loads(selected)["outputs"] == {"mu": ["draws"], "y": ["hdi"]}


def test_outputs_are_by_default_those_of_the_observed_variables() -> None:
    with linear() as model:
        pm.Poisson("count", pm.math.exp(model["a"]), observed=3)
    found = named(export_predictor(model, POSTERIOR), x=np.arange(5.0), seed=2)
    assert list(found) == ["y_mean", "y_sd", "y", "count_mean", "count_sd", "count"]
    np.testing.assert_allclose(found["y_sd"], found["y"].std(axis=0, ddof=1), rtol=1e-12)
    assert found["count"].shape == (60,)
    with pm.Model() as nothing_observed:
        pm.Normal("a")
    with pytest.raises(ArgumentError, match="no observed variables: name the outputs"):
        export_predictor(nothing_observed, POSTERIOR)


@pytest.mark.slow
@pytest.mark.parametrize("dims", ["player", None])
def test_stored_draws_fix_the_sizes_of_inputs(dims: str | None) -> None:
    with pm.Model(coords={"player": list("abcd")}) as model:
        tries = pm.Data("tries", np.array([45, 45, 44, 43]), dims=dims)
        rate = pm.Beta("rate", 2, 6, shape=4, dims=dims)
        pm.Deterministic("expected", tries * rate)
        pm.Binomial("hits", tries, rate, observed=[10, 12, 9, 8], dims=dims)
    posterior = {"rate": RNG.beta(20, 60, (1, 50, 4))}
    for outputs in (None, {"hits": "mean"}, {"expected": "sd"}):
        program = export_predictor(model, posterior, outputs=outputs)
        assert program.inputs[0].shape == (4,)
        with pytest.raises(InputError, match=r"input tries: int..\[4\] was given int..\[3\]"):
            program(np.ones(3, "int32"), *([] if len(program.inputs) == 1 else [1]))


@pytest.mark.slow
def test_draws_have_the_distribution_of_the_posterior_predictive() -> None:
    many = {k: np.repeat(v, 60, axis=1) for k, v in POSTERIOR.items()}
    program = export_predictor(linear(), many, outputs=["y"], verify=False)
    x = np.array([0.0, 3.0])
    (y,) = program(x=x, seed=1)
    a, b, sigma = (many[name].reshape(-1, 1) for name in ("a", "b", "sigma"))
    for column, standard in zip(y.T, ((y - a - b * x) / sigma).T, strict=True):
        assert stats.kstest(standard, "norm").pvalue > 1e-3
        assert column.shape == (3600,)
    again, other = program(x=x, seed=1)[0], program(x=x, seed=2)[0]
    np.testing.assert_array_equal(y, again)
    assert abs(np.corrcoef(y[:, 0] - a[:, 0], other[:, 0] - a[:, 0])[0, 1]) < 0.06
    assert abs(np.corrcoef((y - a - b * x).T)[0, 1]) < 0.06


def test_stored_draws_are_thinned_at_equal_distances() -> None:
    program = export_predictor(linear(), POSTERIOR, outputs=["mu"], draws=12)
    a, b = (POSTERIOR[name].reshape(-1)[::5] for name in ("a", "b"))
    np.testing.assert_allclose(program(x=[2.0])[0], (a + 2 * b)[:, None], rtol=1e-14)
    assert [value.name for value in program.inputs] == ["x"]


def test_a_predictor_in_float32_is_half_as_large() -> None:
    posterior = {k: np.repeat(v, 50, axis=1) for k, v in POSTERIOR.items()}
    wide, narrow = (
        export_predictor(linear(), posterior, outputs={"mu": "mean"}, **options)
        for options in ({}, {"precision": "float32"})
    )
    x = np.array([1.0, 2.0])
    assert narrow.inputs[0].dtype.numpy() == np.float32
    np.testing.assert_allclose(narrow(x=x.astype("float32"))[0], wide(x=x)[0], rtol=1e-5)
    assert len(narrow.proto.SerializeToString()) < 0.6 * len(wide.proto.SerializeToString())


@pytest.mark.slow
def test_unseen_groups_are_drawn_from_their_distribution() -> None:
    def groups(n: int) -> pm.Model:
        with pm.Model(coords={"group": range(n)}) as model:
            group = pm.Data("group_of", np.zeros(3, int))
            effects = pm.Normal("effect", pm.Normal("mean"), pm.HalfNormal("scale"), dims="group")
            mu = pm.Deterministic("mu", effects[group])
            pm.Normal("y", mu, 0.1, shape=mu.shape, observed=np.zeros(3))
        return model

    posterior = {
        "mean": RNG.normal(size=(1, 4000)),
        "scale": 1 + RNG.random(size=(1, 4000)),
        "effect": RNG.normal(size=(1, 4000, 3)),
    }
    seen = export_predictor(groups(3), posterior, outputs=["mu"], verify=False)
    np.testing.assert_array_equal(seen(group_of=[2, 0])[0], posterior["effect"][0][:, [2, 0]])
    unseen = export_predictor(
        groups(2), posterior, outputs=["mu"], sample_vars=["effect"], verify=False
    )
    (mu,) = unseen(group_of=[0, 1, 0], seed=1)
    np.testing.assert_array_equal(mu[:, 0], mu[:, 2])
    standard = (mu - posterior["mean"].T) / posterior["scale"].T
    assert stats.kstest(standard[:, 0], "norm").pvalue > 1e-3
    assert abs(np.corrcoef(standard[:, :2].T)[0, 1]) < 0.06


def test_probabilities_of_an_ordinal_outcome() -> None:
    # Without the weight of its density, total_size.
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(3))
        cuts = pm.Normal("cuts", 0, 2, shape=2, transform=ordered, initval=[-1, 1])
        mean, sizes = pm.Normal("b") * x, {"shape": x.shape, "total_size": 30}
        pm.OrderedLogistic("y", mean, cuts, observed=[0, 1, 2], **sizes)
    posterior = {
        "cuts": np.sort(RNG.normal(size=(2, 20, 2)), axis=-1),
        "b": RNG.normal(size=(2, 20)),
    }
    program = export_predictor(
        model,
        posterior,
        outputs={"y": ["draws", "probabilities"]},
        categories={"y": [0, 1, 2]},
    )
    found = named(program, x=[-1.0, 2.0], seed=1)
    b, cuts = posterior["b"].reshape(-1, 1, 1), posterior["cuts"].reshape(-1, 1, 2)
    below = 1 / (1 + np.exp(-(cuts - b * np.array([[-1.0], [2.0]]))))
    padded = np.pad(below, ((0, 0), (0, 0), (1, 1)), constant_values=((0, 0), (0, 0), (0, 1)))
    np.testing.assert_allclose(
        found["y_probabilities"], np.diff(padded, axis=-1).mean(axis=0), rtol=1e-12
    )
    assert found["y"].dtype == np.int64
    assert set(np.unique(found["y"])) <= {0, 1, 2}


def test_a_mixture_is_drawn_in_a_loop() -> None:
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(4))
        means = pm.Normal("means", [-1, 1], 2, shape=2)
        w, sizes = pm.Dirichlet("w", np.ones(2)), {"shape": x.shape, "total_size": 40}
        pm.NormalMixture("y", w, means, 0.1, observed=np.zeros(4), **sizes)
    posterior = {"means": np.tile([-5.0, 5.0], (1, 500, 1)), "w": np.tile([0.3, 0.7], (1, 500, 1))}
    program = export_predictor(model, posterior, outputs=["y"], verify=False)
    (y,) = program(x=[0.0, 0.0], seed=1)
    assert y.shape == (500, 2)
    upper = y > 0
    assert stats.binomtest(int(upper.sum()), 1000, 0.7).pvalue > 1e-3
    assert stats.kstest((y[upper] - 5) / 0.1, "norm").pvalue > 1e-3
    assert len(np.unique(y)) == 1000


@pytest.mark.slow
def test_a_forecast_continues_a_scan() -> None:
    with pm.Model() as model:
        steps, last = pm.Data("steps", np.array(3)), pm.Data("last", np.array(1.0))
        rho, sigma = pm.Normal("rho"), pm.HalfNormal("sigma")

        def step(*arguments: pt.TensorVariable) -> tuple[pt.TensorVariable, dict]:
            state, rho, sigma = arguments
            new = pm.Normal.dist(rho * state, sigma)
            return new, pm.pytensorf.collect_default_updates([new])

        def series(last, rho, sigma, steps, size):
            path, _ = pytensor.scan(
                step, outputs_info=[last], non_sequences=[rho, sigma], n_steps=steps
            )
            return path

        pm.CustomDist("path", last, rho, sigma, steps, dist=series, signature="(),(),(),()->(t)")
    n = 2000
    posterior = {"rho": np.full((1, n), 0.5), "sigma": np.full((1, n), 0.2)}
    program = export_predictor(
        model, posterior, outputs=["path"], sample_vars=["path"], verify=False
    )
    (path,) = program(last=2.0, steps=5, seed=1)
    assert path.shape == (n, 5)
    noise = (path - 0.5 * np.column_stack([np.full(n, 2.0), path[:, :-1]])) / 0.2
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3


def test_a_gaussian_process_predicts_at_new_places() -> None:
    old, seen = np.linspace(0, 1, 5), RNG.normal(size=5)
    with pm.Model() as model:
        new = pm.Data("new", np.zeros((2, 1)))
        scale, length = pm.HalfNormal("scale"), pm.HalfNormal("length")

        def kernel(a: pt.TensorVariable, b: pt.TensorVariable) -> pt.TensorVariable:
            return scale**2 * pt.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)

        factor = pt.linalg.cholesky(kernel(pt.as_tensor(old), pt.as_tensor(old)) + 0.01 * pt.eye(5))
        weights = pt.linalg.cho_solve((factor, True), seen)
        pm.Deterministic("f", kernel(new[:, 0], pt.as_tensor(old)) @ weights)
    posterior = {"scale": 1 + RNG.random(size=(1, 6)), "length": 0.3 + RNG.random(size=(1, 6))}
    program = export_predictor(model, posterior, outputs={"f": ["draws", "mean"]})
    places = np.array([[0.2], [0.9], [2.0]])
    found = named(program, new=places)
    for row, s, ell in zip(found["f"], posterior["scale"][0], posterior["length"][0], strict=True):
        k = lambda a, b: s**2 * np.exp(-0.5 * ((a[:, None] - b) / ell) ** 2)  # noqa: B023, E731
        inner = np.linalg.solve(k(old, old) + 0.01 * np.eye(5), seen)
        np.testing.assert_allclose(row, k(places[:, 0], old) @ inner, rtol=1e-10)


@pytest.mark.slow
def test_conditionals_of_processes_are_drawn() -> None:
    places, values = np.linspace(0, 1, 4)[:, None], np.array([0.0, 1.0, 0.5, -1.0])
    with pm.Model() as model:
        new = pm.Data("new", np.zeros((2, 1)))
        gp = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, pm.HalfNormal("length")))
        gp.marginal_likelihood("y", places, values, sigma=0.1)
        gp.conditional("f", new)
    posterior = {"length": np.full((1, 2000), 0.4)}
    program = export_predictor(model, posterior, outputs=["f"], sample_vars=["f"], verify=False)
    wanted = np.array([[0.2], [0.9], [2.0]])
    (f,) = program(new=wanted, seed=1)
    with model:
        mean, cov = gp.predict(wanted, point={"length": 0.4}, jitter=1e-6)
    whitened = np.linalg.solve(np.linalg.cholesky(cov + 1e-9 * np.eye(3)), (f - mean).T)
    for row in whitened:
        assert stats.kstest(row, "norm").pvalue > 1e-3


def of_groups(data: bool) -> pm.Model:
    """Return a model as Bambi writes it: the posterior has the effects, but not their offsets."""
    group, x = np.array([0, 0, 1, 2]), np.arange(4.0)
    with pm.Model() as model:
        values = pm.Data("x", x) if data else x
        offset = pm.Normal("1|g_offset", shape=3)
        effect = pm.Deterministic("1|g", offset * pm.HalfNormal("1|g_sigma"))
        mu = pm.Deterministic("mu", pm.Normal("b") * values + effect[group])
        pm.Normal("y", mu, 0.5, observed=np.zeros(4))
    return model


def test_stored_deterministics_stand_for_variables_without_draws() -> None:
    posterior = {
        "b": RNG.normal(size=(2, 30)),
        "1|g_sigma": 0.5 + RNG.random(size=(2, 30)),
        "1|g": RNG.normal(size=(2, 30, 3)),
    }
    program = export_predictor(of_groups(data=True), posterior, outputs=["mu", "1|g", "y"])
    new = np.array([3.0, 1.0, -1.0, 5.0])
    found = named(program, x=new, seed=1)
    draws = {name: array.reshape(60, *array.shape[2:]) for name, array in posterior.items()}
    expected = draws["b"][:, None] * new + draws["1|g"][:, [0, 0, 1, 2]]
    np.testing.assert_allclose(found["mu"], expected, rtol=1e-12)
    np.testing.assert_array_equal(found["1_g"], draws["1|g"])
    assert abs((found["y"] - expected).std() - 0.5) < 0.1


def test_deterministics_of_data_stand_for_nothing_else() -> None:
    """The means of the posterior are those of other data than the inputs of the file."""
    posterior = {"b": RNG.normal(size=(2, 30)), "mu": RNG.normal(size=(2, 30, 4))}
    with pytest.raises(ArgumentError, match=r"no draws of 1\|g_offset, 1\|g_sigma"):
        export_predictor(of_groups(data=True), posterior, outputs=["y"])
    program = export_predictor(of_groups(data=False), posterior, outputs=["mu"])
    np.testing.assert_array_equal(named(program)["mu"], posterior["mu"].reshape(60, 4))


def test_deterministics_of_variables_drawn_anew_stand_for_nothing_else() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", observed=np.zeros(2))
        pm.Deterministic("effect", pm.Normal("offset") * x + pm.Normal("b"))
    posterior = {"b": RNG.normal(size=(1, 30)), "effect": RNG.normal(size=(1, 30, 2))}
    with pytest.raises(ArgumentError, match="no draws of offset"):
        export_predictor(model, posterior, outputs=["effect"])


@pytest.mark.slow
def test_models_of_many_variables_are_exported() -> None:
    with pm.Model() as model:
        effects = [pm.Normal(f"a{i}") for i in range(40)]
        pm.Deterministic("total", pt.add(*effects))
    posterior = {f"a{i}": RNG.normal(size=(1, 9)) for i in range(40)}
    (total,) = export_predictor(model, posterior, outputs=["total"])()
    np.testing.assert_allclose(total, sum(posterior.values())[0], rtol=1e-12)


def test_unfitting_draws_and_unknown_names_are_refused(tmp_path: Path) -> None:
    def refuse(message: str, posterior: object = POSTERIOR, **arguments: object) -> None:
        path = tmp_path / "p.onnx"
        with pytest.raises(ArgumentError, match=message):
            export_predictor(linear(), posterior, path, **{"outputs": ["mu"], **arguments})
        assert not path.exists()

    refuse("no variable 'sigm': did you mean sigma", outputs=["sigm"])
    refuse("one of 'draws', 'mean'", outputs={"mu": "median"})
    refuse("no draws of b: name them in sample_vars", {"a": POSTERIOR["a"]})
    refuse(r"the draws of a are float64\[2, 30, 3\]", {**POSTERIOR, "a": np.zeros((2, 30, 3))})
    refuse("different numbers of draws", {**POSTERIOR, "a": np.zeros((2, 3))})
    refuse("draws=100: the posterior has 60", draws=100)
    refuse("no free variable 'y'", sample_vars=["y"])
    refuse("no group posterior", arviz.from_dict({"prior": POSTERIOR}))
    refuse("idata is of type int", 3)
    refuse(
        "'mu' is no discrete random variable",
        outputs={"mu": "probabilities"},
        categories={"mu": [0]},
    )
    refuse("no data container 'z'", data=["z"])


def test_parameters_that_take_no_batch_are_drawn_in_a_loop() -> None:
    neighbours = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    with pm.Model() as model:
        tau = pm.HalfNormal("tau")
        pm.CAR("y", np.zeros(3), neighbours, 0.5, tau)
        pm.Deterministic("root", pm.math.sqrt(tau))
    posterior = {"tau": np.tile([1.0, 1e8], (1, 40))}
    outputs = ["y", "root"]
    program = export_predictor(model, posterior, outputs=outputs, sample_vars=["y"], verify=False)
    y, root = program(seed=1)
    np.testing.assert_array_equal(root, np.tile([1.0, 1e4], 40))
    assert y[::2].std() > 1e3 * y[1::2].std() > 0


@pytest.mark.slow
def test_parameters_behind_the_first_may_vary_alone() -> None:
    n = 80
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        x = pm.Data("x", np.zeros(3))
        pm.Normal("y", 0, scale, shape=x.shape)
        pm.MvNormal("z", np.zeros(2), scale**2 * np.eye(2))
    posterior = {"scale": np.geomspace(1, 1e6, n)[None]}
    outputs = ["y", "z"]
    program = export_predictor(model, posterior, outputs=outputs, sample_vars=outputs)
    operators = {node.op_type for node in program.model.graph}
    assert not operators & {"Scan", "Loop", "If"}
    for draws, size in zip(program(x=np.zeros(5), seed=1), (5, 2), strict=True):
        standard = draws / posterior["scale"].T
        assert standard.shape == (n, size)
        assert stats.kstest(standard.ravel(), "norm").pvalue > 1e-3


def test_an_error_of_the_computation_of_all_draws_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise TypeError("a mistake")

    monkeypatch.setattr("pytensor_onnx.pymc.forward.vectorize_graph", fail)
    with pytest.raises(TypeError, match="a mistake"):
        export_predictor(linear(), POSTERIOR, outputs=["mu"])


@pytest.mark.slow
def test_an_error_of_a_run_names_the_call_and_not_the_export() -> None:
    with pm.Model() as model:
        group = pm.Data("group", np.array([0, 1, 2]))
        pm.Normal("y", pm.Normal("z", shape=6)[group], 1, observed=np.zeros(3), shape=group.shape)
    predict = export_predictor(model, {"z": np.zeros((1, 5, 6))}, verify=False)
    with pytest.raises(IndexError) as caught:
        predict(group=[0, 6, 1], seed=1)
    text = str(caught.value)
    assert "index 6 into z is out of range for an axis of size 6" in text
    assert "predict(group=[0, 6, 1], seed=1)" in text
    assert "export_predictor" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draws", "into"),
    [(np.arange(30.0).reshape(1, 5, 6) / 30, " into z"), (np.zeros((1, 5, 6)), "")],
    ids=["different draws", "equal draws, which are one constant"],
)
def test_an_error_within_the_loop_over_draws_names_the_variable(draws, into) -> None:
    with pm.Model() as model:
        group = pm.Data("group", np.array([0, 1, 2]))
        rate = pm.math.exp(pm.Normal("z", shape=6)[group])
        pm.ZeroInflatedPoisson("y", 0.5, rate, observed=np.zeros(3, int), shape=group.shape)
    predict = export_predictor(model, {"z": draws}, verify=False)
    assert any(node.op_type == "Scan" for node in predict.model.graph)
    with pytest.raises(IndexError) as caught:
        predict(group=[0, 6, 1], seed=1)
    text = str(caught.value)
    assert text.startswith(f"index 6{into} is out of range for an axis of size 6")
    assert "predict(group=[0, 6, 1], seed=1)" in text
