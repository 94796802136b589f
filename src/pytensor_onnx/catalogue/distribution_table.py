"""The distributions of the catalogue, with their parameterisations here, in Stan and in SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.closed_forms import CLOSED_FORMS
from pytensor_onnx.catalogue.further_functions import (
    CONTINUOUS_FORMULAS,
    DISCRETE_FORMULAS,
    Functions,
)
from pytensor_onnx.catalogue.stable_tails import STABLE_TAILS

FORMULAS = CONTINUOUS_FORMULAS | DISCRETE_FORMULAS | CLOSED_FORMS
REAL, POSITIVE, UNIT = "real", "positive", "in (0, 1)"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a distribution: its range, and three values for test vectors."""

    name: str
    about: str
    values: tuple[float, ...]
    dtype: str = "T"
    """``T``, or ``int64``."""


@dataclass(frozen=True)
class Distribution:
    """A distribution of numbers.

    Attributes
    ----------
    name
        Name in PyMC, and the beginning of the names of its functions.
    parameters
        The parameters, as in PyMC.
    support
        Where its density is not zero.
    values
        Two rows of values for test vectors, one for each value of the parameters.
    scipy, stan
        The same distribution there; empty if there is none.
    mean, variance
        Functions of the parameters that return moments, None where PyMC's is taken or none exists.
    is_discrete
        Whether its values are integers.
    without
        Functions that it has not, although PyMC would derive them.
    """

    name: str
    parameters: tuple[Parameter, ...]
    support: str
    values: tuple[tuple[float, ...], ...]
    scipy: str = ""
    stan: str = ""
    variance: Callable[..., Any] | None = None
    is_discrete: bool = False
    without: tuple[str, ...] = ()

    @property
    def formulas(self) -> Functions:
        """Functions that PyMC lacks or derives with fewer digits, by the ends of their names."""
        return {**FORMULAS.get(self.name, {}), **STABLE_TAILS.get(self.name, {})}

    def dist(self, *parameters: V, **options: Any) -> V:
        """Return the random variable of PyMC."""
        names = [p.name for p in self.parameters]
        return getattr(pm, self.name).dist(**dict(zip(names, parameters, strict=True)), **options)


def _real(name: str, about: str, *values: float) -> Parameter:
    return Parameter(name, about, values)


MU = _real("mu", REAL, 0.5, -1.0, 2.0)
SIGMA = _real("sigma", POSITIVE, 1.0, 0.5, 2.0)
NU = _real("nu", f"{POSITIVE}, degrees of freedom", 3.0, 8.0, 30.0)
ALPHA = _real("alpha", POSITIVE, 2.0, 0.7, 5.0)
BETA = _real("beta", POSITIVE, 1.5, 0.5, 3.0)
LAM = _real("lam", POSITIVE, 1.5, 0.5, 3.0)
P = _real("p", UNIT, 0.3, 0.6, 0.9)
PSI = _real("psi", f"{UNIT}, probability of the part without extra zeros", 0.8, 0.5, 0.9)
COUNT = Parameter("n", "at least 0, number of trials", (10, 4, 7), "int64")

_REALS = ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0))
_POSITIVES = ((0.4, 1.3, 2.5), (1.7, 0.2, 5.0))
_UNITS = ((0.1, 0.5, 0.7), (0.8, 0.25, 0.95))
_COUNTS = ((0, 2, 5), (3, 1, 7))


def _gamma(x: V) -> V:
    return pt.gamma(x)


def _kumaraswamy_variance(a: V, b: V) -> V:
    first, second = (
        b * pt.exp(pt.gammaln(1 + n / a) + pt.gammaln(b) - pt.gammaln(1 + n / a + b))
        for n in (1.0, 2.0)
    )
    return second - first**2


def _weibull_variance(alpha: V, beta: V) -> V:
    return beta**2 * (_gamma(1 + 2 / alpha) - _gamma(1 + 1 / alpha) ** 2)


def _skew_variance(mu: V, sigma: V, alpha: V) -> V:
    return sigma**2 * (1 - 2 / np.pi * alpha**2 / (1 + alpha**2))


def _moyal_variance(mu: V, sigma: V) -> V:
    return (np.pi * sigma) ** 2 / 2


def _triangular_variance(lower: V, upper: V, c: V) -> V:
    squares = lower**2 + upper**2 + c**2
    return (squares - lower * upper - lower * c - upper * c) / 18


