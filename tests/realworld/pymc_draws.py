"""One case of every distribution of PyMC that can be drawn."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

COV = np.array([[2.0, 0.6, 0.3], [0.6, 1.0, 0.2], [0.3, 0.2, 0.5]])
ROOT = np.linalg.cholesky(COV)
W = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], float)
POINTS = np.linspace(-2, 3, 60)

DISTRIBUTIONS = {
    "AR": lambda: pm.AR.dist([0.3, 0.2], sigma=0.5, init_dist=pm.Normal.dist(size=2), steps=3),
    "AsymmetricLaplace": lambda: pm.AsymmetricLaplace.dist(b=1.5, kappa=0.7, mu=0.3),
    "Bernoulli": lambda: pm.Bernoulli.dist(0.3),
    "Beta": lambda: pm.Beta.dist(0.7, 2.0),
    "BetaBinomial": lambda: pm.BetaBinomial.dist(n=20, alpha=0.7, beta=2.0),
    "Binomial": lambda: pm.Binomial.dist(n=30, p=0.4),
    "CAR": lambda: pm.CAR.dist(mu=np.arange(4.0), W=W, alpha=0.4, tau=2.0),
    "Categorical": lambda: pm.Categorical.dist([0.2, 0.5, 0.3]),
    "Cauchy": lambda: pm.Cauchy.dist(1.0, 2.0),
    "Censored": lambda: pm.Censored.dist(pm.Normal.dist(0.0, 1.0), -0.5, 1.0),
    "ChiSquared": lambda: pm.ChiSquared.dist(3.0),
    "DiracDelta": lambda: pm.DiracDelta.dist(2.5),
    "Dirichlet": lambda: pm.Dirichlet.dist([0.5, 1.0, 3.0]),
    "DirichletMultinomial": lambda: pm.DirichletMultinomial.dist(n=12, a=[0.5, 1.0, 3.0]),
    "DiscreteUniform": lambda: pm.DiscreteUniform.dist(-2, 4),
    "DiscreteWeibull": lambda: pm.DiscreteWeibull.dist(0.9, 1.2),
    "EulerMaruyama": lambda: pm.EulerMaruyama.dist(
        0.1, lambda x, a: (-a * x, 0.5), [0.4], init_dist=pm.Normal.dist(), steps=3
    ),
    "ExGaussian": lambda: pm.ExGaussian.dist(mu=0.3, sigma=1.2, nu=0.8),
    "Exponential": lambda: pm.Exponential.dist(2.0),
    "GARCH11": lambda: pm.GARCH11.dist(0.2, 0.3, 0.4, initial_vol=1.0, steps=3),
    "Gamma": lambda: pm.Gamma.dist(0.6, 2.0),
    "GaussianRandomWalk": lambda: pm.GaussianRandomWalk.dist(
        0.1, 0.5, init_dist=pm.Normal.dist(), steps=3
    ),
    "Geometric": lambda: pm.Geometric.dist(0.2),
    "Gumbel": lambda: pm.Gumbel.dist(0.3, 1.2),
    "HalfCauchy": lambda: pm.HalfCauchy.dist(1.2),
    "HalfNormal": lambda: pm.HalfNormal.dist(1.2),
    "HalfStudentT": lambda: pm.HalfStudentT.dist(nu=3.0, sigma=1.2),
    "HurdleGamma": lambda: pm.HurdleGamma.dist(psi=0.7, alpha=2.0, beta=1.0),
    "HurdleLogNormal": lambda: pm.HurdleLogNormal.dist(psi=0.7, mu=0.1, sigma=0.8),
    "HurdleNegativeBinomial": lambda: pm.HurdleNegativeBinomial.dist(psi=0.7, mu=3.0, alpha=2.0),
    "HurdlePoisson": lambda: pm.HurdlePoisson.dist(psi=0.7, mu=3.0),
    "HyperGeometric": lambda: pm.HyperGeometric.dist(N=60, k=25, n=30),
    "Interpolated": lambda: pm.Interpolated.dist(POINTS, np.exp(-(POINTS**2) / 2)),
    "InverseGamma": lambda: pm.InverseGamma.dist(3.0, 2.0),
    "KroneckerNormal": lambda: pm.KroneckerNormal.dist(
        np.zeros(6), covs=[COV[:2, :2], COV], sigma=0.3
    ),
    "Kumaraswamy": lambda: pm.Kumaraswamy.dist(0.7, 2.0),
    "LKJCorr": lambda: pm.LKJCorr.dist(n=3, eta=1.5),
    "LKJCholeskyCov": lambda: pm.LKJCholeskyCov.dist(
        n=3, eta=1.5, sd_dist=pm.Exponential.dist(1.0), compute_corr=False
    ),
    "Laplace": lambda: pm.Laplace.dist(0.3, 1.2),
    "LogNormal": lambda: pm.LogNormal.dist(0.3, 0.8),
    "Logistic": lambda: pm.Logistic.dist(0.3, 1.2),
    "LogitNormal": lambda: pm.LogitNormal.dist(0.3, 0.8),
    "MatrixNormal": lambda: pm.MatrixNormal.dist(
        mu=np.zeros((2, 3)), rowchol=ROOT[:2, :2], colchol=ROOT
    ),
    "Mixture": lambda: pm.Mixture.dist(
        [0.3, 0.7], [pm.Normal.dist(-2.0, 0.5), pm.Gamma.dist(2.0, 1.0)]
    ),
    "Moyal": lambda: pm.Moyal.dist(0.3, 1.2),
    "Multinomial": lambda: pm.Multinomial.dist(n=12, p=[0.2, 0.5, 0.3]),
    "MvNormal": lambda: pm.MvNormal.dist(np.arange(3.0), COV),
    "MvStudentT": lambda: pm.MvStudentT.dist(nu=4.0, mu=np.arange(3.0), scale=COV),
    "NegativeBinomial": lambda: pm.NegativeBinomial.dist(mu=3.0, alpha=2.0),
    "Normal": lambda: pm.Normal.dist(0.3, 1.2),
    "NormalMixture": lambda: pm.NormalMixture.dist([0.3, 0.7], [-2.0, 1.0], [0.5, 1.0]),
    "OrderedLogistic": lambda: pm.OrderedLogistic.dist(0.2, [-1.0, 0.5, 2.0], compute_p=False),
    "OrderedProbit": lambda: pm.OrderedProbit.dist(0.2, [-1.0, 0.5, 2.0], compute_p=False),
    "Pareto": lambda: pm.Pareto.dist(3.0, 1.2),
    "Poisson": lambda: pm.Poisson.dist(13.0),
    "Rice": lambda: pm.Rice.dist(1.2, 0.7),
    "SkewNormal": lambda: pm.SkewNormal.dist(mu=0.3, sigma=1.2, alpha=-2.0),
    "SkewStudentT": lambda: pm.SkewStudentT.dist(a=2.0, b=4.0, mu=0.3, sigma=1.2),
    "StickBreakingWeights": lambda: pm.StickBreakingWeights.dist(1.5, 4),
    "StudentT": lambda: pm.StudentT.dist(nu=3.0, mu=0.3, sigma=1.2),
    "Triangular": lambda: pm.Triangular.dist(-1.0, 2.0, 0.5),
    "Truncated": lambda: pm.Truncated.dist(pm.Gamma.dist(2.0, 1.0), 0.5, 3.0),
    "TruncatedNormal": lambda: pm.TruncatedNormal.dist(0.3, 1.2, lower=1.0, upper=6.0),
    "Uniform": lambda: pm.Uniform.dist(-1.0, 2.0),
    "VonMises": lambda: pm.VonMises.dist(0.3, 2.0),
    "Wald": lambda: pm.Wald.dist(mu=1.2, lam=2.0, alpha=0.4),
    "Weibull": lambda: pm.Weibull.dist(1.7, 1.2),
    "Wishart": lambda: pm.Wishart.dist(nu=5, V=COV),
    "ZeroInflatedBinomial": lambda: pm.ZeroInflatedBinomial.dist(0.7, 10, 0.4),
    "ZeroInflatedNegativeBinomial": lambda: pm.ZeroInflatedNegativeBinomial.dist(
        0.7, mu=3.0, alpha=2.0
    ),
    "ZeroInflatedPoisson": lambda: pm.ZeroInflatedPoisson.dist(0.7, 3.0),
    "ZeroSumNormal": lambda: pm.ZeroSumNormal.dist(1.2, shape=4),
    "CustomDist": lambda: pm.CustomDist.dist(
        0.5, dist=lambda a, size: pt.exp(pm.Normal.dist(a, 1.0, size=size))
    ),
}

NOT_TRIED = {
    "DensityDist": "another name of CustomDist",
    "Flat": "has no draws in PyMC",
    "HalfFlat": "has no draws in PyMC",
    "ICAR": "has no draws in PyMC",
    "Lognormal": "another name of LogNormal",
    "MvGaussianRandomWalk": "a RandomWalk of MvNormal steps",
    "MvStudentTRandomWalk": "a RandomWalk of MvStudentT steps",
    "OrderedMultinomial": "a Multinomial with the probabilities of OrderedLogistic",
    "PolyaGamma": "PyMC draws it by a package; see tests/functions/random/test_polya_gamma.py",
    "RandomWalk": "drawn as GaussianRandomWalk",
    "Simulator": "draws by a Python function",
    "WishartBartlett": "a function that makes a model of Normal and ChiSquared",
}
