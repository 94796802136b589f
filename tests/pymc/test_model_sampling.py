"""`sample` returns what `pymc.sample` returns, by nutpie or PyMC's step methods on ONNX Runtime."""

import gc
import logging
import weakref

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
nutpie = pytest.importorskip("nutpie")

import pytensor.tensor as pt  # noqa: E402
from pytensor import wrap_py  # noqa: E402
from pytensor.raise_op import Assert  # noqa: E402

from pytensor_onnx.errors import ArgumentError  # noqa: E402
from pytensor_onnx.pymc import (  # noqa: E402
    export_logp,
    export_sampler,
    nutpie as nutpie_models,
    sample,
    to_datatree,
)
from pytensor_onnx.pymc.model_sampling import SAMPLERS  # noqa: E402

FEW = {"draws": 110, "tune": 100, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
STATISTICS = {"lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging", "step_size"}


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"row": ["a", "b", "c"]}) as model:
        x, shift = pm.Data("x", np.arange(3.0), dims="row"), pm.Data("shift", 2.0)
        mu, scale = pm.Normal("1|mu"), pm.HalfNormal("scale", shape=2)
        mean = pm.Deterministic("mean", mu * x, dims="row")
        pm.Deterministic("large", (scale > 1).sum())
        pm.Deterministic("is_large", scale > 1)
        pm.Normal("y", mean + shift, scale[0], observed=[1.0, 2, 3], dims="row")
    return model


def described(group):
    """Return the variables of a group with dtypes and dimensions, and the coordinates."""
    variables = {k: (str(v.dtype), v.dims, v.shape[2:]) for k, v in group.data_vars.items()}
    return variables, {k: v.values.tolist() for k, v in group.coords.items()}


@pytest.fixture(scope="module")
def own(model):
    return pm.sample(
        **FEW,
        model=model,
        nuts_sampler="pymc",
        compile_kwargs={"mode": "ONNX"},
        idata_kwargs={"include_transformed": True},
        discard_tuned_samples=False,
        compute_convergence_checks=False,
    )


@pytest.mark.parametrize("nuts_sampler", SAMPLERS)
def test_the_tree_is_that_of_pymc(model, own, nuts_sampler):
    with model:
        found = sample(
            **FEW,
            nuts_sampler=nuts_sampler,
            idata_kwargs={"include_transformed": True, "log_likelihood": True, "log_prior": True},
            discard_tuned_samples=False,
        )
    added = {"log_likelihood", "log_prior"}
    assert set(found.children) == set(own.children) | added
    for group in ("posterior", "warmup_posterior", "observed_data", "constant_data"):
        assert described(found[group]) == described(own[group])
        assert list(found[group].data_vars) == list(own[group].data_vars)
    assert set(found["sample_stats"].data_vars) >= {*STATISTICS, "reached_max_treedepth"}
    assert found.posterior.attrs["tuning_steps"] == 100
    assert found.posterior.attrs["inference_library"] == nuts_sampler
    terms = pm.compute_log_likelihood(
        found, model=model, progressbar=False, extend_inferencedata=False
    )
    np.testing.assert_allclose(found["log_likelihood"]["y"], terms["y"], rtol=1e-10)
    np.testing.assert_allclose(found.posterior["mean"][..., 2], 2 * found.posterior["1|mu"])


def test_seeds_names_and_initial_values_are_taken(model):
    few = {**FEW, "draws": 100, "tune": 0, "model": model, "compute_convergence_checks": False}
    first = sample(**few, var_names=["mean", "scale"], initvals={"1|mu": 50.0})
    again = sample(**few, var_names=["mean", "scale"], initvals={"1|mu": 50.0})
    assert list(first.posterior.data_vars) == ["scale", "mean"]
    assert "warmup_posterior" not in first.children
    np.testing.assert_array_equal(first.posterior["mean"], again.posterior["mean"])
    assert float(abs(first.posterior["mean"][:, 0, 1] - 50.0).max()) < 10.0


def mean_of_mu(model, **further):
    few = {**FEW, "quiet": True, "compute_convergence_checks": False, **further}
    return float(sample(**few, model=model).posterior["mu"].mean())


def test_nutpie_takes_what_was_compiled_while_model_and_data_are_the_same(monkeypatch):
    made = []
    compiled = nutpie_models.nutpie_model
    monkeypatch.setattr(
        nutpie_models, "nutpie_model", lambda *a, **k: made.append(1) or compiled(*a, **k)
    )
    with pm.Model() as model:
        x = pm.Data("x", [1.0, 2.0])
        mu = pm.Normal("mu", 0, 10)
        pm.Normal("y", mu, 0.01, observed=x)
    assert mean_of_mu(model) == mean_of_mu(model)
    assert len(made) == 1
    starts = [mean_of_mu(model, initvals={"mu": start}, tune=0, draws=1) for start in (50.0, 90.0)]
    assert starts[1] > starts[0] + 1
    assert len(made) == 1
    x.set_value(np.array([5.0, 6.0]))
    assert abs(mean_of_mu(model) - 5.5) < 0.1
    with model:
        pm.Potential("prior", -1e6 * (mu - 4.0) ** 2)
    assert abs(mean_of_mu(model) - 4.0) < 0.1
    assert len(made) == 3
    alive = weakref.ref(model)
    del model, mu, x
    gc.collect()
    assert alive() is None


