"""`nutpie_model`: nutpie samples with densities on ONNX Runtime, into traces like its own."""

import copy
import ctypes
import pickle
import subprocess
import sys
import threading

import cloudpickle
import numpy as np
import pytest

pm = pytest.importorskip("pymc")
nutpie = pytest.importorskip("nutpie")

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pytensor.raise_op import Assert  # noqa: E402

from benchmarks.first_result import make_model  # noqa: E402
from pytensor_onnx.errors import ArgumentError, InputError, RunError  # noqa: E402
from pytensor_onnx.pymc import nutpie_model  # noqa: E402
from pytensor_onnx.running.c_functions import DENSITY, EXPANSION, CModel  # noqa: E402

OPTIONS = {"chains": 2, "cores": 1, "progress_bar": False, "seed": 1}


@pytest.fixture
def groups():
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        values = pm.Data("values", np.arange(3.0), dims="group")
        mu, scale = pm.Normal("mu"), pm.HalfNormal("scale", dims="group")
        shares = pm.Dirichlet("shares", np.ones(3), dims="group")
        pm.Deterministic("twice", 2 * scale, dims="group")
        pm.Deterministic("large", (scale > 1).sum())
        pm.Deterministic("total", values.sum())
        pm.Normal("y", mu + shares, scale, observed=values, dims="group")
    return model


@pytest.fixture(params=["c", "python"])
def kind(request, monkeypatch):
    """Make models of C functions, or as for a version of nutpie that takes none."""
    if request.param == "python":
        monkeypatch.setattr("pytensor_onnx.pymc.nutpie.takes_c_functions", lambda: False)
    return request.param


def pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def evaluate(model, point):
    """Return the log-density, its gradient and all variables at a point."""
    if not hasattr(model, "compiled_logp_func"):
        logp, gradient = model._make_logp_func()(point, **model._shared_data)
        expanded = model._make_expand_func(1, 2, 3)(point, **model._shared_data)
        return {"logp": np.asarray(logp), "gradient": gradient, **expanded}
    logp, gradient, expanded = np.zeros(()), np.zeros(model.n_dim), np.zeros(model.n_expanded)
    data = model.user_data.ctypes.data
    call = DENSITY(model.compiled_logp_func.address)
    assert call(model.n_dim, pointer(point), pointer(gradient), pointer(logp), data) == 0
    call = EXPANSION(model.compiled_expand_func.address)
    assert call(model.n_dim, model.n_expanded, pointer(point), pointer(expanded), data) == 0
    names, slices, shapes = model.shape_info
    arrays = {n: expanded[i].reshape(s) for n, i, s in zip(names, slices, shapes, strict=True)}
    return {"logp": logp, "gradient": gradient, **arrays}


def starts(model, seed):
    make = getattr(model, "initial_point_func", None) or model._make_initial_points
    return make(seed)


def assert_equal(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)
        assert found[name].dtype == values.dtype


@pytest.mark.slow
def test_variables_and_coordinates_are_those_of_nutpies_own_model(groups, kind):
    own = nutpie.compile_pymc_model(groups, backend="jax", freeze_model=False)
    compiled = nutpie_model(groups)
    assert hasattr(compiled, "compiled_logp_func") == (kind == "c")
    assert compiled.n_dim == own.n_dim
    assert compiled.reparameterized_names == own.reparameterized_names
    # The dimensions of some models of nutpie have names for axes without one, too.
    given, named = ({k: list(v) for k, v in x.dims.items()} for x in (compiled, own))
    assert {**named, **given} == named
    added = [axis for name in named.keys() - given.keys() for axis in named[name]]
    assert all("_dim_" in axis for axis in added)
    assert list(compiled.coords) == list(own.coords)
    assert all(compiled.coords[name].equals(labels) for name, labels in own.coords.items())
    start = starts(own, 3)
    np.testing.assert_array_equal(starts(compiled, 3), start)
    assert_equal(evaluate(compiled, start), evaluate(own, start))


@pytest.mark.slow
def test_nutpie_samples_the_eight_schools():
    trace = nutpie.sample(nutpie_model(make_model("noncentred")), draws=1000, tune=400, **OPTIONS)
    posterior = trace.posterior
    assert set(posterior.data_vars) == {"mu", "tau", "theta_tilde"}
    assert posterior["theta_tilde"].shape == (2, 1000, 8)
    # Means of 40,000 draws with nutpie's own compilation.
    assert abs(float(posterior["mu"].mean()) - 4.4) < 0.5
    assert abs(float(np.log(posterior["tau"]).mean()) - 0.8) < 0.3


