"""`nutpie_model`: nutpie samples with densities on ONNX Runtime, into traces like its own."""

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
nutpie = pytest.importorskip("nutpie")

import pytensor.tensor as pt  # noqa: E402
from pytensor.raise_op import Assert  # noqa: E402

from benchmarks.first_result import make_model  # noqa: E402
from pytensor_onnx.errors import ArgumentError  # noqa: E402
from pytensor_onnx.pymc import nutpie_model  # noqa: E402

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


def assert_equal(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)
        assert found[name].dtype == values.dtype


def test_variables_and_coordinates_are_those_of_nutpies_own_model(groups):
    own = nutpie.compile_pymc_model(groups, backend="jax", freeze_model=False)
    compiled = nutpie_model(groups)
    assert compiled.n_dim == own.n_dim
    assert compiled.reparameterized_names == own.reparameterized_names
    assert dict(compiled.dims) == dict(own.dims)
    assert list(compiled.coords) == list(own.coords)
    assert all(compiled.coords[name].equals(labels) for name, labels in own.coords.items())
    start = own._make_initial_points(3)
    np.testing.assert_array_equal(compiled._make_initial_points(3), start)
    results = []
    for model in (compiled, own):
        logp, gradient = model._make_logp_func()(start, **model._shared_data)
        expanded = model._make_expand_func(1, 2, 3)(start, **model._shared_data)
        results.append({"logp": np.asarray(logp), "gradient": gradient, **expanded})
    assert_equal(*results)


def test_nutpie_samples_the_eight_schools():
    trace = nutpie.sample(nutpie_model(make_model("noncentred")), draws=1000, tune=400, **OPTIONS)
    posterior = trace.posterior
    assert set(posterior.data_vars) == {"mu", "tau", "theta_tilde"}
    assert posterior["theta_tilde"].shape == (2, 1000, 8)
    # Means of 40,000 draws with nutpie's own compilation.
    assert abs(float(posterior["mu"].mean()) - 4.4) < 0.5
    assert abs(float(np.log(posterior["tau"]).mean()) - 0.8) < 0.3


def test_data_are_replaced_or_stored(groups):
    point = np.linspace(-1, 1, 6)
    compiled = nutpie_model(groups)
    changed = compiled.with_data(values=[1, 2, 5])
    with groups:
        expected = [nutpie_model(groups, data="stored")._make_logp_func()(point)]
        pm.set_data({"values": [1.0, 2.0, 5.0]})
    stored = nutpie_model(groups, data="stored")
    assert stored._shared_data == {}
    expected.append(stored._make_logp_func()(point))
    for model, (logp, gradient) in zip((compiled, changed), expected, strict=True):
        found = model._make_logp_func()(point, **model._shared_data)
        np.testing.assert_allclose(found[0], logp, rtol=1e-12)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-12)
    expanded = changed._make_expand_func(1, 2, 3)(point, **changed._shared_data)
    assert expanded["total"] == 8


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
    with pytest.raises(ArgumentError, match="continuous variables only: n"):
        nutpie_model(model)


def test_models_without_free_variables_are_refused():
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=[1.0])
    with pytest.raises(ArgumentError, match="no free variable"):
        nutpie_model(model)


def test_points_outside_of_a_check_are_divergences():
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
