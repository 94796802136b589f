"""Draws from the distributions of PyMC are those of PyMC in distribution."""

import warnings

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.shape_utils import change_dist_size
from scipy import stats

from tests.pymc.test_draws import DISTRIBUTIONS as PREDICTED
from tests.realworld.pymc_draws import DISTRIBUTIONS, NOT_TRIED, W

N = 4000
LEVEL = 1e-4
BASES = {"Continuous", "Discrete", "Distribution", "SymbolicRandomVariable"}


def test_every_distribution_is_drawn_or_has_a_reason():
    assert set(pm.distributions.__all__) == DISTRIBUTIONS.keys() | NOT_TRIED.keys() | BASES


def draw(name, mode, seed):
    batch = change_dist_size(DISTRIBUTIONS[name](), N)
    return pm.compile([], batch, mode=mode, random_seed=seed)()


# PyMC's draws of CAR have the covariance of another distribution than its density.
NAMES = sorted(DISTRIBUTIONS.keys() - {"CAR"})


# Predictors draw most of them by the same definitions, with parameters that vary.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.sweep if name in PREDICTED else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_draws_are_those_of_pymc_in_distribution(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = draw(name, "ONNX", 1), draw(name, "FAST_COMPILE", 2)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    x, y = (v.reshape(N, -1).astype("float64") for v in (found, expected))
    for ours, theirs in zip(x.T, y.T, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > LEVEL
    moving = x.std(axis=0) > 0
    if moving.sum() > 1:
        ranks = [stats.rankdata(v[:, moving], axis=0) for v in (x, y)]
        ours, theirs = (np.corrcoef(v.T) for v in ranks)
        assert np.abs(ours - theirs).max() < 5 * np.sqrt(2 / N)


def test_conditional_autoregressions_have_the_precision_of_their_density():
    x = draw("CAR", "ONNX", 1)
    precision = 2.0 * (np.diag(W.sum(axis=0)) - 0.4 * W)
    white = np.linalg.cholesky(precision).T @ (x - np.arange(4.0)).T
    assert np.abs(np.cov(white) - np.eye(4)).max() < 5 * np.sqrt(2 / N)