def test_discrete_variables_and_arguments_of_step_methods_are_for_pymc():
    with pm.Model() as model:
        count, rate = pm.Poisson("count", 3.0), pm.Gamma("rate", 2.0, 1.0)
        pm.Normal("y", count * rate, 1.0, observed=[6.0])
    found = sample(**FEW, model=model, compute_convergence_checks=False)
    assert found.posterior["count"].dtype == np.int64
    assert found.posterior.attrs["inference_library"] == "pymc"
    with pm.Model() as model:
        pm.Normal("x")
    found = sample(**FEW, model=model, init="adapt_diag", compute_convergence_checks=False)
    assert found.posterior.attrs["inference_library"] == "pymc"


@pytest.mark.filterwarnings("ignore:operations that cannot be converted")
def test_black_boxes_are_for_pymc():
    @wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
    def log_likelihood(a):
        return np.asarray(-10 * (a - 1) ** 2)

    with pm.Model():
        a = pm.Normal("a")
        pm.Potential("y", log_likelihood(a))
        few = {**FEW, "compute_convergence_checks": False}
        posterior = sample(**few).posterior["a"]
        with pytest.raises(NotImplementedError, match="log_likelihood"):
            sample(**few, nuts_sampler="nutpie")
    assert abs(float(posterior.mean()) - 20 / 21) < 0.15


@pytest.mark.slow
def test_chains_that_do_not_converge_are_told(caplog):
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3)
        pm.Potential("checked", Assert("too large")(0.0 * x, x < 1.0))
    with caplog.at_level(logging.WARNING, logger="pymc"):
        sample(**FEW, model=model, target_accept=0.6)
    assert "divergences after tuning" in caplog.text


def test_pymcs_own_call_of_nutpie_warns_that_it_leaves_the_mode(model, monkeypatch):
    def compile_in_mode_numba(*arguments, backend, **named):
        raise NotImplementedError(backend)

    monkeypatch.setattr(nutpie, "compile_pymc_model", compile_in_mode_numba)
    arguments = {"model": model, "compile_kwargs": {"mode": "ONNX"}}
    with (
        pytest.warns(UserWarning, match=r"call pytensor_onnx\.pymc\.sample") as warned,
        pytest.raises(NotImplementedError, match="numba"),
    ):
        pm.sample(**FEW, nuts_sampler="nutpie", **arguments)
    assert warned[0].filename == __file__


def test_invalid_arguments_are_refused(model):
    with pytest.raises(ArgumentError, match="no free variable or deterministic 'scales'"):
        sample(model=model, var_names=["scales"])
    with pytest.raises(ArgumentError, match="'init' is for the step methods"):
        sample(model=model, nuts_sampler="nutpie", init="adapt_diag")
    with pytest.raises(ArgumentError, match="nuts_sampler='blackjax'"):
        sample(model=model, nuts_sampler="blackjax")
    with pytest.raises(ArgumentError, match=r"call pymc\.sample for mode NUMBA"):
        sample(model=model, compile_kwargs={"mode": "NUMBA"})
    with pytest.raises(ArgumentError, match="idata_kwargs has 'coords'"):
        sample(model=model, idata_kwargs={"coords": {}})


def test_results_of_a_file_become_the_same_tree(model, own, caplog):
    program = export_sampler(model, unconstrained=True, verify=False)
    results = program(seed=[1, 2], warmup=100, draws=110, x=np.arange(3.0), shift=2.0)
    tree = to_datatree(program, results, model)
    assert described(tree.posterior) == described(own.posterior)
    assert {*STATISTICS, "reached_max_treedepth"} == set(tree.sample_stats.data_vars)
    for group in ("observed_data", "constant_data"):
        assert described(tree[group]) == described(own[group])
    named = dict(zip([v.name for v in program.model.graph.outputs], results, strict=True))
    named["finite_start"] = np.array([True, False])
    with pytest.warns(UserWarning, match="whose draws mean nothing: 1"):
        alone = to_datatree(program, named)
    assert described(alone.posterior) == described(tree.posterior)
    assert set(alone.children) == {"posterior", "sample_stats"}
    other = export_logp(model, verify=False)
    with pytest.raises(ArgumentError, match="draws from no posterior"):
        to_datatree(other, results)
