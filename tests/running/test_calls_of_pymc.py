"""Functions that PyMC compiles in mode ``"ONNX"`` go straight to the session."""

import copy

import numpy as np
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


def test_functions_of_a_model(model, monkeypatch):
    monkeypatch.setattr(Function, "__call__", None)
    point = {"x": np.zeros(3)}
    for f in (model.compile_logp(mode="ONNX"), model.compile_dlogp(mode="ONNX")):
        assert np.isfinite(f(point)).all()
    x = pm.Normal.dist(size=3)
    f = pm.compile([], x, mode="ONNX", random_seed=1)
    assert (f() != f()).all()
