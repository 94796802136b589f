"""Draws of exported samplers agree with those of PyMC's sampler, and are calibrated."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")

from arviz_stats.base import array_stats  # noqa: E402

from pytensor_onnx.pymc import export_sampler  # noqa: E402
from tests.pymc.posteriors import COVARIANCE, POSTERIORS  # noqa: E402

pytestmark = [pytest.mark.sweep, pytest.mark.filterwarnings("ignore::FutureWarning")]
CHAINS, WARMUP, DRAWS = 4, 1000, 2000


def sampled(model: pm.Model, **inputs: Any) -> dict[str, np.ndarray]:
    program = export_sampler(model)
    names = [value.name for value in program.model.graph.outputs]
    data = {str(v.name): v.get_value() for v in model.data_vars}
    return dict(zip(names, program(**inputs, **data), strict=True))


def moments(draws: np.ndarray) -> list[tuple[float, float]]:
    """Return mean and variance, each with its Monte Carlo standard error."""
    found = []
    for values in (draws, (draws - draws.mean()) ** 2):
        size = array_stats.ess(values, method="mean")
        found.append((values.mean(), values.std() / np.sqrt(size)))
    return found


def elements(draws: np.ndarray) -> list[np.ndarray]:
    return list(np.moveaxis(draws.reshape(*draws.shape[:2], -1), -1, 0))


@pytest.mark.parametrize("name", POSTERIORS)
def test_moments_are_those_of_the_sampler_of_pymc(name: str) -> None:
    model = POSTERIORS[name]()
    drawn = sampled(model, seed=np.arange(CHAINS), warmup=WARMUP, draws=DRAWS)
    assert drawn["finite_start"].all()
    assert drawn["diverging"].mean() < 0.005
    reference = None
    if name != "correlated_normal":
        with model:
            reference = pm.sample(
                DRAWS, tune=WARMUP, chains=CHAINS, cores=1, random_seed=1, progressbar=False
            ).posterior
    worst = 0.0
    for variable in model.free_RVs:
        for i, draws in enumerate(elements(drawn[variable.name])):
            assert array_stats.rhat(draws) < 1.01, (variable, i)
            if reference is None:
                expected = [(0.0, 0.0), (COVARIANCE[i, i], 0.0)]
            else:
                expected = moments(elements(reference[variable.name].values)[i])
            for (value, error), (wanted, other) in zip(moments(draws), expected, strict=True):
                worst = max(worst, abs(value - wanted) / np.hypot(error, other))
    assert worst < 4


def test_ranks_of_the_truth_are_uniform() -> None:
    """Simulation-based calibration (S. Talts et al., arXiv:1804.06788), one chain a data set."""
    n_sets, n_draws, n_rows = 400, 63, 6
    with pm.Model() as model:
        y = pm.Data("y", np.zeros(n_rows))
        mu, sigma = pm.Normal("mu", 0, 2), pm.Gamma("sigma", 3, 2)
        skew = pm.Exponential("skew", 1)
        pm.Gumbel("observed", mu, sigma + skew, observed=y)
    program = export_sampler(model, variables=["mu", "sigma", "skew"])
    rng = np.random.default_rng(8)
    ranks = []
    for seed in range(n_sets):
        truth = rng.normal(0, 2), rng.gamma(3, 0.5), rng.exponential()
        rows = rng.gumbel(truth[0], truth[1] + truth[2], n_rows)
        draws = program(seed=[seed], warmup=300, draws=5 * n_draws, y=rows)[:3]
        ranks.append([(x[0, ::5] < value).sum() for x, value in zip(draws, truth, strict=True)])
    for column in np.array(ranks).T:
        counts = np.histogram(column, bins=16, range=(0, n_draws + 1))[0]
        assert stats.chisquare(counts).pvalue > 1e-3
