"""Simulation-based calibration."""

import numpy as np
import pymc as pm
import pytest

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc import Calibration, calibrate


def regression():
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(-2, 2, 20))
        slopes, sigma = pm.Normal("slopes", shape=2), pm.HalfNormal("sigma")
        pm.Normal("y", slopes[0] + slopes[1] * x, sigma, observed=np.zeros(20))
    return model


def rates():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("counts", rate, observed=pm.Data("counts_seen", np.zeros(10, int)))
    return model


def groups():
    with pm.Model(coords={"group": list("abcde")}) as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        z = pm.Normal("z", dims="group")
        pm.Normal("y", mu + tau * z, 0.5, observed=np.zeros(5), dims="group")
    return model


def test_ranks_are_equally_frequent_and_reproducible():
    found = calibrate(regression(), simulations=40, draws=19, thin=3, warmup=200)
    assert found.is_calibrated
    assert (found.failed, found.draws) == ((), 19)
    assert found.ranks["slopes"].shape == (40, 2)
    assert found.p_values["slopes"].shape == (2,)
    for ranks in found.ranks.values():
        assert 0 <= ranks.min() < ranks.max() <= 19
    again = calibrate(regression(), simulations=40, draws=19, thin=3, warmup=200)
    np.testing.assert_array_equal(again.ranks["sigma"], found.ranks["sigma"])


@pytest.mark.slow
@pytest.mark.parametrize("make", [regression, rates, groups])
def test_models_are_calibrated(make):
    assert calibrate(make(), simulations=300, seed=1).is_calibrated


def test_a_density_that_is_not_that_of_the_draws_is_found():
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Normal("y", a, observed=np.zeros(5))
        pm.Potential("narrow", -3 * a**2)
    found = calibrate(model, simulations=60, draws=19, warmup=200)
    assert not found.is_calibrated


def test_p_values_are_those_of_a_uniform_distribution():
    """A thousand sets of equally probable ranks, of a number that no number of bins divides."""
    ranks = np.random.default_rng(0).integers(0, 23, size=(200, 1000))
    p_values = Calibration({"x": ranks}, 22, (), 0).p_values["x"]
    shares = np.histogram(p_values, bins=5, range=(0, 1))[0] / 1000
    np.testing.assert_allclose(shares, 0.2, atol=0.05)
    assert Calibration({"x": ranks}, 22, (), 0).is_calibrated
    assert not Calibration({"x": ranks // 2}, 22, (), 0).is_calibrated


def test_data_that_are_not_finite_are_left_out():
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1e200)
        pm.Normal("y", 0, scale**2, observed=np.zeros(2))
    found = calibrate(model, simulations=8, draws=5, warmup=50)
    assert len(found.failed) + len(found.ranks["scale"]) == 8
    assert found.failed


def test_computed_data_are_those_of_the_simulations():
    with pm.Model() as model:
        seen = pm.Data("seen", np.ones(3, int))
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("counts", rate, observed=seen)
        pm.Normal("y", rate, observed=2.0 * seen)
    found = calibrate(model, simulations=20, draws=9, warmup=100)
    assert len(found.ranks["rate"]) == 20


def test_models_without_data_and_other_arguments_are_refused():
    with pm.Model() as model:
        pm.Normal("a")
    with pytest.raises(ArgumentError, match="no observed variables"):
        calibrate(model)
    with pytest.raises(ArgumentError, match="draws is 0"):
        calibrate(regression(), draws=0)
