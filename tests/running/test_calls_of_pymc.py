"""Functions that PyMC compiles in mode ``"ONNX"`` go straight to the session."""

import copy

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function

from pytensor_onnx.running.executor import ONNXFunction

pm = pytest.importorskip("pymc")


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=3)
        pm.Normal("y", x, 1, observed=np.arange(3.0))
    return model


def test_densities_of_raveled_variables(model, monkeypatch):
    f = model.logp_dlogp_function(ravel_inputs=True, mode="ONNX")
    expected = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    point = np.array([0.5, -1.0, 2.0])
    value, gradient = expected([point])
    again = f.copy()
    again.set_extra_values({})
    assert type(f._pytensor_function) is type(again._pytensor_function) is ONNXFunction
    with pytest.raises(TypeError, match="Wrong number of dimensions"):
        f([point[None]])
    monkeypatch.setattr(Function, "__call__", None)
    for density in (f, again, copy.copy(f)):
        for _ in range(2):
            found = density([point])
            np.testing.assert_allclose(found[0], value, rtol=1e-12)
            np.testing.assert_allclose(found[1], gradient, rtol=1e-12)


@pytest.mark.slow
def test_functions_of_a_model(model, monkeypatch):
    monkeypatch.setattr(Function, "__call__", None)
    point = {"x": np.zeros(3)}
    for f in (model.compile_logp(mode="ONNX"), model.compile_dlogp(mode="ONNX")):
        assert np.isfinite(f(point)).all()
    x = pm.Normal.dist(size=3)
    f = pm.compile([], x, mode="ONNX", random_seed=1)
    assert (f() != f()).all()


@pytest.mark.slow
def test_what_depends_on_data_alone_is_computed_once():
    rng, times = np.random.default_rng(0), np.arange(60.0)
    with pm.Model() as model:
        t, y = pm.Data("t", times), pm.Data("y", rng.normal(size=60))
        angles = 2 * np.pi * t[:, None] * np.arange(1, 7) / 30.0
        basis = pt.concatenate([pt.sin(angles), pt.cos(angles)], axis=1)
        pm.Normal("y_", basis @ pm.Normal("b", shape=12), pm.HalfNormal("s"), observed=y)
    fused, python = model.compile_dlogp(mode="ONNX"), model.compile_dlogp(mode="FAST_COMPILE")
    point = {"b": rng.normal(size=12), "s_log__": 0.3}
    kernels = fused.f.vm.jit_fn.kernels()
    assert not any("Sin" in line or "Cos" in line for line in kernels[:-1])
    assert "computed once for t" in kernels[-1]
    for n in (60, 60, 40):
        np.testing.assert_allclose(fused(point), python(point), rtol=1e-9)
        with model:
            pm.set_data({"t": np.arange(n) + 0.5, "y": rng.normal(size=n)})
    np.testing.assert_allclose(fused(point), python(point), rtol=1e-9)
