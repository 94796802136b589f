"""Single transitions: the chain of a sampler's file, and posteriors that are known."""

import numpy as np
import pymc as pm
import pytest

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.pymc import export_sampler, export_step


def schools() -> pm.Model:
    with pm.Model() as model:
        y = pm.Data("y", np.array([28.0, 8, -3, 7, -1, 1, 18, 12]))
        sd = pm.Data("sd", np.array([15.0, 10, 16, 11, 9, 11, 10, 18]))
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", 0, 1, shape=8)
        pm.Normal("obs", mu + tau * theta, sd, observed=y)
    return model


DATA = {
    "y": np.array([20.0, 8, -3, 7, -1, 1, 18, 12]),
    "sd": np.array([15.0, 10, 16, 11, 9, 11, 10, 20]),
}


def names_of(program: ONNXProgram) -> list[str]:
    return [str(output.name) for output in program.model.graph.outputs]


def called(program: ONNXProgram, **given: object) -> dict[str, np.ndarray]:
    return dict(zip(names_of(program), program(**given), strict=True))


@pytest.mark.slow
def test_steps_of_nuts_are_those_of_the_sampler() -> None:
    model = schools()
    sampler = export_sampler(model, state=True, unconstrained=True, verify=False)
    step = export_step(model)
    empty = np.zeros((0, 3 * 10 + 3))
    first = called(sampler, seed=[7], warmup=300, draws=0, state=empty, **DATA)
    row = first["next_state"]
    rest = called(sampler, seed=[7], warmup=0, draws=30, state=row, **DATA)
    (x, _, scale), (_, log_step, count) = row[0, :-3].reshape(3, 10), row[0, -3:]
    point, state = x, np.array([7, int(count)])
    for i in range(30):
        found = called(
            step, point=point, state=state, scale=scale, step_size=np.exp(log_step), **DATA
        )
        point, state = found["next_point"], found["next_state"]
        np.testing.assert_array_equal(point, rest["point"][0, i])
        for name in ("n_steps", "tree_depth", "energy", "lp"):
            assert found[name] == rest[name][0, i]
        # The sums of the two files are taken in orders of their own.
        np.testing.assert_allclose(
            found["acceptance_rate"], rest["acceptance_rate"][0, i], rtol=1e-14
        )
    assert state.tolist() == [7, int(count) + 30]


@pytest.mark.slow
def test_steps_have_the_posterior_of_pymc() -> None:
    model = schools()
    with model:
        trace = pm.sample(
            2000, chains=2, cores=1, random_seed=1, progressbar=False, target_accept=0.9
        )
    exact = np.stack([trace.posterior["mu"], np.log(trace.posterior["tau"])]).reshape(2, -1)
    step = export_step(model, data="stored")
    scale = np.concatenate([exact.std(axis=1), np.ones(8)])
    point, state = np.zeros(10), np.array([11, 0])
    draws = []
    for _ in range(6000):
        point, state, *_ = step(point, state, scale=scale, step_size=0.35)
        draws.append(point[:2])
    found = np.array(draws[200:]).T
    np.testing.assert_allclose(found.mean(1), exact.mean(1), atol=0.25)
    np.testing.assert_allclose(found.std(1), exact.std(1), rtol=0.12)


def normals() -> tuple[pm.Model, np.ndarray]:
    """Return a model whose posterior is normal, and its covariance."""
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    with pm.Model() as model:
        pm.MvNormal("x", np.array([1.0, -2.0]), covariance)
    return model, covariance


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nuts", "hmc"])
def test_draws_have_the_moments_of_a_normal_posterior(method: str) -> None:
    model, covariance = normals()
    step = export_step(model, method=method)
    further = {} if method == "nuts" else {"leapfrog_steps": 7}
    point, state = np.zeros(2), np.array([3, 0])
    draws, accepted = [], []
    for _ in range(4000):
        found = called(
            step,
            point=point,
            state=state,
            scale=np.sqrt(np.diag(covariance)),
            step_size=0.5,
            **further,
        )
        point, state = found["next_point"], found["next_state"]
        draws.append(point)
        accepted.append(found["acceptance_rate"])
    kept = np.array(draws[100:])
    np.testing.assert_allclose(kept.mean(0), [1.0, -2.0], atol=0.15)
    np.testing.assert_allclose(np.cov(kept.T), covariance, rtol=0.15, atol=0.08)
    assert 0.6 < np.mean(accepted) <= 1.0


def test_hmc_takes_its_steps_unless_it_diverges() -> None:
    model, _ = normals()
    step = export_step(model, method="hmc")
    given = {"point": [0.5, -1.0], "state": [1, 0], "scale": [1.0, 1.0]}
    found = called(step, step_size=0.1, leapfrog_steps=5, **given)
    assert found["n_steps"] == 5
    assert not found["diverging"]
    far = called(step, step_size=1e4, leapfrog_steps=5, **given)
    assert far["diverging"]
    assert far["n_steps"] == 1
    assert far["next_point"].tolist() == given["point"]
    assert far["next_state"].tolist() == [1, 1]


def test_wrong_arguments_are_refused() -> None:
    model, _ = normals()
    with pytest.raises(ArgumentError, match="method"):
        export_step(model, method="gibbs")
    with pytest.raises(ArgumentError, match="max_tree_depth"):
        export_step(model, max_tree_depth=0)
