"""A table of all distributions of PyMC: parameters, and points inside, outside and at the edge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

CASES: dict[str, list["Case"]] = {}
"""By the name in `pymc.distributions`."""

NO_DENSITY = {
    "Continuous": "base class",
    "DensityDist": "other name of CustomDist",
    "Discrete": "base class",
    "Distribution": "base class",
    "Lognormal": "other name of LogNormal",
    "SymbolicRandomVariable": "base class",
    "WishartBartlett": "it is a function of other variables",
}
PARTLY = {
    "CustomDist of a Python function": "no graph gives the density; `logp` or `dist` of PyTensor "
    "operations do",
}
"""Uses of a distribution in `CASES` without a density."""
UNSUPPORTED = {
    "PolyaGamma": "PyMC calls a package in C, polyagamma",
    "Simulator": "a Python function simulates, and no graph gives the density",
}
LEVELS = [0.0, 1.0, -0.5, 0.5, 1e-3, 0.9, 1.5, 0.2, 1 - 1e-6]
"""Arguments of quantile functions."""


@dataclass(frozen=True)
class Case:
    """A distribution with parameters and points.

    Attributes
    ----------
    make
        The distribution of symbolic parameters.
    parameters
        Arrays, by name.
    points
        Array of values, which broadcasts with the batch of the parameters.
    label
        What distinguishes it from other cases of the distribution.
    has_cdf
        Whether it is univariate.
    levels
        Arguments of the quantile function.
    """

    make: Callable[..., TensorVariable]
    parameters: dict[str, np.ndarray]
    points: np.ndarray
    label: str = ""
    has_cdf: bool = True
    levels: Sequence[float] = tuple(LEVELS)


def add(
    name: str,
    points: Any,
    make: Callable[..., TensorVariable] | None = None,
    *,
    label: str = "",
    has_cdf: bool = True,
    levels: Sequence[float] = LEVELS,
    **parameters: Any,
) -> None:
    distribution = getattr(pm, name)
    case = Case(
        make=make or distribution.dist,
        parameters={k: np.asarray(v) for k, v in parameters.items()},
        points=np.asarray(points),
        label=label,
        has_cdf=has_cdf,
        levels=levels,
    )
    CASES.setdefault(name, []).append(case)


def univariate(
    name: str,
    points: Sequence[float],
    label: str = "",
    levels: Sequence[float] = LEVELS,
    **columns: Any,
) -> None:
    shape = (len(next(iter(columns.values()))), len(points))
    parameters = {k: np.broadcast_to(np.array(v)[:, None], shape) for k, v in columns.items()}
    add(name, np.broadcast_to(points, shape), label=label, levels=levels, **parameters)


REAL = [-1e3, -7.5, -1.0, -1e-3, 0.0, 0.3, 2.0, 40.0, 1e3]
POSITIVE = [-1.0, 0.0, 1e-6, 0.3, 1.0, 2.5, 30.0, 1e3]
UNIT = [-0.5, 0.0, 1e-6, 0.3, 0.5, 0.9, 1 - 1e-6, 1.0, 1.5]
COUNTS = [-1, 0, 1, 2, 5, 10, 11, 40]

univariate("Uniform", [-3.0, -2.0, 0.0, 0.5, 1.0, 3.0, 4.0], lower=[0.0, -2.0], upper=[1.0, 3.0])
univariate("DiscreteUniform", COUNTS, lower=[0, 2], upper=[10, 2])
add("Flat", REAL)
add("HalfFlat", POSITIVE)
univariate("Normal", REAL, mu=[0.0, -1.5, 30.0], sigma=[1.0, 0.01, 12.0])
univariate("HalfNormal", POSITIVE, sigma=[1.0, 0.1, 20.0])
univariate(
    "TruncatedNormal", REAL, mu=[0.0, 3.0], sigma=[1.0, 2.0], lower=[-1.0, 0.0], upper=[2.0, 50.0]
)
univariate(
    "TruncatedNormal", REAL, "from below", mu=[0.0, -3.0], sigma=[1.0, 0.5], lower=[-1.0, 0.0]
)
univariate(
    "TruncatedNormal",
    REAL,
    "from above",
    LEVELS[1:],  # At 0, PyMC returns a number of rounding errors instead of -inf.
    mu=[0.0, 3.0],
    sigma=[1.0, 0.5],
    upper=[2.0, 2.8],
)
univariate("SkewNormal", REAL, mu=[0.0, 1.0], sigma=[1.0, 3.0], alpha=[2.0, -5.0])
univariate("Beta", UNIT, alpha=[2.0, 0.5, 50.0], beta=[3.0, 0.5, 0.1])
# Not at zero, where the derivative is infinite and PyTensor's NaN.
univariate("Beta", UNIT[2:], "uniform", alpha=[1.0], beta=[1.0])
univariate("Beta", UNIT, "mean", mu=[0.2, 0.7], sigma=[0.1, 0.3])
univariate("Kumaraswamy", UNIT, a=[2.0, 0.5, 1.0], b=[3.0, 0.5, 1.0])
univariate("LogitNormal", UNIT, mu=[0.0, 2.0], sigma=[1.0, 0.3])
univariate("Exponential", POSITIVE, lam=[1.0, 0.01, 20.0])
univariate("Laplace", REAL, mu=[0.0, -1.0], b=[1.0, 20.0])
univariate("AsymmetricLaplace", REAL, kappa=[1.0, 3.0], mu=[0.0, -1.0], b=[1.0, 0.2])
# At 1000, the error of PyTensor's derivative of the distribution function is 1e-9.
univariate("StudentT", REAL[1:-1], nu=[1.0, 3.5, 20.0], mu=[0.0, 1.0, -2.0], sigma=[1.0, 0.2, 9.0])
univariate("HalfStudentT", POSITIVE, nu=[1.0, 3.5, 200.0], sigma=[1.0, 0.2, 9.0])
univariate("SkewStudentT", REAL, a=[1.0, 3.0], b=[2.0, 3.0], mu=[0.0, 1.0], sigma=[1.0, 5.0])
univariate("Cauchy", REAL, alpha=[0.0, 5.0], beta=[1.0, 0.1])
univariate("HalfCauchy", POSITIVE, beta=[1.0, 0.1])
univariate("Gamma", POSITIVE, alpha=[2.0, 0.3, 1.0, 80.0], beta=[1.0, 0.5, 2.0, 9.0])
univariate("InverseGamma", POSITIVE, alpha=[2.0, 0.3, 40.0], beta=[1.0, 0.5, 9.0])
univariate("ChiSquared", POSITIVE, nu=[1.0, 2.0, 7.5])
univariate("LogNormal", POSITIVE, mu=[0.0, 2.0], sigma=[1.0, 0.1])
univariate("Weibull", POSITIVE, alpha=[1.0, 0.5, 4.0], beta=[1.0, 2.0, 9.0])
univariate("Wald", POSITIVE, mu=[1.0, 3.0], lam=[1.0, 0.2], alpha=[0.0, 0.0])
univariate("Wald", POSITIVE, "shifted", mu=[1.0, 3.0], lam=[1.0, 0.2], alpha=[0.2, 1.0])
univariate("Pareto", POSITIVE, alpha=[1.0, 3.0], m=[0.3, 2.0])
# At -1000, terms of 1e6 cancel in the gradient by nu.
univariate("ExGaussian", [-100.0, *REAL[1:]], mu=[0.0, 1.0], sigma=[1.0, 0.3], nu=[1.0, 4.0])
univariate("VonMises", [-4.0, -np.pi, -1.0, 0.0, 2.0, np.pi, 4.0], mu=[0.0, 1.0], kappa=[1.0, 40.0])
univariate("Triangular", UNIT, lower=[0.0, -1.0], c=[0.3, 0.5], upper=[1.0, 1.2])
univariate("Gumbel", REAL, mu=[0.0, 1.0], beta=[1.0, 30.0])
univariate("Logistic", REAL, mu=[0.0, 1.0], s=[1.0, 0.3])
univariate("Moyal", REAL, mu=[0.0, 1.0], sigma=[1.0, 5.0])
univariate("Rice", POSITIVE, nu=[0.5, 3.0], sigma=[1.0, 2.0])
add(
    "Interpolated",
    [-4.0, -3.0, 0.0, 0.9, 3.0, 4.0],
    lambda: pm.Interpolated.dist(np.linspace(-3, 3, 20), np.exp(-(np.linspace(-3, 3, 20) ** 2))),
)
add("DiracDelta", [-1, 0, 2, 3], c=np.array(2))

univariate("Bernoulli", [-1, 0, 1, 2], p=[0.3, 1.0, 1e-9])
univariate("Bernoulli", [-1, 0, 1, 2], "logit", logit_p=[-2.0, 0.0, 40.0])
univariate("Binomial", COUNTS, n=[10, 1, 40], p=[0.3, 0.9, 1e-6])
univariate("Binomial", COUNTS, "logit", n=[10, 40], logit_p=[-2.0, 3.0])
univariate("BetaBinomial", COUNTS, alpha=[1.0, 0.3], beta=[2.0, 9.0], n=[10, 40])
univariate("NegativeBinomial", COUNTS, mu=[3.0, 0.1, 50.0], alpha=[1.0, 0.5, 1e3])
univariate("NegativeBinomial", COUNTS, "n and p", n=[3.0, 1.5], p=[0.3, 0.9])
univariate("Poisson", COUNTS, mu=[3.0, 1e-3, 50.0])
univariate("Geometric", COUNTS, p=[0.3, 1.0, 1e-6])
univariate("DiscreteWeibull", COUNTS, q=[0.3, 0.9], beta=[1.0, 0.5])
univariate("HyperGeometric", COUNTS, N=[50, 20], k=[10, 15], n=[20, 11])
univariate("ZeroInflatedPoisson", COUNTS, psi=[0.3, 0.9], mu=[3.0, 20.0])
univariate("ZeroInflatedBinomial", COUNTS, psi=[0.3, 0.9], n=[10, 40], p=[0.3, 0.9])
univariate("ZeroInflatedNegativeBinomial", COUNTS, psi=[0.3, 0.9], mu=[3.0, 20.0], alpha=[1.0, 9.0])
univariate("HurdlePoisson", COUNTS, psi=[0.3, 0.9], mu=[3.0, 20.0])
univariate("HurdleNegativeBinomial", COUNTS, psi=[0.3, 0.9], mu=[3.0, 20.0], alpha=[1.0, 9.0])
univariate("HurdleGamma", POSITIVE, psi=[0.3, 0.9], alpha=[2.0, 0.5], beta=[1.0, 3.0])
univariate("HurdleLogNormal", POSITIVE, psi=[0.3, 0.9], mu=[0.0, 1.0], sigma=[1.0, 3.0])
# PyMC has these distribution functions for single numbers only.
for count in (-1, 0, 4, 10, 11):
    add("BetaBinomial", count, label="scalar", alpha=1.5, beta=2.0, n=10)
    add("HyperGeometric", count, label="scalar", N=50, k=10, n=20)
add("Categorical", [-1, 0, 1, 2, 3], p=[0.2, 0.3, 0.5])
add("Categorical", [-1, 0, 1, 2, 3], label="logit", logit_p=[-1.0, 0.0, 30.0])
add("OrderedLogistic", [-1, 0, 1, 2, 3], eta=0.3, cutpoints=[-1.0, 2.0])
add("OrderedProbit", [-1, 0, 1, 2, 3], eta=0.3, cutpoints=[-1.0, 2.0], sigma=1.5)

add(
    "Mixture",
    REAL,
    lambda w, mu, beta: pm.Mixture.dist(w, [pm.Normal.dist(mu, 1.0), pm.Gamma.dist(2.0, beta)]),
    w=[0.3, 0.7],
    mu=-1.0,
    beta=0.5,
)
add("NormalMixture", REAL, w=[0.3, 0.7], mu=[-1.0, 5.0], sigma=[1.0, 0.3])
add(
    "Censored",
    REAL,
    lambda mu, sigma, lower, upper: pm.Censored.dist(pm.Normal.dist(mu, sigma), lower, upper),
    mu=0.5,
    sigma=3.0,
    lower=-1.0,
    upper=2.0,
)
add(
    "Truncated",
    POSITIVE,
    lambda alpha, beta, lower, upper: pm.Truncated.dist(pm.Gamma.dist(alpha, beta), lower, upper),
    alpha=2.0,
    beta=0.5,
    lower=0.3,
    upper=2.5,
)
add(
    "Truncated",
    COUNTS,
    lambda mu, upper: pm.Truncated.dist(pm.Poisson.dist(mu), upper=upper),
    label="counts",
    mu=3.0,
    upper=10,
)
add(
    "CustomDist",
    REAL,
    lambda mu: pm.CustomDist.dist(mu, logp=lambda value, mu: -abs(value - mu) - pt.log(2.0)),
    label="logp as a graph",
    has_cdf=False,
    mu=0.5,
)
add(
    "CustomDist",
    REAL,
    lambda mu: pm.CustomDist.dist(mu, dist=lambda mu, size: pt.exp(pm.Normal.dist(mu, size=size))),
    label="dist as a graph",
    mu=0.5,
)


def multivariate(
    name: str, points: Any, make: Any = None, label: str = "", **parameters: Any
) -> None:
    add(name, points, make, label=label, has_cdf=False, **parameters)


A = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])
MU = np.array([0.5, -1.0, 2.0])
ROWS = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.5], [30.0, 1.0, -9.0]])
SIMPLEX = np.array([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5], [0.2, 0.2, 0.2], [-0.5, 0.5, 1.0]])
multivariate("MvNormal", ROWS, mu=MU, cov=A)
multivariate("MvNormal", ROWS, label="chol", mu=MU, chol=np.linalg.cholesky(A))
multivariate("MvNormal", ROWS, label="tau", mu=MU, tau=A)
multivariate("MvStudentT", ROWS, nu=3.5, mu=MU, scale=A)
multivariate("Dirichlet", SIMPLEX, a=[2.0, 0.5, 1.0])
multivariate(
    "StickBreakingWeights",
    [[0.2, 0.3, 0.4, 0.1], [0.2, 0.2, 0.2, 0.2]],
    lambda alpha: pm.StickBreakingWeights.dist(alpha, K=3),
    alpha=1.5,
)
TALLIES = [[2, 3, 5], [0, 0, 10], [1, 1, 1], [-1, 6, 5]]
multivariate("Multinomial", TALLIES, n=10, p=[0.2, 0.3, 0.5])
multivariate("DirichletMultinomial", TALLIES, n=10, a=[2.0, 0.5, 1.0])
multivariate("OrderedMultinomial", TALLIES, eta=0.3, cutpoints=[-1.0, 2.0], n=10)
multivariate("Wishart", [A, np.eye(3), -np.eye(3)], pm.Wishart.dist, nu=5, V=A / 2)
for matrix in (np.eye(3), np.array([[1, 0.5, 0.1], [0.5, 1, -0.2], [0.1, -0.2, 1]])):
    multivariate(
        "LKJCorr", np.linalg.cholesky(matrix), lambda eta: pm.LKJCorr.dist(n=3, eta=eta), eta=2.0
    )
for entries in ([1.0, 0.5, 0.8, 0.1, -0.2, 1.5], [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]):
    multivariate(
        "LKJCholeskyCov",
        entries,
        lambda eta, lam: pm.LKJCholeskyCov.dist(
            eta=eta, n=3, sd_dist=pm.Exponential.dist(lam), compute_corr=False
        ),
        eta=2.0,
        lam=1.0,
    )
multivariate("MatrixNormal", ROWS, mu=ROWS / 3, rowcov=A, colcov=A.T @ A)
multivariate(
    "KroneckerNormal",
    [np.arange(6.0), np.zeros(6)],
    lambda mu, k1, k2, sigma: pm.KroneckerNormal.dist(mu, covs=[k1, k2], sigma=sigma),
    mu=np.ones(6),
    k1=A,
    k2=A[:2, :2],
    sigma=0.5,
)
NEIGHBOURS = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
multivariate(
    "CAR",
    ROWS,
    lambda mu, alpha, tau: pm.CAR.dist(mu, NEIGHBOURS, alpha, tau),
    mu=MU,
    alpha=0.5,
    tau=2.0,
)
multivariate("ICAR", ROWS, lambda sigma: pm.ICAR.dist(NEIGHBOURS, sigma), sigma=1.5)
multivariate(
    "ZeroSumNormal",
    [[1.0, -2.0, 1.0], [0.0, 0.0, 0.0]],
    lambda sigma: pm.ZeroSumNormal.dist(sigma, support_shape=(3,)),
    sigma=2.0,
)

SERIES = np.array([0.1, 0.5, -0.3, 1.0, 2.0, 0.7])
multivariate(
    "AR",
    SERIES,
    lambda rho, sigma: pm.AR.dist(
        rho, sigma, ar_order=2, init_dist=pm.Normal.dist(0, 3, shape=2), steps=4
    ),
    rho=[0.5, -0.3],
    sigma=0.8,
)
multivariate(
    "AR",
    SERIES,
    lambda rho, sigma: pm.AR.dist(
        rho, sigma, constant=True, ar_order=1, init_dist=pm.Normal.dist(0, 3, shape=1), steps=5
    ),
    label="constant",
    rho=[0.5, -0.3],
    sigma=0.8,
)
multivariate(
    "GARCH11",
    SERIES,
    lambda omega, a, b, v: pm.GARCH11.dist(omega, a, b, v, steps=5),
    omega=0.3,
    a=0.2,
    b=0.4,
    v=1.0,
)
multivariate(
    "GaussianRandomWalk",
    SERIES,
    lambda mu, sigma: pm.GaussianRandomWalk.dist(
        mu, sigma, init_dist=pm.Normal.dist(0, 3), steps=5
    ),
    mu=0.1,
    sigma=0.8,
)
multivariate(
    "RandomWalk",
    SERIES,
    lambda b: pm.RandomWalk.dist(pm.Normal.dist(0, 3), pm.Laplace.dist(0, b), steps=5),
    b=0.7,
)
multivariate(
    "EulerMaruyama",
    SERIES,
    lambda lam: pm.EulerMaruyama.dist(
        0.1, lambda x, lam: (lam * x, 0.5), (lam,), init_dist=pm.Normal.dist(0, 3), steps=5
    ),
    lam=-0.3,
)
multivariate(
    "MvGaussianRandomWalk",
    np.vstack([ROWS, ROWS / 2]),
    lambda mu, cov: pm.MvGaussianRandomWalk.dist(
        mu, cov=cov, init_dist=pm.MvNormal.dist(np.zeros(3), np.eye(3)), steps=5
    ),
    mu=MU,
    cov=A,
)
multivariate(
    "MvStudentTRandomWalk",
    np.vstack([ROWS, ROWS / 2]),
    lambda nu, mu, cov: pm.MvStudentTRandomWalk.dist(
        nu=nu, mu=mu, scale=cov, init_dist=pm.MvNormal.dist(np.zeros(3), np.eye(3)), steps=5
    ),
    nu=4.0,
    mu=MU,
    cov=A,
)
