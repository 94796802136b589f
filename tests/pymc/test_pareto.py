"""Smoothed weights beside those of ArviZ."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp

from pytensor_onnx.pymc.pareto import pareto_smoothed


@pytest.fixture(scope="module")
def smoothed():
    x = pt.vector("x")
    return pytensor.function([x], pareto_smoothed(x), mode="ONNX")


@pytest.mark.parametrize("n", [25, 26, 30, 99, 224, 225, 226, 1000, 4001])
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 3.0, 30.0])
def test_weights_and_shape_are_those_of_arviz(smoothed, n, scale):
    rng = np.random.default_rng(n)
    for ratios in (scale * rng.normal(size=n), scale * rng.exponential(size=n) + 700.0):
        weights, k = smoothed(ratios)
        # ArviZ takes log-likelihoods, whose negatives are the log ratios.
        expected, known = array_stats.psislw(-ratios)
        np.testing.assert_allclose(k, known, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=1e-10)


def test_draws_without_weight_stay_without(smoothed):
    ratios = np.random.default_rng(1).normal(size=500)
    ratios[::3] = -np.inf
    weights, k = smoothed(ratios)
    expected, known = array_stats.psislw(-ratios)
    np.testing.assert_allclose(k, known, rtol=1e-10)
    np.testing.assert_allclose(weights, expected, rtol=1e-10)


def test_equal_weights_have_the_shape_zero(smoothed):
    ratios = 5.0 + 1e-13 * np.random.default_rng(2).normal(size=1000)
    weights, k = smoothed(ratios)
    assert k == 0
    np.testing.assert_allclose(weights, -np.log(1000), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 24])
def test_few_draws_are_not_smoothed(smoothed, n):
    ratios = np.random.default_rng(3).normal(size=n)
    weights, k = smoothed(ratios)
    assert np.isnan(k)
    assert weights.shape == (n,)
    if n:
        np.testing.assert_allclose(weights, ratios - logsumexp(ratios), rtol=1e-12, atol=1e-12)


def test_ratios_that_are_not_numbers_give_no_weights(smoothed):
    weights, k = smoothed(np.full(100, np.nan))
    assert np.isnan(weights).all()
    assert np.isnan(k)