@pytest.mark.slow
def test_data_are_replaced_or_stored(groups, kind):
    point = np.linspace(-1, 1, 6)
    compiled = nutpie_model(groups)
    changed = compiled.with_data(values=[1, 2, 5])
    with pytest.raises(ValueError, match="Unknown data variable: others"):
        compiled.with_data(others=1)
    expected = [evaluate(nutpie_model(groups, data="stored"), point)]
    with groups:
        pm.set_data({"values": [1.0, 2.0, 5.0]})
    expected.append(evaluate(nutpie_model(groups, data="stored"), point))
    assert_equal(evaluate(compiled, point), expected[0])
    assert_equal(evaluate(changed, point), expected[1])
    assert expected[1]["total"] == 8


def test_data_of_unfitting_sizes_are_refused_before_sampling(kind):
    with pm.Model(coords={"label": ["a", "b"]}) as model:
        x, i = pm.Data("x", np.arange(3.0)), pm.Data("i", [0, 1, 0])
        w = pm.Data("w", np.ones(2), dims="label")
        z = pm.Normal("z", dims="label")
        rows = pm.Deterministic("rows", z[i] * x)
        pm.Deterministic("labels", w * 2, dims="label")
        pm.Normal("y", rows, 1.0, observed=pm.Data("seen", np.zeros(3)))
    compiled = nutpie_model(model)
    with pytest.raises(InputError, match=r"is 2 in x and 3 in (i|seen)"):
        compiled.with_data(x=np.zeros(2))
    with pytest.raises(InputError, match=r"input x: float64.* was given complex"):
        compiled.with_data(x=np.zeros(3, complex))
    with pytest.raises(InputError, match="'label' has 2 labels, and size 3"):
        compiled.with_data(w=np.ones(3))
    longer = compiled.with_data(x=[1.0, 2, 3, 4], i=[1, 1, 1, 1], seen=np.zeros(4))
    np.testing.assert_allclose(evaluate(longer, np.array([1.0, 2]))["rows"], [2.0, 4, 6, 8])


def test_data_that_change_the_number_of_variables_are_refused(kind):
    with pm.Model() as model:
        y = pm.Data("y", np.zeros(3), dims="row")
        pm.Normal("y_seen", pm.Normal("effect", dims="row"), 1.0, observed=y)
    compiled = nutpie_model(model)
    for size in (2, 4):
        with pytest.raises(InputError, match=r"compile it again|data of these sizes"):
            compiled.with_data(y=np.zeros(size))


def test_a_model_without_a_finite_start_says_why(kind):
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Normal("y", x, 1.0, observed=pm.Data("seen", [0.0, 1.0]))
    compiled = nutpie_model(model).with_data(seen=[0.0, np.inf])
    with pytest.raises(RunError, match="values that are NaN or infinite in seen"):
        nutpie.sample(compiled, **OPTIONS)
    with pm.Model() as model:
        pm.Potential("checked", Assert("out of reach")(pt.zeros(()), pm.Normal("x") > 9.0))
    with pytest.raises(RunError, match="out of reach"):
        nutpie.sample(nutpie_model(model), **OPTIONS)
    with pm.Model() as model:
        pm.Potential("never", pt.log(0.0 * pm.Normal("x")))
    with pytest.raises(RunError, match=r"model\.debug\(\) tells"):
        nutpie.sample(nutpie_model(model), **OPTIONS)
    with pm.Model() as model:
        first, rows, last = pm.Normal("first"), pm.Normal("rows", shape=3), pm.HalfNormal("last")
        # A root at zero, whose slope is infinite and is multiplied by zero.
        roots = [pt.sqrt(pt.maximum(x - 1e9, 0.0)) for x in (rows[1], last)]
        pm.Potential("edge", first + roots[0] + roots[1])
    with pytest.raises(RunError, match=r"gradient is not finite by rows, last$"):
        nutpie.sample(nutpie_model(model), **OPTIONS)


@pytest.mark.few(1)
def test_compiled_models_are_copied_and_pickled(groups, kind):
    compiled = nutpie_model(groups).with_data(values=[1.0, 2.0, 5.0])
    point = np.linspace(-1, 1, 6)
    expected = evaluate(compiled, point)
    copies = [
        pickle.loads(pickle.dumps(compiled)),
        cloudpickle.loads(cloudpickle.dumps(compiled)),
        copy.deepcopy(compiled),
        copy.copy(compiled),
    ]
    del compiled
    for found in copies:
        assert_equal(evaluate(found, point), expected)
        np.testing.assert_array_equal(starts(found, 3), starts(copies[0], 3))
    changed = copies[0].with_data(values=np.zeros(3))
    assert evaluate(changed, point)["total"] == 0


