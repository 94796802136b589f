"""`sample` by the sampler of this package: posterior, parts, interruption, and no other sampler."""

import gc
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

from pytensor.raise_op import Assert  # noqa: E402

from pytensor_onnx.errors import ArgumentError, RunError  # noqa: E402
from pytensor_onnx.pymc import own_sampling, sample  # noqa: E402

OWN = {"nuts_sampler": "pytensor_onnx", "progressbar": False}
FEW = {**OWN, "draws": 150, "tune": 200, "chains": 2, "cores": 2, "random_seed": 1}


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"row": ["a", "b", "c"]}) as model:
        x = pm.Data("x", [0.0, 1.0, 2.0], dims="row")
        mu, scale = pm.Normal("mu", 0, 10), pm.HalfNormal("scale", 0.5)
        mean = pm.Deterministic("mean", mu * x, dims="row")
        pm.Normal("y", mean, scale, observed=[1.0, 2.0, 4.0], dims="row")
    return model


@pytest.mark.slow
def test_the_posterior_is_that_of_the_model():
    """A normal mean of known variance has a normal posterior."""
    y = np.array([1.0, 2.0, 4.0, 3.5])
    with pm.Model():
        pm.Normal("y", pm.Normal("mu", 0, 2.0), 1.5, observed=y)
        tree = sample(**OWN, draws=2000, tune=500, chains=4, cores=2, random_seed=3, quiet=True)
    precision = 1 / 2.0**2 + len(y) / 1.5**2
    mean, sd = y.sum() / 1.5**2 / precision, precision**-0.5
    draws = tree.posterior["mu"].to_numpy()
    assert draws.shape == (4, 2000)
    # About a third of the draws are independent: errors of four standard deviations.
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(8000 / 3)
    assert abs(draws.std() / sd - 1) < 4 / np.sqrt(2 * 8000 / 3)
    assert not tree.sample_stats["diverging"].any()


@pytest.mark.slow
def test_the_draws_depend_on_the_seed_and_not_on_the_parts(model, monkeypatch):
    def draws(seed, seconds):
        monkeypatch.setattr(own_sampling, "SECONDS_OF_PART", seconds)
        tree = sample(**{**FEW, "random_seed": seed}, model=model, quiet=True)
        return tree.posterior["mu"].to_numpy(), tree.sample_stats["step_size"].to_numpy()

    first, steps = draws(1, 0.1)
    again, same_steps = draws(1, 1e-9)  # one step in each part
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(same_steps, steps)
    other, _ = draws(2, 0.1)
    assert (other[:, -1] != first[:, -1]).all()
    assert (first[0, -1] != first[1, -1]).all()


@pytest.mark.slow
def test_a_model_is_compiled_again_where_it_or_its_data_changed(monkeypatch):
    made = []
    of = own_sampling._Sampler.of
    monkeypatch.setattr(own_sampling._Sampler, "of", lambda *a: made.append(of(*a)) or made[-1])
    with pm.Model() as model:
        x = pm.Data("x", [1.0, 2.0])
        mu = pm.Normal("mu", 0, 10)
        pm.Normal("y", mu, 0.01, observed=x)
    few = {**FEW, "model": model, "quiet": True, "compute_convergence_checks": False}
    first = sample(**few)
    np.testing.assert_array_equal(sample(**few).posterior["mu"], first.posterior["mu"])
    assert len(made) == 1
    sample(**{**few, "draws": 10, "random_seed": 2})
    assert len(made) == 1
    x.set_value(np.array([5.0, 6.0]))
    assert abs(float(sample(**few).posterior["mu"].mean()) - 5.5) < 0.1
    with model:
        pm.Potential("prior", -1e6 * (mu - 4.0) ** 2)
    assert abs(float(sample(**few).posterior["mu"].mean()) - 4.0) < 0.1
    assert len(made) == 3
    made.clear()
    alive = weakref.ref(model)
    del model, mu, x, few
    gc.collect()
    assert alive() is None


def test_names_initial_values_and_the_warm_up(model):
    few = {**FEW, "draws": 5, "tune": 0, "model": model, "compute_convergence_checks": False}
    initvals = [{"mu": 50.0}, {"mu": -50.0}]
    tree = sample(**few, var_names=["mean", "mu"], initvals=initvals)
    assert list(tree.posterior.data_vars) == ["mu", "mean"]
    first = tree.posterior["mu"].to_numpy()[:, 0]
    assert first[0] > 30
    assert first[1] < -30
    assert "warmup_posterior" not in tree.children
    kept = sample(**{**few, "tune": 20}, discard_tuned_samples=False)
    assert kept.warmup_posterior["mu"].shape == (2, 20)
    assert kept.posterior["mu"].shape == (2, 5)
    assert kept.posterior.attrs["tuning_steps"] == 20
    with pytest.raises(ArgumentError, match="initvals are for 1 chains: there are 2"):
        sample(**few, initvals=[{"mu": 1.0}])


@pytest.mark.slow
def test_limits_of_trajectories_are_taken(model):
    tree = sample(**FEW, model=model, max_treedepth=2, compute_convergence_checks=False)
    assert tree.sample_stats["tree_depth"].max() == 2
    assert tree.sample_stats["reached_max_treedepth"].any()
    high = sample(**FEW, model=model, target_accept=0.99, compute_convergence_checks=False)
    low = sample(**FEW, model=model, nuts={"target_accept": 0.6}, compute_convergence_checks=False)
    assert high.sample_stats["step_size"].mean() < 0.6 * low.sample_stats["step_size"].mean()


