"""Predictors draw each distribution of PyMC as PyMC does."""

from collections.abc import Callable, Iterator

import numpy as np
import pytensor
import pytest
from scipy import stats

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402
from pymc.pytensorf import compile as compile_pymc  # noqa: E402

from pytensor_onnx.pymc import export_predictor  # noqa: E402

Make = Callable[[pt.TensorVariable, pt.TensorVariable], pt.TensorVariable]
NEIGHBOURS = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
N = 1000

# Of a real number m and a positive one s, which differ from draw to draw.
DISTRIBUTIONS: dict[str, Make] = {
    "Poisson": lambda m, s: pm.Poisson.dist(s),
    "NegativeBinomial": lambda m, s: pm.NegativeBinomial.dist(mu=s, alpha=2.0),
    "Bernoulli": lambda m, s: pm.Bernoulli.dist(logit_p=m),
    "Categorical": lambda m, s: pm.Categorical.dist(logit_p=pt.stack([m, 0.0, s])),
    "OrderedLogistic": lambda m, s: pm.OrderedLogistic.dist(m, [-1.0, 0.5]),
    "Gamma": lambda m, s: pm.Gamma.dist(alpha=2.0, beta=s),
    "InverseGamma": lambda m, s: pm.InverseGamma.dist(alpha=2.0, beta=s),
    "StudentT": lambda m, s: pm.StudentT.dist(nu=4, mu=m, sigma=s),
    "HalfStudentT": lambda m, s: pm.HalfStudentT.dist(nu=4, sigma=s),
    "Beta": lambda m, s: pm.Beta.dist(2, s),
    "Binomial": lambda m, s: pm.Binomial.dist(n=10, logit_p=m),
    "LogNormal": pm.LogNormal.dist,
    "Censored": lambda m, s: pm.Censored.dist(pm.Normal.dist(m, s), -1, 1),
    "TruncatedNormal": lambda m, s: pm.TruncatedNormal.dist(m, s, lower=0),
    "Truncated": lambda m, s: pm.Truncated.dist(pm.Gamma.dist(2.0, s), upper=3.0),
    "ZeroInflatedPoisson": lambda m, s: pm.ZeroInflatedPoisson.dist(psi=0.5, mu=s),
    "HurdleGamma": lambda m, s: pm.HurdleGamma.dist(psi=0.5, alpha=2.0, beta=s),
    "Weibull": lambda m, s: pm.Weibull.dist(2.0, s),
    "SkewNormal": lambda m, s: pm.SkewNormal.dist(mu=m, sigma=s, alpha=2.0),
    "SkewStudentT": lambda m, s: pm.SkewStudentT.dist(1, 2, mu=m, sigma=s),
    "ExGaussian": lambda m, s: pm.ExGaussian.dist(mu=m, sigma=s, nu=2.0),
    "VonMises": lambda m, s: pm.VonMises.dist(0, s),
    "Wald": lambda m, s: pm.Wald.dist(mu=s, lam=1.0),
    "Exponential": lambda m, s: pm.Exponential.dist(s),
    "Laplace": pm.Laplace.dist,
    "AsymmetricLaplace": lambda m, s: pm.AsymmetricLaplace.dist(1.0, m, s),
    "Gumbel": pm.Gumbel.dist,
    "Moyal": pm.Moyal.dist,
    "Rice": lambda m, s: pm.Rice.dist(s, 1),
    "Triangular": lambda m, s: pm.Triangular.dist(0, s, 0.1),
    "Pareto": lambda m, s: pm.Pareto.dist(2.0, s),
    "Kumaraswamy": lambda m, s: pm.Kumaraswamy.dist(2, s),
    "Interpolated": lambda m, s: pm.Interpolated.dist(np.linspace(-1, 1, 5), np.arange(1.0, 6.0)),
    "DiscreteWeibull": lambda m, s: pm.DiscreteWeibull.dist(0.5, s),
    "BetaBinomial": lambda m, s: pm.BetaBinomial.dist(2, s, n=10),
    "HyperGeometric": lambda m, s: pm.HyperGeometric.dist(N=50, k=10, n=20),
    "NormalMixture": lambda m, s: pm.NormalMixture.dist([0.3, 0.7], [-3.0, 3.0], s),
    "Dirichlet": lambda m, s: pm.Dirichlet.dist(s * np.ones(3)),
    "StickBreakingWeights": lambda m, s: pm.StickBreakingWeights.dist(s, K=3),
    "Multinomial": lambda m, s: pm.Multinomial.dist(10, pm.math.softmax(pt.stack([m, 0, s]))),
    "DirichletMultinomial": lambda m, s: pm.DirichletMultinomial.dist(10, s * np.ones(3)),
    "MvNormal": lambda m, s: pm.MvNormal.dist(m * np.ones(3), s * np.eye(3)),
    "MvStudentT": lambda m, s: pm.MvStudentT.dist(nu=3, mu=m * np.ones(3), scale=s * np.eye(3)),
    "ZeroSumNormal": lambda m, s: pm.ZeroSumNormal.dist(s, support_shape=(3,)),
    "MatrixNormal": lambda m, s: pm.MatrixNormal.dist(
        mu=m * np.ones((2, 3)), rowcov=s * np.eye(2), colcov=np.eye(3)
    ),
    "KroneckerNormal": lambda m, s: pm.KroneckerNormal.dist(
        mu=m * np.ones(4), covs=[s * np.eye(2), np.eye(2)]
    ),
    "Wishart": lambda m, s: pm.Wishart.dist(nu=5, V=np.eye(3) * s),
    "LKJCholeskyCov": lambda m, s: pm.LKJCholeskyCov.dist(
        n=3, eta=2.0, sd_dist=pm.Exponential.dist(s), compute_corr=False
    ),
    "CAR": lambda m, s: pm.CAR.dist(m * np.ones(3), NEIGHBOURS, 0.5, s),
    "AR": lambda m, s: pm.AR.dist([0.5], s, init_dist=pm.Normal.dist(m, 1, shape=1), steps=3),
    "GARCH11": lambda m, s: pm.GARCH11.dist(s, 0.2, 0.4, 1.0, steps=4),
    "GaussianRandomWalk": lambda m, s: pm.GaussianRandomWalk.dist(
        mu=m, sigma=s, init_dist=pm.Normal.dist(), steps=4
    ),
}


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_of_a_predictor_have_the_distribution(name: str) -> None:
    rng = np.random.default_rng(0)
    posterior = {"m": 0.5 * rng.normal(size=(1, N)), "s": 0.5 + rng.random((1, N))}
    with pm.Model() as model:
        m, s = pm.Normal("m"), pm.HalfNormal("s")
        y = model.register_rv(DISTRIBUTIONS[name](m, s), "y")
    program = export_predictor(model, posterior, outputs=["y"], sample_vars=["y"], verify=False)
    found = np.asarray(program(seed=5)[0], "float64").reshape(N, -1)
    draw = compile_pymc([m, s], y, on_unused_input="ignore", random_seed=3)
    pairs = zip(posterior["m"][0], posterior["s"][0], strict=True)
    expected = np.array([draw(*pair) for pair in pairs], "float64").reshape(N, -1)
    assert found.shape == expected.shape
    for a, b in zip(found.T, expected.T, strict=True):
        assert stats.ks_2samp(a, b).pvalue > 1e-4


@pytest.mark.slow
def test_a_model_of_minibatches_is_drawn_in_mode_onnx() -> None:
    data = np.random.default_rng(0).normal(3.0, 1.0, size=(50, 2))
    with pm.Model():
        batch = pm.Minibatch(data, batch_size=8)
        pm.Normal("y", pm.Normal("mu", 3.0, 0.1, shape=2), 1.0, observed=batch, total_size=50)
        draws = pm.sample_prior_predictive(40, random_seed=1, compile_kwargs={"mode": "ONNX"})
    found = draws.prior_predictive["y"].to_numpy()
    assert found.shape == (1, 40, 8, 2)
    assert abs(found.mean() - 3.0) < 0.2  # 640 draws with deviation 1
