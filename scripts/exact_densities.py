"""Densities of the catalogue's distributions in mpmath, written as in their papers."""

from collections.abc import Callable
from typing import Any

import mpmath as mp

Density = Callable[..., Any]


def student_t(x: Any, nu: Any, mu: Any, sigma: Any) -> Any:
    """Return the density of Student's t distribution."""
    constant = mp.gamma((nu + 1) / 2) / (mp.gamma(nu / 2) * mp.sqrt(nu * mp.pi) * sigma)
    return constant * (1 + ((x - mu) / sigma) ** 2 / nu) ** (-(nu + 1) / 2)


def skew_t(x: Any, a: Any, b: Any, mu: Any, sigma: Any) -> Any:
    """Return the density of Jones and Faddy (2003)."""
    t = (x - mu) / sigma
    u = t / mp.sqrt(a + b + t * t)
    constant = 2 ** (a + b - 1) * mp.beta(a, b) * mp.sqrt(a + b) * sigma
    return (1 + u) ** (a + mp.mpf(1) / 2) * (1 - u) ** (b + mp.mpf(1) / 2) / constant


def ex_gaussian(x: Any, mu: Any, sigma: Any, nu: Any) -> Any:
    """Return the density of a sum of a normal and an exponential number."""
    z, rate = (x - mu) / sigma, sigma / nu
    return mp.exp(rate * rate / 2 - (x - mu) / nu) * mp.ncdf(z - rate) / nu


def asymmetric_laplace(x: Any, kappa: Any, mu: Any, b: Any) -> Any:
    """Return the density of Kotz et al. (2001)."""
    y = (x - mu) * b
    return b / (kappa + 1 / kappa) * mp.exp(y / kappa if y < 0 else -y * kappa)


def von_mises(x: Any, mu: Any, kappa: Any) -> Any:
    """Return the density of an angle."""
    return mp.exp(kappa * mp.cos(x - mu)) / (2 * mp.pi * mp.besseli(0, kappa))


def wald(x: Any, mu: Any, lam: Any) -> Any:
    """Return the density of the inverse Gaussian distribution."""
    return mp.sqrt(lam / (2 * mp.pi * x**3)) * mp.exp(-lam * (x - mu) ** 2 / (2 * mu**2 * x))


def rice(x: Any, nu: Any, sigma: Any) -> Any:
    """Return the density of the length of a normal vector of the plane."""
    squares = sigma * sigma
    whole = mp.exp(-(x * x + nu * nu) / (2 * squares)) * mp.besseli(0, x * nu / squares)
    return x / squares * whole


def triangular(x: Any, lower: Any, upper: Any, c: Any) -> Any:
    """Return the density of a triangle."""
    side = (x - lower) / (c - lower) if x < c else (upper - x) / (upper - c)
    return 2 * side / (upper - lower)


def logistic(x: Any, mu: Any, s: Any) -> Any:
    """Return the density of the logistic distribution."""
    return 1 / (4 * s * mp.cosh((x - mu) / (2 * s)) ** 2)


def gumbel(x: Any, mu: Any, beta: Any) -> Any:
    """Return the density of the largest of many numbers."""
    z = (x - mu) / beta
    return mp.exp(-z - mp.exp(-z)) / beta


def moyal(x: Any, mu: Any, sigma: Any) -> Any:
    """Return the density of Moyal (1955)."""
    z = (x - mu) / sigma
    return mp.exp(-(z + mp.exp(-z)) / 2) / (sigma * mp.sqrt(2 * mp.pi))


def gamma(x: Any, alpha: Any, beta: Any) -> Any:
    """Return the density of the gamma distribution."""
    return beta**alpha * x ** (alpha - 1) * mp.exp(-beta * x) / mp.gamma(alpha)


def logit_normal(x: Any, mu: Any, sigma: Any) -> Any:
    """Return the density of the logistic function of a normal number."""
    if not 0 < x < 1:
        return mp.mpf(0)
    return mp.npdf(mp.log(x / (1 - x)), mu, sigma) / (x * (1 - x))


def truncated_normal(x: Any, mu: Any, sigma: Any, lower: Any, upper: Any) -> Any:
    """Return the density of a normal number between bounds."""
    whole = mp.ncdf(upper, mu, sigma) - mp.ncdf(lower, mu, sigma)
    return mp.npdf(x, mu, sigma) / whole