@pytest.fixture
def handler():
    """Let SIGINT interrupt, which processes in the background ignore."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("discard", [True, False])
def test_an_interruption_keeps_the_draws(model, monkeypatch, discard):
    def interrupt(display, chains):
        if all(chain.finished_draws > 230 for chain in chains):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(own_sampling._Display, "update", interrupt)
    monkeypatch.setattr(own_sampling, "SECONDS_OF_PART", 0.01)
    with pytest.warns(UserWarning, match="sampling was interrupted: the trace has"):
        tree = sample(
            **{**FEW, "draws": 10**6}, model=model, quiet=True, discard_tuned_samples=discard
        )
    count = tree.posterior.sizes["draw"]
    assert 1 <= count < 10**6
    assert tree.sample_stats.sizes["draw"] == count
    assert np.isfinite(tree.posterior["mean"]).all()
    assert ("warmup_posterior" in tree.children) is not discard


def test_an_interruption_before_draws_is_raised(model, monkeypatch):
    def interrupt(display, chains):
        raise KeyboardInterrupt

    monkeypatch.setattr(own_sampling._Display, "update", interrupt)
    with pytest.raises(KeyboardInterrupt, match="before there were draws"):
        sample(**{**FEW, "tune": 10**6}, model=model, quiet=True)


def test_chains_that_were_interrupted_at_different_lengths():
    class Chain:
        def __init__(self, finished_draws):
            self.finished_draws = finished_draws

    chains = [Chain(120), Chain(300), Chain(100), Chain(280)]
    kept, length = own_sampling._longest(chains, 100)
    assert kept == [chains[1], chains[3]]
    assert length == 280
    kept, length = own_sampling._longest(chains, 0)
    assert kept == [chains[1], chains[3]] or len(kept) == 4
    assert len(kept) * length >= 560


def test_the_display_is_told_of_each_chain(model, monkeypatch):
    told = []

    def update(display, chains):
        told.append([(c.started, c.finished_draws, c.total_draws, c.step_size) for c in chains])

    monkeypatch.setattr(own_sampling._Display, "update", update)
    sample(**{**FEW, "chains": 3, "progressbar": True}, model=model, quiet=True)
    assert [(started, n, total) for started, n, total, _ in told[-1]] == [(True, 350, 350)] * 3
    assert all(step_size > 0 for *_, step_size in told[-1])


def test_without_matplotlib_nothing_is_displayed(model, monkeypatch):
    """PyMC's display would end with an error."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "matplotlib" else found(name, *more),
    )
    tree = sample(**{**FEW, "progressbar": True}, model=model)
    assert tree.posterior.sizes["draw"] == 150


@pytest.mark.slow
def test_errors_of_chains_reach_the_caller():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3)
        pm.Potential("checked", Assert("too large")(0.0 * x, x < -100.0))
    with pytest.raises(RunError, match="not finite at 50 first points: too large"):
        sample(**FEW, model=model)
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3)
        pm.Potential("checked", Assert("too large")(0.0 * x, x < 2.0))
    with pytest.raises(AssertionError, match="too large"):
        sample(**FEW, model=model)


def test_arguments_of_other_samplers_are_refused(model):
    with pytest.raises(ArgumentError, match="'init' is for the step methods"):
        sample(**FEW, model=model, init="adapt_diag")
    with pytest.raises(ArgumentError, match="nuts has 'gamma'"):
        sample(**FEW, model=model, nuts={"gamma": 0.1})
    with pytest.raises(ArgumentError, match="sample has no argument 'target_acept': did you mean"):
        sample(model=model, target_acept=0.9)
    with pm.Model() as discrete:
        pm.Poisson("count", 3.0)
    with pytest.raises(ArgumentError, match="no continuous free variables to draw"):
        sample(**FEW, model=discrete)


@pytest.mark.slow
def test_where_nutpie_is_not_installed_nothing_imports_it_or_numba():
    code = """
        import importlib.util, sys
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *more: None if name == "nutpie" else found(name)
        import pymc as pm
        before = set(sys.modules)
        import pytensor_onnx.pymc
        assert not {"onnx", "onnx_ir", "onnxruntime"} & (set(sys.modules) - before)
        assert len(set(sys.modules) - before) < 30
        from pytensor_onnx.pymc import sample
        with pm.Model(coords={"row": [1, 2]}):
            x = pm.Data("x", [1.0, 2.0], dims="row")
            scale = pm.HalfNormal("scale")
            y = pm.Normal("y", pm.Normal("mu") * x, scale, observed=[1.0, 2.0], dims="row")
            tree = sample(draws=120, tune=150, chains=2, cores=2, random_seed=1,
                          progressbar=False, idata_kwargs={"log_likelihood": True})
        assert tree.posterior.attrs["inference_library"] == "pytensor_onnx"
        assert tree.log_likelihood["y"].shape == (2, 120, 2)
        print({"numba", "llvmlite", "nutpie"} & set(sys.modules))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": ""},
    )
    assert ran.stdout.strip() == "set()", ran.stderr