OF_PYMC = (
    Distribution(
        "Normal",
        (MU, SIGMA),
        REAL,
        _REALS,
        "norm(loc=mu, scale=sigma)",
        "normal(mu, sigma)",
        lambda mu, sigma: sigma**2 + 0 * mu,
    ),
    Distribution(
        "HalfNormal",
        (SIGMA,),
        "not negative",
        _POSITIVES,
        "halfnorm(scale=sigma)",
        "normal(0, sigma) T[0, ]",
        lambda sigma: sigma**2 * (1 - 2 / np.pi),
    ),
    Distribution(
        "LogNormal",
        (MU, SIGMA),
        POSITIVE,
        _POSITIVES,
        "lognorm(s=sigma, scale=exp(mu))",
        "lognormal(mu, sigma)",
        lambda mu, sigma: pt.expm1(sigma**2) * pt.exp(2 * mu + sigma**2),
    ),
    Distribution(
        "SkewNormal",
        (MU, SIGMA, _real("alpha", REAL, 2.0, -1.0, 0.5)),
        REAL,
        _REALS,
        "skewnorm(a=alpha, loc=mu, scale=sigma)",
        "skew_normal(mu, sigma, alpha)",
        _skew_variance,
    ),
    Distribution(
        "ExGaussian",
        (MU, SIGMA, NU),
        REAL,
        _REALS,
        "exponnorm(K=nu/sigma, loc=mu, scale=sigma)",
        "exp_mod_normal(mu, sigma, 1/nu)",
        lambda mu, sigma, nu: sigma**2 + nu**2 + 0 * mu,
    ),
    Distribution(
        "TruncatedNormal",
        (
            MU,
            SIGMA,
            _real("lower", REAL, -1.0, -3.0, 1.0),
            _real("upper", "above lower", 2.0, 1.0, 6.0),
        ),
        "between lower and upper",
        ((0.3, -1.2, 2.5), (-0.5, 0.1, 4.0)),
        "truncnorm(a=(lower-mu)/sigma, b=(upper-mu)/sigma, loc=mu, scale=sigma)",
        "normal(mu, sigma) T[lower, upper]",
        without=("Mean",),
    ),
    Distribution(
        "StudentT",
        (NU, MU, SIGMA),
        REAL,
        _REALS,
        "t(df=nu, loc=mu, scale=sigma)",
        "student_t(nu, mu, sigma)",
        lambda nu, mu, sigma: pt.switch(nu > 2, sigma**2 * nu / (nu - 2), np.inf) + 0 * mu,
    ),
    Distribution(
        "HalfStudentT",
        (NU, SIGMA),
        "not negative",
        _POSITIVES,
        "",
        "student_t(nu, 0, sigma) T[0, ]",
    ),
    Distribution(
        "SkewStudentT",
        (_real("a", POSITIVE, 2.0, 1.0, 3.0), _real("b", POSITIVE, 1.5, 2.0, 0.7), MU, SIGMA),
        REAL,
        _REALS,
        "jf_skew_t(a=a, b=b, loc=mu, scale=sigma)",
        "",
    ),
    Distribution(
        "Cauchy",
        (_real("alpha", REAL, 0.5, -1.0, 2.0), BETA),
        REAL,
        _REALS,
        "cauchy(loc=alpha, scale=beta)",
        "cauchy(alpha, beta)",
        without=("Mean",),
    ),
    Distribution(
        "HalfCauchy",
        (BETA,),
        "not negative",
        _POSITIVES,
        "halfcauchy(scale=beta)",
        "cauchy(0, beta) T[0, ]",
        without=("Mean",),
    ),
    Distribution(
        "Laplace",
        (MU, _real("b", POSITIVE, 1.0, 0.5, 2.0)),
        REAL,
        _REALS,
        "laplace(loc=mu, scale=b)",
        "double_exponential(mu, b)",
        lambda mu, b: 2 * b**2 + 0 * mu,
    ),
    Distribution(
        "AsymmetricLaplace",
        (
            _real("kappa", f"{POSITIVE}, asymmetry", 1.5, 0.5, 3.0),
            MU,
            _real("b", "positive, inverse of the scale", 1.0, 0.5, 2.0),
        ),
        REAL,
        _REALS,
        "laplace_asymmetric(kappa=kappa, loc=mu, scale=1/b)",
        "",
        lambda kappa, mu, b: (1 + kappa**4) / (kappa * b) ** 2 + 0 * mu,
    ),
    Distribution(
        "Logistic",
        (MU, _real("s", POSITIVE, 1.0, 0.5, 2.0)),
        REAL,
        _REALS,
        "logistic(loc=mu, scale=s)",
        "logistic(mu, s)",
        lambda mu, s: (np.pi * s) ** 2 / 3 + 0 * mu,
    ),
    Distribution(
        "LogitNormal",
        (MU, SIGMA),
        UNIT,
        _UNITS,
        without=("Mean",),
    ),
    Distribution(
        "Gumbel",
        (MU, BETA),
        REAL,
        _REALS,
        "gumbel_r(loc=mu, scale=beta)",
        "gumbel(mu, beta)",
        lambda mu, beta: (np.pi * beta) ** 2 / 6 + 0 * mu,
    ),
    Distribution(
        "Moyal",
        (MU, SIGMA),
        REAL,
        _REALS,
        "moyal(loc=mu, scale=sigma)",
        "",
        lambda mu, sigma: _moyal_variance(mu, sigma) + 0 * mu,
    ),
    Distribution(
        "VonMises",
        (
            _real("mu", "in [-pi, pi]", 0.5, -1.0, 2.0),
            _real("kappa", "not negative, concentration", 2.0, 0.5, 8.0),
        ),
        "in [-pi, pi]",
        ((0.3, -1.2, 2.5), (-1.0, 0.1, 3.0)),
        "vonmises(kappa=kappa, loc=mu)",
        "von_mises(mu, kappa)",
    ),
    Distribution(
        "Exponential",
        (LAM,),
        "not negative",
        _POSITIVES,
        "expon(scale=1/lam)",
        "exponential(lam)",
        lambda lam: 1 / lam**2,
    ),
    Distribution(
        "Gamma",
        (ALPHA, _real("beta", "positive, inverse of the scale", 1.5, 0.5, 3.0)),
        POSITIVE,
        _POSITIVES,
        "gamma(a=alpha, scale=1/beta)",
        "gamma(alpha, beta)",
        lambda alpha, beta: alpha / beta**2,
    ),
    Distribution(
        "InverseGamma",
        (_real("alpha", POSITIVE, 3.0, 2.5, 5.0), BETA),
        POSITIVE,
        _POSITIVES,
        "invgamma(a=alpha, scale=beta)",
        "inv_gamma(alpha, beta)",
        lambda alpha, beta: pt.switch(
            alpha > 2, beta**2 / ((alpha - 1) ** 2 * (alpha - 2)), np.inf
        ),
    ),
    Distribution(
        "ChiSquared",
        (NU,),
        POSITIVE,
        _POSITIVES,
        "chi2(df=nu)",
        "chi_square(nu)",
        lambda nu: 2 * nu,
    ),
    Distribution(
        "Beta",
        (ALPHA, BETA),
        UNIT,
        _UNITS,
        "beta(a=alpha, b=beta)",
        "beta(alpha, beta)",
        lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    ),
    Distribution(
        "Kumaraswamy",
        (_real("a", POSITIVE, 2.0, 0.7, 5.0), _real("b", POSITIVE, 1.5, 0.5, 3.0)),
        UNIT,
        _UNITS,
        "",
        "",
        _kumaraswamy_variance,
    ),
    Distribution(
        "Weibull",
        (ALPHA, BETA),
        POSITIVE,
        _POSITIVES,
        "weibull_min(c=alpha, scale=beta)",
        "weibull(alpha, beta)",
        _weibull_variance,
    ),
    Distribution(
        "Pareto",
        (
            _real("alpha", POSITIVE, 3.0, 2.5, 5.0),
            _real("m", "positive, least value", 0.3, 0.2, 2.0),
        ),
        "at least m",
        ((0.4, 1.3, 2.5), (1.7, 0.3, 5.0)),
        "pareto(b=alpha, scale=m)",
        "pareto(m, alpha)",
        lambda alpha, m: pt.switch(
            alpha > 2, m**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2)), np.inf
        ),
    ),
    Distribution(
        "Wald",
        (_real("mu", POSITIVE, 1.0, 0.5, 2.0), LAM),
        POSITIVE,
        _POSITIVES,
        "invgauss(mu=mu/lam, scale=lam)",
        "",
        lambda mu, lam: mu**3 / lam,
    ),
    Distribution(
        "Rice",
        (_real("nu", "not negative", 1.0, 0.5, 2.0), SIGMA),
        POSITIVE,
        _POSITIVES,
        "rice(b=nu/sigma, scale=sigma)",
        "",
    ),
    Distribution(
        "Uniform",
        (_real("lower", REAL, -2.0, -1.5, 1.0), _real("upper", "above lower", 1.0, 0.5, 6.0)),
        "between lower and upper",
        ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0)),
        "uniform(loc=lower, scale=upper-lower)",
        "uniform(lower, upper)",
        lambda lower, upper: (upper - lower) ** 2 / 12,
    ),
    Distribution(
        "Triangular",
        (
            _real("lower", REAL, -2.0, -1.5, 1.0),
            _real("upper", "above lower", 1.0, 0.5, 6.0),
            _real("c", "mode, between lower and upper", 0.0, -1.0, 3.0),
        ),
        "between lower and upper",
        ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0)),
        "triang(c=(c-lower)/(upper-lower), loc=lower, scale=upper-lower)",
        "",
        _triangular_variance,
    ),
)

