"""Densities whose gradient as written is NaN are verified with the gradient that PyMC computes."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_onnx.exporting.verification import comparison
from pytensor_onnx.pymc import export_logp, export_predictor

FAST_RUN = Mode("py", "fast_run")
Y = np.array([0.25, -0.26, 1.28, 0.2, -1.07, 0.72, 2.6, 1.9])


def truncated():
    mean, sigma = pm.Normal("mean", 30, 1), pm.HalfNormal("sigma", 0.3)
    pm.Truncated("y", pm.Normal.dist(mean, sigma), lower=-3.0, upper=3.0, observed=Y)


def unused_branch():
    root = pt.sqrt(pm.Normal("b") - 3)
    pm.Potential("term", -pt.switch(pt.ge(pm.Normal("a"), 3), root, pm.Normal("c")))


def ordered_probit():
    eta, cutpoints = pm.Normal("eta") * np.ones(4), np.array([-1.0, 0, 2])
    pm.OrderedProbit("y", eta=eta, cutpoints=cutpoints, sigma=0.1, observed=[0, 1, 2, 3])


MODELS = {
    "ex-Gaussian": lambda: pm.ExGaussian("x", -2.5, 0.1, nu=10.0),
    "triangular": lambda: pm.Triangular("x", lower=0.0, upper=1.0, c=0.0),
    "ordered probit": ordered_probit,
    "truncated": truncated,
    "unused branch": unused_branch,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_gradients_that_are_nan_as_written_are_verified(name):
    with pm.Model() as model:
        MODELS[name]()
    program = export_logp(model)
    assert "where that is not finite (dlogp), with PyTensor's rewritten" in str(
        program.verification
    )
    point = model.initial_point()
    found = program(np.concatenate([np.atleast_1d(v) for v in point.values()]))
    logp, gradient = (f(mode=FAST_RUN)(point) for f in (model.compile_logp, model.compile_dlogp))
    np.testing.assert_allclose(found[0], logp, rtol=1e-12)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-10, atol=1e-15)


@pytest.mark.slow
def test_a_few_draws_of_a_loop_are_compared(monkeypatch):
    compared = []
    evaluate = comparison.evaluate
    monkeypatch.setattr(
        comparison, "evaluate", lambda *a: compared.append(evaluate(*a)) or compared[-1]
    )
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(-1, 1, 5))
        mean = pt.exp(pm.Normal("slope") * x)
        pm.ZeroInflatedPoisson("y", 0.5, mean, shape=x.shape, observed=np.zeros(5, int))
    posterior = {"slope": np.linspace(-1, 1, 400)[None]}
    program = export_predictor(model, posterior, outputs={"y": ["mean", "draws"]})
    assert [array.shape[0] for _, array in compared] == [8]
    assert program.verification.verdict == "equal"
    assert (
        "compared in 8 of 400 draws and 5 of 5 rows, by a file of these draws" in program.report()
    )
    mean, draws = program(x=np.zeros(2), seed=1)
    assert draws.shape == (400, 2)
    np.testing.assert_allclose(mean, draws.mean(axis=0))


@pytest.mark.slow
def test_two_draws_of_a_time_series_are_compared():
    with pm.Model() as model:
        pm.AR("y", [pm.Normal("rho")], 1.0, init_dist=pm.Normal.dist(shape=1), observed=np.zeros(9))
    posterior = {"rho": np.linspace(0.1, 0.5, 100)[None]}
    program = export_predictor(model, posterior)
    assert program.verification.part == "2 of 100 draws, by a file of these draws"


@pytest.mark.slow
def test_many_draws_are_compared_for_few_rows():
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(-1, 1, 1000))
        pm.Poisson("y", pt.exp(pm.Normal("slope") * x), shape=x.shape, observed=np.zeros(1000, int))
    posterior = {"slope": np.linspace(-1, 1, 1000)[None]}
    program = export_predictor(model, posterior)
    assert program.verification.samples == ("given inputs (x [100], seed [])",)
    assert program.verification.part == "1,000 of 1,000 draws and 100 of 1,000 rows"
    assert "; compared in 1,000 of 1,000 draws and 100 of" in str(program.verification)


def test_the_verification_tells_how_many_draws_and_rows_were_compared():
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(3))
        pm.Deterministic("line", pm.Normal("slope") * x)
        pm.Deterministic("square", model["slope"] ** 2)
    posterior = {"slope": np.linspace(-1, 1, 20)[None]}
    parts = {
        name: export_predictor(model, posterior, outputs=[name], **options).verification.part
        for name, options in (("line", {}), ("square", {"draws": 10}))
    }
    assert parts == {"line": "20 of 20 draws and 3 of 3 rows", "square": "10 of 10 draws"}
    assert not export_predictor(model, posterior, outputs=["line"], verify=False).verification.part
