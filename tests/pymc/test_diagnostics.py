"""Diagnostics in files beside those of ArviZ."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc import export_sampler, to_datatree
from pytensor_onnx.pymc.diagnostics import bfmi, ess_bulk, ess_tail, rhat

FUNCTIONS = {
    "rhat": (rhat, array_stats.rhat),
    "bulk": (ess_bulk, lambda x: array_stats.ess(x, method="bulk")),
    "tail": (ess_tail, lambda x: array_stats.ess(x, method="tail", prob=(0.05, 0.95))),
    "bfmi": (bfmi, array_stats.bfmi),
}


@pytest.fixture(scope="module")
def diagnostics():
    x = pt.matrix("x")
    return pytensor.function([x], [f(x) for f, _ in FUNCTIONS.values()], mode="ONNX")


def chains(kind, shape, seed=0):
    """Draw chains: independent, correlated and degenerate ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if kind in ("slow", "antithetic"):
        for i in range(1, shape[1]):
            x[:, i] += {"slow": 0.95, "antithetic": -0.7}[kind] * x[:, i - 1]
    if kind == "apart":
        x += np.arange(shape[0])[:, None]
    if kind == "tied":
        x = np.round(x, 1)
    if kind == "equal":
        x[:] = 1.5
    if kind == "one chain stuck":
        x[0] = 0.3
    if kind == "heavy":
        x = rng.standard_cauchy(size=shape)
    if kind == "nan":
        x[-1, -1] = np.nan
    if kind == "large":
        x = 1e5 + 1e-2 * x
    return x


KINDS = ["independent", "slow", "antithetic", "apart", "tied", "equal", "one chain stuck"]
KINDS += ["heavy", "nan", "large"]
SHAPES = [(4, 250), (1, 100), (2, 9), (3, 4), (2, 5), (2, 3), (2, 1), (4, 1001)]


@pytest.mark.parametrize("kind", KINDS)
def test_diagnostics_are_those_of_arviz(kind, diagnostics):
    for shape in SHAPES:
        x = chains(kind, shape)
        with np.errstate(all="ignore"):
            expected = [reference(x) for _, reference in FUNCTIONS.values()]
        for name, found, value in zip(FUNCTIONS, diagnostics(x), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-10, err_msg=f"{name} of {shape}")


def test_a_file_of_a_sampler_has_the_diagnostics_of_its_draws():
    with pm.Model(coords={"side": ["left", "right"]}) as model:
        mu = pm.Normal("mu")
        z = pm.Normal("z", dims="side")
        pm.Normal("y", mu + z, 1.0, observed=[0.5, 1.0], dims="side")
    program = export_sampler(model, diagnostics=True)
    names = [value.name for value in program.model.graph.outputs]
    found = program(seed=[1, 2], warmup=200, draws=150)
    results = dict(zip(names, found, strict=True))
    for name in ("mu", "z"):
        draws = results[name].reshape((2, 150, -1))
        for diagnostic, key in (("rhat", "rhat"), ("ess_bulk", "bulk"), ("ess_tail", "tail")):
            columns = np.moveaxis(draws, 2, 0)
            expected = np.reshape([FUNCTIONS[key][1](x) for x in columns], results[name].shape[2:])
            np.testing.assert_allclose(results[f"{diagnostic}_{name}"], expected, rtol=1e-10)
    np.testing.assert_allclose(results["bfmi"], array_stats.bfmi(results["energy"]), rtol=1e-10)
    np.testing.assert_array_equal(results["divergences"], results["diverging"].sum(axis=1))
    none = dict(zip(names, program(seed=[1], warmup=5, draws=0), strict=True))
    assert np.isnan(none["rhat_z"]).all()
    assert none["divergences"].tolist() == [0]
    tree = to_datatree(program, found, model)
    assert set(tree.posterior.data_vars) == {"mu", "z"}
    dims = {
        str(v.name): [d.value if hasattr(d, "value") else d for d in v.shape]
        for v in program.model.graph.outputs
    }
    assert dims["rhat_z"] == [2]
    assert dims["bfmi"] == ["chain"]


def test_a_variable_with_the_name_of_a_diagnostic_is_refused():
    with pm.Model() as model:
        pm.Normal("a")
        pm.Normal("rhat_a")
    with pytest.raises(ArgumentError, match="rhat_a"):
        export_sampler(model, diagnostics=True)
