"""Files of samplers draw from the posterior with a runtime alone, and report what fails."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

pm = pytest.importorskip("pymc")

from arviz_stats.base import array_stats  # noqa: E402

from pytensor_onnx import ArgumentError, InputError, RunError  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_sampler  # noqa: E402
from pytensor_onnx.running.direct_calls import no_call  # noqa: E402
from scripts.web_runtime import run_in_web  # noqa: E402

NODE_MODULES = os.environ.get("ONNXRUNTIME_WEB_NODE_MODULES")
STATISTICS = [
    *("lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging", "step_size"),
    "finite_start",
]
RNG = np.random.default_rng(11)
Y, MORE_Y = RNG.normal(1.0, 1.0, size=5), RNG.normal(-2.0, 1.0, size=12)


def model_with_data() -> pm.Model:
    """A normal mean, whose posterior is known, a scale and an effect for each row of the data."""
    with pm.Model(coords={"axis": ["a", "b"]}) as model:
        y = pm.Data("y", Y, dims="row")
        mu = pm.Normal("mu", 0, 2, dims="axis")
        pm.HalfNormal("sigma", 3)
        pm.Normal("effect", dims="row")
        pm.Deterministic("twice", 2 * mu, dims="axis")
        pm.Normal("observed", mu[:, None], 1, observed=y[None, :] * np.ones((2, 1)))
    return model


def run(path: Path, **inputs: object) -> dict[str, np.ndarray]:
    """Run a file in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    names = [value.name for value in session.get_outputs()]
    feeds = {name: np.asarray(value) for name, value in inputs.items()}
    return dict(zip(names, session.run(None, feeds), strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sampler") / "sampler.onnx"
    export_sampler(model_with_data(), path, unconstrained=True, verify=False)
    return path


def deviation(draws: np.ndarray, expected: float) -> float:
    """Return the error of a mean in Monte Carlo standard errors."""
    error = draws.std() / np.sqrt(array_stats.ess(draws))
    return float(abs(draws.mean() - expected) / error)


def posterior(y: np.ndarray) -> tuple[float, float]:
    precision = 1 / 4 + len(y)
    return y.sum() / precision, precision**-0.5


@pytest.mark.parametrize("y", [Y, MORE_Y], ids=["data of the model", "longer data"])
@pytest.mark.slow
def test_draws_have_the_moments_of_the_posterior(path, y):
    drawn = run(path, seed=[1, 2], warmup=200, draws=400, y=y)
    assert drawn["effect"].shape == (2, 400, len(y))
    mean, sd = posterior(y)
    half_normal = 3 * np.sqrt(2 / np.pi), 3 * np.sqrt(1 - 2 / np.pi)
    quantities = [(drawn["mu"][..., 0], mean, sd), (drawn["mu"][..., 1], mean, sd)]
    quantities += [(drawn["sigma"], *half_normal)]
    quantities += [(drawn["effect"][..., i], 0.0, 1.0) for i in range(len(y))]
    for draws, expected, spread in quantities:
        assert array_stats.rhat(draws) < 1.03
        assert deviation(draws, expected) < 4
        assert deviation((draws - expected) ** 2, spread**2) < 4
    np.testing.assert_array_equal(drawn["twice"], 2 * drawn["mu"])
    assert abs(drawn["acceptance_rate"].mean() - 0.85) < 0.1
    assert not drawn["diverging"].any()
    assert drawn["finite_start"].all()


@pytest.mark.slow
def test_statistics_describe_the_draws(path):
    drawn = run(path, seed=[3], warmup=50, draws=20, y=Y)
    assert [name for name in drawn if name in STATISTICS] == STATISTICS
    model = model_with_data()
    logp = model.compile_logp(mode="FAST_COMPILE")
    graph = ModelGraph(model)
    for point, lp in zip(drawn["point"][0], drawn["lp"][0], strict=True):
        splits = np.split(point, np.cumsum([value.start.size for value in graph.continuous]))
        values = {
            value.name: part.reshape(value.start.shape)
            for value, part in zip(graph.continuous, splits, strict=False)
        }
        np.testing.assert_allclose(lp, logp(values), rtol=1e-12)
    assert (drawn["energy"] > -drawn["lp"]).all()
    depth, n_steps = drawn["tree_depth"], drawn["n_steps"]
    assert ((n_steps >= 2 ** (depth - 1)) & (n_steps < 2**depth)).all()
    assert np.ptp(drawn["step_size"]) == 0
    np.testing.assert_allclose(drawn["sigma"][0], np.exp(drawn["point"][0, :, 2]), rtol=1e-15)


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose chains run one after another."""
    path = tmp_path_factory.mktemp("in_turn") / "sampler.onnx"
    export_sampler(model_with_data(), path, unconstrained=True, lockstep=False, verify=False)
    return path


@pytest.mark.slow
def test_a_chain_in_turn_depends_on_its_seed_and_not_on_its_length(in_turn):
    together = run(in_turn, seed=[5, 6, 5], warmup=30, draws=25, y=Y)
    alone = run(in_turn, seed=[6], warmup=30, draws=40, y=Y)
    for name in [*STATISTICS[:-1], "mu", "effect"]:
        np.testing.assert_array_equal(together[name][0], together[name][2])
        np.testing.assert_array_equal(together[name][1], alone[name][0, :25])
        assert not np.array_equal(together["mu"][0], together["mu"][1])


@pytest.mark.slow
def test_a_longer_run_in_lockstep_begins_with_a_shorter_one(path):
    short = run(path, seed=[5, 6, 7], warmup=30, draws=25, y=Y)
    long = run(path, seed=[5, 6, 7], warmup=30, draws=40, y=Y)
    for name in [*STATISTICS[:-1], "mu", "effect"]:
        np.testing.assert_array_equal(short[name], long[name][:, :25])


def test_chains_in_lockstep_draw_what_they_draw_in_turn(path, in_turn):
    """Up to rounding, which a warm-up would amplify."""
    expected = run(in_turn, seed=[5, 6, 7, 8], warmup=0, draws=25, y=Y)
    found = run(path, seed=[5, 6, 7, 8], warmup=0, draws=25, y=Y)
    alone = run(path, seed=[6], warmup=0, draws=25, y=Y)
    assert np.ptp(expected["n_steps"], axis=0).any(), "chains take different numbers of steps"
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(alone[name][0], values[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("chains", "warmup", "draws"), [(2, 0, 0), (1, 0, 3), (1, 3, 0), (0, 3, 2)]
)
def test_numbers_of_steps_and_chains_may_be_zero(path, chains, warmup, draws):
    seed = np.arange(chains)
    drawn = run(path, seed=seed, warmup=warmup, draws=draws, y=Y)
    assert drawn["mu"].shape == (chains, draws, 2)
    assert drawn["effect"].shape == (chains, draws, 5)
    assert drawn["diverging"].shape == (chains, draws)
    assert drawn["finite_start"].shape == (chains,)


@pytest.mark.skipif(not NODE_MODULES, reason="ONNXRUNTIME_WEB_NODE_MODULES names no directory")
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_webassembly_draws_from_the_posterior(path):
    few = {"seed": np.array([1, 2]), "warmup": np.array(0), "draws": np.array(20), "y": Y}
    many = few | {"warmup": np.array(200), "draws": np.array(400)}
    runs = [(path.read_bytes(), inputs) for inputs in (few, many)]
    _, [first, drawn] = run_in_web(str(NODE_MODULES), runs)
    native = run(path, **few)
    # The random numbers are equal, exponentials differ in the last bit.
    for name, values in native.items():
        np.testing.assert_allclose(first[name], values, rtol=1e-10, atol=1e-12, err_msg=name)
    mean, sd = posterior(Y)
    for i in range(2):
        assert deviation(drawn["mu"][..., i], mean) < 4
        assert deviation((drawn["mu"][..., i] - mean) ** 2, sd**2) < 4
    assert not drawn["diverging"].any()


def test_the_file_describes_the_model(path):
    session = onnxruntime.InferenceSession(path)
    assert [value.name for value in session.get_inputs()] == ["seed", "warmup", "draws", "y"]
    shapes = {value.name: value.shape for value in session.get_outputs()}
    assert shapes["mu"] == ["chain", "draw", 2]
    assert shapes["lp"] == ["chain", "draw"]
    assert shapes["finite_start"] == ["chain"]
    metadata = session.get_modelmeta().custom_metadata_map
    description = json.loads(metadata["pymc"])
    assert description["sampler"] == {"max_tree_depth": 10, "target_accept": 0.8}
    assert description["coords"]["axis"] == ["a", "b"]


@pytest.mark.slow
def test_sizes_that_density_and_variables_fix_are_those_of_the_inputs():
    with pm.Model() as model:
        hours, other = pm.Data("hours", np.arange(4.0)), pm.Data("other", np.arange(4.0))
        rows, sizes = pm.Data("rows", np.arange(4.0)), pm.Data("sizes", np.arange(4.0))
        mean = pm.Normal("slope") * hours
        pm.Normal("grade", mean, 1, shape=hours.shape, observed=np.arange(4.0))
        pm.Normal("joined", other * mean.sum(), 1, observed=rows)
        pm.Deterministic("product", mean * sizes)
    program = export_sampler(model, verify=False)
    shapes = {x.name: list(x.shape) for x in program.inputs}
    assert shapes["hours"] == shapes["sizes"] == [4]
    assert shapes["other"] == shapes["rows"] != [4]
    data = {"hours": np.ones(4), "sizes": np.ones(4), "other": np.ones(2)}
    with pytest.raises(InputError, match="is 2 in other and 1 in rows"):
        program(seed=[1], warmup=1, draws=1, **data, rows=np.ones(1))


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A normal variable between -0.5 and 0.5, NaN below and impossible above."""
    with pm.Model() as model:
        x = pm.Normal("x", initval=0.9)
        pm.Potential("above", pm.math.switch(x > 0.5, -np.inf, 0.0))
        pm.Potential("below", 1e-6 * pm.math.log(x + 0.5))
    path = tmp_path_factory.mktemp("edge") / "edge.onnx"
    export_sampler(model, path, start=True, verify=False)
    return path


def test_divergences_and_starts_that_are_not_finite_are_reported(edge):
    starts = [[0.1], [-2.0], [np.nan], [np.inf]]
    drawn = run(edge, seed=[1, 1, 1, 1], warmup=100, draws=100, start=starts)
    assert drawn["finite_start"].tolist() == [True, False, False, False]
    assert (np.abs(drawn["x"][0]) <= 0.5).all()
    assert 0 < drawn["diverging"][0].sum() < 100
    assert len(np.unique(drawn["x"][0])) > 50
    assert drawn["diverging"][1:].all()
    assert not np.isfinite(drawn["lp"][1:]).any()
    assert (drawn["acceptance_rate"][1:] == 0).all()
    np.testing.assert_array_equal(drawn["x"][1:3, -1], [-2.0, np.nan])


def test_the_error_of_a_start_names_what_is_not_finite():
    with pm.Model() as model:
        y = pm.Data("y", Y)
        pm.Normal("seen", pm.Normal("mu"), 1, observed=y)
        pm.Deterministic("least", pm.math.log(y.min()))
    program = export_sampler(model, start=True, verify=False)
    call = {"seed": [1, 2, 3], "warmup": 5, "draws": 3, "y": np.ones(5)}
    assert np.isfinite(program(**call, start=np.zeros((3, 1)))[0]).all()
    with pytest.raises(RunError, match=r"start: 0, 1, 2. .* infinite in y, least\. Give"):
        program(**{**call, "y": [1.0, 2.0, np.nan, 1.0, 1.0]}, start=np.zeros((3, 1)))
    with pytest.raises(RunError, match=r"start: 1. .* infinite in start, mu\. Give"):
        program(**call, start=[[0.0], [np.inf], [0.0]])
    with pytest.raises(RunError, match=r"start: 2. model.debug\(\) tells"):
        program(**call, start=[[0.0], [0.0], [1e200]])


@pytest.mark.parametrize("lockstep", [True, False])
def test_the_error_of_a_start_names_the_variables_by_its_gradient(lockstep):
    """The gradient of the root of |x| is infinite by x at zero, where the root is finite."""
    with pm.Model() as model:
        pm.Normal("mu", shape=2)
        x = pm.Normal("x", shape=2)
        pm.Potential("root", -pm.math.sqrt(pm.math.abs(x)).sum())
    program = export_sampler(model, start=True, lockstep=lockstep, verify=False)
    with pytest.raises(RunError, match=r"start: 1. .*gradient.* infinite in x\. Give"):
        program(seed=[1, 2], warmup=3, draws=2, start=[[0.1, 0.0, 0.2, 1.0], [0.0, 0.0, 0.2, 0.0]])


@pytest.mark.slow
def test_chains_start_where_the_density_is_finite():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("far", pm.math.log(x - 0.9))
    program = export_sampler(model, verify=False, variables=["x"])
    drawn = dict(zip(["x", *STATISTICS], program(np.arange(5), 0, 1), strict=True))
    assert drawn["finite_start"].all()
    assert (drawn["x"] > 0.9).all()


@pytest.mark.parametrize("lockstep", [True, False])
def test_chains_go_on_from_a_state_with_the_same_bits(lockstep):
    with pm.Model() as model:
        y = pm.Data("y", Y)
        pm.Normal("effect", pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 3), observed=y)
    program = export_sampler(model, state=True, lockstep=lockstep, verify=False)
    # No size depends on the state: the file is one tape.
    assert program.session.direct is not no_call
    names = [value.name for value in program.model.graph.outputs]

    def call(draws: int, state: np.ndarray, y: np.ndarray = Y) -> dict[str, np.ndarray]:
        results = program(seed=[1, 2], warmup=40, draws=draws, state=state, y=y)
        return dict(zip(names, results, strict=True))

    whole, first = (call(draws, np.zeros((0, 9))) for draws in (30, 11))
    second = call(19, first["next_state"])
    for name in ("mu", "sigma", *STATISTICS[:-1]):
        together = np.concatenate([first[name], second[name]], axis=1)
        np.testing.assert_array_equal(together, whole[name])
    np.testing.assert_array_equal(second["next_state"], whole["next_state"])
    assert second["next_state"][:, -1].tolist() == [70, 70]
    # Other data: the density of the position is computed anew.
    moved = call(200, whole["next_state"], Y + 2)
    assert moved["mu"].mean() - whole["mu"].mean() > 0.5
    assert (moved["step_size"] == whole["step_size"][:, :1]).all()


def without_free_variables() -> None:
    pm.Normal("y", 0, 1, observed=[1.0])


def with_a_discrete_variable() -> None:
    pm.Normal("y", pm.Poisson("count", 2.0), 1, observed=[1.0])


def with_a_name_of_a_statistic() -> None:
    pm.Normal("energy")


@pytest.mark.parametrize(
    ("define", "options", "message"),
    [
        (without_free_variables, {}, "no continuous free variables"),
        (with_a_discrete_variable, {}, "discrete variables: count"),
        (with_a_name_of_a_statistic, {}, "'energy' would name two"),
        (model_with_data, {"variables": ["mus"]}, "did you mean mu"),
        (model_with_data, {"data": ["x"]}, "no data container 'x'"),
        (model_with_data, {"max_tree_depth": 0}, "max_tree_depth"),
        (model_with_data, {"target_accept": 1.0}, "target_accept"),
        (model_with_data, {"chains": 4}, "chains"),
    ],
)
def test_errors_come_before_a_file_is_written(
    define: Callable, options: dict, message: str, tmp_path: Path
):
    with pm.Model() as model:
        built = define() or model
    with pytest.raises((ArgumentError, TypeError), match=message):
        export_sampler(built, tmp_path / "sampler.onnx", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("rows", "in_lockstep"), [(50, True), (201, False)])
def test_chains_of_models_with_large_data_run_in_turn(rows, in_lockstep):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, observed=pm.Data("seen", np.zeros(rows)))
    same, other = (
        export_sampler(model, lockstep=lockstep, verify=False).proto.graph
        for lockstep in (in_lockstep, not in_lockstep)
    )
    found = [x.op_type for x in export_sampler(model, verify=False).proto.graph.node]
    assert found == [x.op_type for x in same.node]
    assert found != [x.op_type for x in other.node]


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("tune", "the file has inputs for them: program(seed=[1, 2], warmup=500, draws=500)"),
        ("chains", "seed is an input of the file: program(seed=[1, 2], ...) draws two chains"),
        ("target_acept", "did you mean target_accept?"),
        ("progressbar", "it takes assume_finite, data, diagnostics, "),
    ],
)
def test_unknown_keywords_lead_to_arguments_and_inputs_of_samplers(keyword, hint):
    with pytest.raises(ArgumentError, match=f"no argument '{keyword}': {re.escape(hint)}"):
        export_sampler(None, **{keyword: 1})