def extreme_value(x: Any, mu: Any, sigma: Any, xi: Any) -> Any:
    """Return the density of the largest of many numbers."""
    z = (x - mu) / sigma
    t = (1 + xi * z) ** (-1 / xi) if xi else mp.exp(-z)
    return t ** (xi + 1) * mp.exp(-t) / sigma


def bounds_of_extremes(mu: Any, sigma: Any, xi: Any) -> tuple[Any, Any]:
    """Return the support of the largest of many numbers."""
    return (
        mu - sigma / xi if xi > 0 else -mp.inf,
        mu - sigma / xi if xi < 0 else mp.inf,
    )


def general_pareto(x: Any, sigma: Any, xi: Any) -> Any:
    """Return the density of excesses."""
    z = x / sigma
    return ((1 + xi * z) ** (-1 / xi - 1) if xi else mp.exp(-z)) / sigma


def bounds_of_pareto(sigma: Any, xi: Any) -> tuple[Any, Any]:
    """Return the support of excesses."""
    return mp.mpf(0), -sigma / xi if xi < 0 else mp.inf


CONTINUOUS: dict[str, tuple[Density, Callable[..., tuple[Any, Any]]]] = {
    name: (density, support)
    for support, densities in (
        (
            lambda *_: (-mp.inf, mp.inf),
            {
                "Normal": mp.npdf,
                "SkewNormal": lambda x, mu, s, a: 2 * mp.npdf(x, mu, s) * mp.ncdf(a * (x - mu) / s),
                "ExGaussian": ex_gaussian,
                "StudentT": student_t,
                "SkewStudentT": skew_t,
                "Cauchy": lambda x, a, b: b / (mp.pi * (b * b + (x - a) ** 2)),
                "Laplace": lambda x, mu, b: mp.exp(-abs(x - mu) / b) / (2 * b),
                "AsymmetricLaplace": asymmetric_laplace,
                "Logistic": logistic,
                "Gumbel": gumbel,
                "Moyal": moyal,
                "HyperbolicSecant": lambda x, mu, s: 1 / (mp.pi * s * mp.cosh((x - mu) / s)),
            },
        ),
        (
            lambda *_: (mp.mpf(0), mp.inf),
            {
                "HalfNormal": lambda x, s: 2 * mp.npdf(x, 0, s),
                "LogNormal": lambda x, mu, s: mp.npdf(mp.log(x), mu, s) / x,
                "HalfStudentT": lambda x, nu, s: 2 * student_t(x, nu, 0, s),
                "HalfCauchy": lambda x, b: 2 * b / (mp.pi * (b * b + x * x)),
                "Exponential": lambda x, lam: lam * mp.exp(-lam * x),
                "Gamma": gamma,
                "InverseGamma": lambda x, a, b: gamma(1 / x, a, b) / x**2,
                "ChiSquared": lambda x, nu: gamma(x, nu / 2, mp.mpf(1) / 2),
                "Weibull": lambda x, a, b: a / b * (x / b) ** (a - 1) * mp.exp(-((x / b) ** a)),
                "Wald": wald,
                "Rice": rice,
                "Rayleigh": lambda x, s: x / s**2 * mp.exp(-(x**2) / (2 * s**2)),
                "Maxwell": lambda x, s: (
                    mp.sqrt(2 / mp.pi) * x**2 / s**3 * mp.exp(-(x**2) / (2 * s**2))
                ),
                "Frechet": lambda x, a, s: a / s * (x / s) ** (-1 - a) * mp.exp(-((x / s) ** -a)),
                "Lomax": lambda x, a, lam: a / lam * (1 + x / lam) ** (-a - 1),
                "LogLogistic": lambda x, a, b: b / a * (x / a) ** (b - 1) / (1 + (x / a) ** b) ** 2,
                "Gompertz": lambda x, eta, b: eta / b * mp.exp(x / b - eta * mp.expm1(x / b)),
                "HalfLogistic": lambda x, s: 1 / (2 * s * mp.cosh(x / (2 * s)) ** 2),
                "FRatio": lambda x, n, m: (
                    (n / m) ** (n / 2)
                    * x ** (n / 2 - 1)
                    * (1 + n * x / m) ** (-(n + m) / 2)
                    / mp.beta(n / 2, m / 2)
                ),
                "BetaPrime": lambda x, a, b: x ** (a - 1) * (1 + x) ** (-a - b) / mp.beta(a, b),
            },
        ),
        (
            lambda *_: (mp.mpf(0), mp.mpf(1)),
            {
                "LogitNormal": lambda x, mu, s: mp.npdf(mp.log(x / (1 - x)), mu, s) / (x * (1 - x)),
                "Beta": lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
                "Kumaraswamy": lambda x, a, b: a * b * x ** (a - 1) * (1 - x**a) ** (b - 1),
            },
        ),
        (lambda *_: (-mp.pi, mp.pi), {"VonMises": von_mises}),
        (
            lambda lower, upper: (lower, upper),
            {"LogUniform": lambda x, a, b: 1 / (x * mp.log(b / a))},
        ),
        (
            lambda mu, c: (mu, mp.inf),
            {
                "Levy": lambda x, mu, c: (
                    mp.sqrt(c / (2 * mp.pi)) * mp.exp(-c / (2 * (x - mu))) / (x - mu) ** 1.5
                )
            },
        ),
        (bounds_of_extremes, {"GeneralizedExtremeValue": extreme_value}),
        (bounds_of_pareto, {"GeneralizedPareto": general_pareto}),
        (lambda alpha, m: (m, mp.inf), {"Pareto": lambda x, a, m: a * m**a / x ** (a + 1)}),
        (lambda mu, s, lower, upper: (lower, upper), {"TruncatedNormal": truncated_normal}),
        (
            lambda lower, upper, *_: (lower, upper),
            {"Uniform": lambda x, a, b: 1 / (b - a), "Triangular": triangular},
        ),
    )
    for name, density in densities.items()
}
"""Density and support of continuous distributions."""