LOADS = """
import pickle, sys, nutpie
with open(sys.argv[1], "rb") as file:
    model, options = pickle.load(file)
trace = nutpie.sample(model, draws=20, tune=20, **options)
with open(sys.argv[2], "wb") as file:
    pickle.dump(trace.posterior["scale"].to_numpy(), file)
"""


@pytest.mark.slow
def test_another_process_draws_the_same(groups, tmp_path):
    compiled = nutpie_model(groups).with_data(values=[1.0, 2.0, 5.0])
    (tmp_path / "model").write_bytes(pickle.dumps((compiled, OPTIONS)))
    paths = [str(tmp_path / "model"), str(tmp_path / "trace")]
    subprocess.run([sys.executable, "-c", LOADS, *paths], check=True)
    own = nutpie.sample(compiled, draws=20, tune=20, **OPTIONS).posterior["scale"]
    np.testing.assert_array_equal(pickle.loads((tmp_path / "trace").read_bytes()), own)


@pytest.mark.slow
def test_initial_values_are_those_given():
    with pm.Model() as model:
        pm.HalfNormal("x")
        pm.Normal("y", shape=2)
    first = [
        starts(nutpie_model(model, initvals={"x": 100.0, "y": [5.0, -5.0]}), seed)
        for seed in range(3)
    ]
    np.testing.assert_array_less(np.abs(np.array(first) - [np.log(100.0), 5.0, -5.0]), 1.0)


@pytest.mark.slow
def test_names_choose_the_variables_of_the_trace(groups):
    trace = nutpie.sample(nutpie_model(groups, var_names=["scale"]), draws=5, tune=5, **OPTIONS)
    assert set(trace.posterior.data_vars) == {"mu", "scale"}
    trace = nutpie.sample(nutpie_model(groups, var_names=[]), draws=5, tune=5, **OPTIONS)
    assert set(trace.posterior.data_vars) == {"mu"}
    with pytest.raises(ArgumentError, match="scales"):
        nutpie_model(groups, var_names=["scales"])


def test_discrete_variables_are_refused():
    with pm.Model() as model:
        pm.Normal("x", pm.Poisson("n", 3))
    with pytest.raises(ArgumentError, match="continuous variables only, not n: n is Poisson"):
        nutpie_model(model)


def test_models_without_free_variables_are_refused():
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=[1.0])
    with pytest.raises(ArgumentError, match="no free variable"):
        nutpie_model(model)


@pytest.mark.slow
def test_threads_call_one_c_function(groups):
    model = nutpie_model(groups)
    points = np.random.default_rng(0).normal(size=(4, 6))
    expected = [evaluate(model, point) for point in points]
    found = [[] for _ in points]

    def call(i):
        found[i] += [evaluate(model, points[i]) for _ in range(50)]

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for results, wanted in zip(found, expected, strict=True):
        assert len(results) == 50
        for result in results:
            for name, values in wanted.items():
                np.testing.assert_array_equal(result[name], values)


@pytest.mark.slow
def test_a_model_of_one_region_runs_as_its_session_does(groups, monkeypatch):
    point = np.linspace(-1, 1, 6)
    monkeypatch.setattr(CModel, "_set_tape", lambda *arguments: None)
    by_session = evaluate(nutpie_model(groups), point)
    monkeypatch.undo()
    assert_equal(evaluate(nutpie_model(groups), point), by_session)


@pytest.mark.slow
@pytest.mark.parametrize("floats", ["float32", "float64"])
def test_results_of_any_dtype_are_numbers_of_float64(floats):
    with pytensor.config.change_flags(floatX=floats, warn_float64="ignore"), pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Deterministic("count", (x > 0).sum())
        pm.Deterministic("signs", x > 0)
        compiled = nutpie_model(model)
        found = evaluate(compiled, np.array([0.5, -1.0]))
    np.testing.assert_allclose(found["gradient"], [-0.5, 1.0])
    np.testing.assert_allclose(found["logp"], -np.log(2 * np.pi) - 0.625, rtol=1e-6)
    assert found["count"] == 1
    np.testing.assert_array_equal(found["signs"], [1.0, 0.0])


def test_points_outside_of_a_check_are_divergences(kind):
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("checked", Assert("too large")(pt.zeros(()), x < 1.5))
    trace = nutpie.sample(nutpie_model(model), draws=200, tune=100, **OPTIONS)
    assert trace.posterior["x"].max() < 1.5
    assert trace.sample_stats["diverging"].any()


def test_nutpie_has_no_mode():
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(ValueError, match="numba and jax"):
        nutpie.compile_pymc_model(model, backend="onnx")