_XI = _real("xi", f"{REAL}, shape", 0.3, -0.2, 0.0)
_SCALE = _real("beta", f"{POSITIVE}, scale", 1.5, 0.5, 3.0)

FURTHER = (
    Distribution(
        "Rayleigh",
        (SIGMA,),
        "not negative",
        _POSITIVES,
        "rayleigh(scale=sigma)",
        "rayleigh(sigma)",
        lambda sigma: (2.0 - np.pi / 2.0) * sigma**2,
    ),
    Distribution(
        "Maxwell",
        (SIGMA,),
        "not negative",
        _POSITIVES,
        "maxwell(scale=sigma)",
        "",
        lambda sigma: (3.0 - 8.0 / np.pi) * sigma**2,
    ),
    Distribution(
        "Levy",
        (MU, _real("c", f"{POSITIVE}, scale", 1.5, 0.5, 3.0)),
        "above mu",
        ((1.3, 0.2, 4.5), (0.9, 3.1, 24.0)),
        "levy(loc=mu, scale=c)",
        without=("Mean",),
    ),
    Distribution(
        "Frechet",
        (_real("alpha", f"{POSITIVE}, shape", 3.0, 1.7, 5.0), SIGMA),
        POSITIVE,
        _POSITIVES,
        "invweibull(c=alpha, scale=sigma)",
        "frechet(alpha, sigma)",
    ),
    Distribution(
        "GeneralizedExtremeValue",
        (MU, SIGMA, _XI),
        "where 1 + xi (value - mu) / sigma is positive",
        ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0)),
        "genextreme(c=-xi, loc=mu, scale=sigma)",
        without=("Mean",),
    ),
    Distribution(
        "GeneralizedPareto",
        (SIGMA, _XI),
        "not negative, and where 1 + xi value / sigma is positive",
        ((0.4, 1.3, 2.5), (1.7, 0.2, 5.0)),
        "genpareto(c=xi, scale=sigma)",
        without=("Mean",),
    ),
    Distribution(
        "Lomax",
        (_real("alpha", f"{POSITIVE}, shape", 3.0, 1.7, 5.0), LAM),
        "not negative",
        _POSITIVES,
        "lomax(c=alpha, scale=lam)",
        "pareto_type_2(0, lam, alpha)",
    ),
    Distribution(
        "LogLogistic",
        (
            _real("alpha", f"{POSITIVE}, median", 1.0, 0.5, 2.0),
            _real("beta", POSITIVE, 3.0, 1.7, 5.0),
        ),
        POSITIVE,
        _POSITIVES,
        "fisk(c=beta, scale=alpha)",
        "loglogistic(alpha, beta)",
    ),
    Distribution(
        "Gompertz",
        (_real("eta", f"{POSITIVE}, shape", 0.5, 2.0, 0.1), _SCALE),
        "not negative",
        _POSITIVES,
        "gompertz(c=eta, scale=beta)",
        without=("Mean",),
    ),
    Distribution(
        "HyperbolicSecant",
        (MU, SIGMA),
        REAL,
        _REALS,
        "hypsecant(loc=mu, scale=sigma)",
        "",
        lambda mu, sigma: (0.5 * np.pi * sigma) ** 2 + 0 * mu,
    ),
    Distribution(
        "HalfLogistic",
        (SIGMA,),
        "not negative",
        _POSITIVES,
        "halflogistic(scale=sigma)",
        "logistic(0, sigma) T[0, ]",
        lambda sigma: (np.pi**2 / 3.0 - np.log(4.0) ** 2) * sigma**2,
    ),
    Distribution(
        "LogUniform",
        (_real("lower", POSITIVE, 0.1, 0.05, 1.0), _real("upper", "above lower", 3.0, 2.5, 6.0)),
        "between lower and upper",
        ((0.4, 1.3, 2.5), (1.7, 0.2, 5.0)),
        "loguniform(lower, upper)",
        "",
    ),
    Distribution(
        "FRatio",
        (
            _real("n", f"{POSITIVE}, degrees of freedom above", 4.0, 2.5, 10.0),
            _real("m", f"{POSITIVE}, degrees of freedom below", 6.0, 5.0, 12.0),
        ),
        POSITIVE,
        _POSITIVES,
        "f(dfn=n, dfd=m)",
        "",
    ),
    Distribution(
        "BetaPrime",
        (ALPHA, _real("beta", POSITIVE, 3.5, 2.5, 3.0)),
        POSITIVE,
        _POSITIVES,
        "betaprime(a=alpha, b=beta)",
        "",
    ),
)
"""Distributions of SciPy that PyMC lacks."""