def binomial(k: int, n: Any, p: Any) -> Any:
    """Return the probability of a number of successes."""
    return mp.binomial(n, k) * p**k * (1 - p) ** (n - k)


def poisson(k: int, mu: Any) -> Any:
    """Return the probability of a number of events."""
    return mp.exp(-mu) * mu**k / mp.factorial(k)


def negative_binomial(k: int, mu: Any, alpha: Any) -> Any:
    """Return the probability of a number whose mean is drawn, too."""
    p = alpha / (mu + alpha)
    return mp.gamma(k + alpha) / (mp.gamma(alpha) * mp.factorial(k)) * p**alpha * (1 - p) ** k


def inflated(pmf: Density) -> Density:
    """Return probabilities with more zeros."""
    return lambda k, psi, *of: psi * pmf(k, *of) + ((1 - psi) if k == 0 else 0)


DISCRETE: dict[str, tuple[Density, Callable[..., int]]] = {
    "Bernoulli": (lambda k, p: p if k else 1 - p, lambda *_: 0),
    "Binomial": (binomial, lambda *_: 0),
    "BetaBinomial": (
        lambda k, n, a, b: mp.binomial(n, k) * mp.beta(k + a, n - k + b) / mp.beta(a, b),
        lambda *_: 0,
    ),
    "Poisson": (poisson, lambda *_: 0),
    "NegativeBinomial": (negative_binomial, lambda *_: 0),
    "Geometric": (lambda k, p: p * (1 - p) ** (k - 1), lambda *_: 1),
    "HyperGeometric": (
        lambda k, size, good, n: (
            mp.binomial(good, k) * mp.binomial(size - good, n - k) / mp.binomial(size, n)
        ),
        lambda *_: 0,
    ),
    "DiscreteUniform": (lambda k, a, b: 1 / (b - a + 1), lambda a, b: int(a)),
    "DiscreteWeibull": (lambda k, q, b: q ** (k**b) - q ** ((k + 1) ** b), lambda *_: 0),
    "ZeroInflatedPoisson": (inflated(poisson), lambda *_: 0),
    "ZeroInflatedBinomial": (inflated(binomial), lambda *_: 0),
    "ZeroInflatedNegativeBinomial": (inflated(negative_binomial), lambda *_: 0),
}
"""Probabilities and least values of discrete distributions."""