CONTINUOUS = (*OF_PYMC, *FURTHER)


DISCRETE = (
    Distribution(
        "Bernoulli",
        (P,),
        "0 or 1",
        ((0, 1, 1), (1, 0, 0)),
        "bernoulli(p)",
        "bernoulli(p)",
        lambda p: p * (1 - p),
        True,
    ),
    Distribution(
        "Binomial",
        (COUNT, P),
        "0 to n",
        ((0, 2, 5), (3, 1, 7)),
        "binom(n, p)",
        "binomial(n, p)",
        lambda n, p: n * p * (1 - p),
        True,
    ),
    Distribution(
        "BetaBinomial",
        (COUNT, ALPHA, BETA),
        "0 to n",
        ((0, 2, 5), (3, 1, 7)),
        "betabinom(n, alpha, beta)",
        "beta_binomial(n, alpha, beta)",
        lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1)),
        True,
    ),
    Distribution(
        "Poisson",
        (_real("mu", POSITIVE, 1.5, 0.5, 4.0),),
        "not negative",
        _COUNTS,
        "poisson(mu)",
        "poisson(mu)",
        lambda mu: mu,
        True,
    ),
    Distribution(
        "NegativeBinomial",
        (_real("mu", POSITIVE, 1.5, 0.5, 4.0), ALPHA),
        "not negative",
        _COUNTS,
        "nbinom(n=alpha, p=alpha/(mu+alpha))",
        "neg_binomial_2(mu, alpha)",
        lambda mu, alpha: mu + mu**2 / alpha,
        True,
    ),
    Distribution(
        "Geometric",
        (P,),
        "at least 1",
        ((1, 2, 5), (3, 1, 7)),
        "geom(p)",
        "",
        lambda p: (1 - p) / p**2,
        True,
    ),
    Distribution(
        "HyperGeometric",
        (
            Parameter("N", "size of the population", (20, 15, 30), "int64"),
            Parameter("k", "successes in the population, at most N", (8, 5, 12), "int64"),
            Parameter("n", "number of draws, at most N", (6, 7, 9), "int64"),
        ),
        "0 to the smaller one of k and n",
        ((0, 2, 5), (3, 1, 7)),
        "hypergeom(M=N, n=k, N=n)",
        "hypergeometric(n, k, N-k)",
        None,
        True,
    ),
    Distribution(
        "DiscreteUniform",
        (
            Parameter("lower", "an integer", (0, -2, 3), "int64"),
            Parameter("upper", "at least lower", (6, 2, 9), "int64"),
        ),
        "lower to upper",
        ((0, 1, 5), (3, -1, 7)),
        "randint(low=lower, high=upper+1)",
        "discrete_range(lower, upper)",
        lambda lower, upper: ((upper - lower + 1.0) ** 2 - 1) / 12,
        True,
    ),
    Distribution(
        "DiscreteWeibull",
        (_real("q", UNIT, 0.3, 0.6, 0.9), BETA),
        "not negative",
        _COUNTS,
        is_discrete=True,
        without=("Mean",),
    ),
    Distribution(
        "ZeroInflatedPoisson",
        (PSI, _real("mu", POSITIVE, 1.5, 0.5, 4.0)),
        "not negative",
        _COUNTS,
        is_discrete=True,
    ),
    Distribution(
        "ZeroInflatedBinomial",
        (PSI, COUNT, P),
        "0 to n",
        ((0, 2, 5), (3, 1, 6)),
        is_discrete=True,
    ),
    Distribution(
        "ZeroInflatedNegativeBinomial",
        (PSI, _real("mu", POSITIVE, 1.5, 0.5, 4.0), ALPHA),
        "not negative",
        _COUNTS,
        is_discrete=True,
    ),
)
