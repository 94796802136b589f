"""Distributions of the catalogue in mpmath: densities, both tails and moments, as in papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp

Form = Callable[..., Any]


@dataclass(frozen=True)
class Exact:
    """A distribution of numbers.

    Attributes
    ----------
    density
        Density, or probability of an integer, of the value and the parameters.
    lower, upper
        Probability of values up to the given one, and above it.
    mean, variance
        Moments as functions of the parameters, None if there are none.
    support
        Least and largest value as functions of the parameters; real numbers if None.
    """

    density: Form
    lower: Form
    upper: Form
    mean: Form | None = None
    variance: Form | None = None
    support: Form | None = None

    def bounds(self, *parameters: Any) -> tuple[Any, Any]:
        """Return the least and the largest value."""
        return self.support(*parameters) if self.support else (-mp.inf, mp.inf)


def normal_lower(z: Any) -> Any:
    """Return the distribution function of the standard normal distribution."""
    return mp.erfc(-z / mp.sqrt(2)) / 2


def beta_lower(x: Any, a: Any, b: Any) -> Any:
    """Return the regularised incomplete beta function."""
    return mp.betainc(a, b, 0, x, regularized=True)


def gamma_lower(x: Any, a: Any) -> Any:
    """Return the regularised lower incomplete gamma function."""
    return mp.gammainc(a, 0, x, regularized=True)


def gamma_upper(x: Any, a: Any) -> Any:
    """Return the regularised upper incomplete gamma function."""
    return mp.gammainc(a, x, mp.inf, regularized=True)


def of_survival(log_upper: Form) -> tuple[Form, Form]:
    """Return both tails by the logarithm of the upper one."""
    return (lambda *x: -mp.expm1(log_upper(*x))), (lambda *x: mp.exp(log_upper(*x)))


def of_probability(log_lower: Form) -> tuple[Form, Form]:
    """Return both tails by the logarithm of the lower one."""
    return (lambda *x: mp.exp(log_lower(*x))), (lambda *x: -mp.expm1(log_lower(*x)))


def mirrored(lower: Form) -> tuple[Form, Form]:
    """Return both tails of a symmetric distribution by the lower one of a standard value."""
    return (
        lambda x, mu, sigma: lower((x - mu) / sigma),
        lambda x, mu, sigma: lower((mu - x) / sigma),
    )


def positive(*_: Any) -> tuple[Any, Any]:
    """Return the support of positive numbers."""
    return mp.mpf(0), mp.inf


def unit(*_: Any) -> tuple[Any, Any]:
    """Return the support of shares."""
    return mp.mpf(0), mp.mpf(1)


def between(lower: Any, upper: Any, *_: Any) -> tuple[Any, Any]:
    """Return the support of two bounds that are the first parameters."""
    return lower, upper


def student_t(x: Any, nu: Any, mu: Any, sigma: Any) -> Any:
    """Return the density of Student's t distribution."""
    constant = mp.gamma((nu + 1) / 2) / (mp.gamma(nu / 2) * mp.sqrt(nu * mp.pi) * sigma)
    return constant * (1 + ((x - mu) / sigma) ** 2 / nu) ** (-(nu + 1) / 2)


def student_lower(x: Any, nu: Any, mu: Any, sigma: Any) -> Any:
    """Return the lower tail of Student's t distribution."""
    z = (x - mu) / sigma
    half = beta_lower(nu / (nu + z * z), nu / 2, mp.mpf(1) / 2) / 2
    return half if z < 0 else 1 - half


def skew_t(x: Any, a: Any, b: Any, mu: Any, sigma: Any) -> Any:
    """Return the density of Jones and Faddy (2003)."""
    t = (x - mu) / sigma
    u = t / mp.sqrt(a + b + t * t)
    constant = 2 ** (a + b - 1) * mp.beta(a, b) * mp.sqrt(a + b) * sigma
    return (1 + u) ** (a + mp.mpf(1) / 2) * (1 - u) ** (b + mp.mpf(1) / 2) / constant


def skew_t_lower(x: Any, a: Any, b: Any, mu: Any, sigma: Any) -> Any:
    """Return the lower tail of Jones and Faddy (2003)."""
    t = (x - mu) / sigma
    return beta_lower((1 + t / mp.sqrt(a + b + t * t)) / 2, a, b)


def skew_t_mean(a: Any, b: Any, mu: Any, sigma: Any) -> Any:
    """Return the mean of Jones and Faddy (2003)."""
    half = mp.mpf(1) / 2
    ratio = mp.gammaprod([a - half, b - half], [a, b])
    return mu + sigma * (a - b) * mp.sqrt(a + b) * ratio / 2


def skew_normal(x: Any, mu: Any, sigma: Any, alpha: Any) -> Any:
    """Return the density of Azzalini (1985)."""
    return 2 * mp.npdf(x, mu, sigma) * normal_lower(alpha * (x - mu) / sigma)


def skew_normal_lower(x: Any, mu: Any, sigma: Any, alpha: Any) -> Any:
    """Return the lower tail by Owen's function, or by its complement where both would cancel."""
    z = (x - mu) / sigma

    def part(first: Any, last: Any) -> Any:
        # The tolerance of mpmath is absolute: the integrand is 1 where it is largest.
        rate = z * z / 2
        points = mp.linspace(first, last, 5)
        slope = mp.quad(lambda t: mp.exp(rate * (first**2 - t * t)) / (1 + t * t), points)
        return slope * mp.exp(-rate * (1 + first**2)) / mp.pi

    if z < -1 and alpha > 0:
        return part(alpha, mp.sqrt(alpha**2 + 5 * (mp.mp.dps + 5) / z**2))
    return normal_lower(z) - part(mp.mpf(0), alpha)


def skew_normal_share(alpha: Any) -> Any:
    """Return the correlation of the normal numbers that make a skew one."""
    return alpha / mp.sqrt(1 + alpha * alpha)


def ex_gaussian(x: Any, mu: Any, sigma: Any, nu: Any) -> Any:
    """Return the density of a sum of a normal and an exponential number."""
    z, rate = (x - mu) / sigma, sigma / nu
    return mp.exp(rate * rate / 2 - (x - mu) / nu) * normal_lower(z - rate) / nu


def ex_gaussian_upper(x: Any, mu: Any, sigma: Any, nu: Any) -> Any:
    """Return the upper tail of a sum of a normal and an exponential number."""
    return normal_lower((mu - x) / sigma) + nu * ex_gaussian(x, mu, sigma, nu)


def ex_gaussian_lower(x: Any, mu: Any, sigma: Any, nu: Any) -> Any:
    """Return the lower tail of a sum of a normal and an exponential number."""
    return normal_lower((x - mu) / sigma) - nu * ex_gaussian(x, mu, sigma, nu)


def asymmetric_laplace(x: Any, kappa: Any, mu: Any, b: Any) -> Any:
    """Return the density of Kotz et al. (2001)."""
    y = (x - mu) * b
    return b / (kappa + 1 / kappa) * mp.exp(y / kappa if y < 0 else -y * kappa)


def asymmetric_lower(x: Any, kappa: Any, mu: Any, b: Any) -> Any:
    """Return the lower tail of Kotz et al. (2001)."""
    y, k = (x - mu) * b, kappa * kappa
    return k / (1 + k) * mp.exp(y / kappa) if y < 0 else 1 - mp.exp(-y * kappa) / (1 + k)


def laplace_lower(z: Any) -> Any:
    """Return the lower tail of the standard Laplace distribution."""
    return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2


def von_mises(x: Any, mu: Any, kappa: Any) -> Any:
    """Return the density of an angle."""
    return mp.exp(kappa * mp.cos(x - mu)) / (2 * mp.pi * mp.besseli(0, kappa))


def von_mises_between(low: Any, high: Any, mu: Any, kappa: Any) -> Any:
    """Return the probability between two angles, of a periodic integrand by Gauss' quadrature."""
    inner = [mu] if low < mu < high else []
    whole = mp.quad(
        lambda t: mp.exp(kappa * mp.cos(t - mu)), [low, *inner, high], method="gauss-legendre"
    )
    return whole / (2 * mp.pi * mp.besseli(0, kappa))


def wald(x: Any, mu: Any, lam: Any) -> Any:
    """Return the density of the inverse Gaussian distribution."""
    return mp.sqrt(lam / (2 * mp.pi * x**3)) * mp.exp(-lam * (x - mu) ** 2 / (2 * mu**2 * x))


def wald_tail(x: Any, mu: Any, lam: Any, sign: int) -> Any:
    """Return the lower tail for the sign 1, the upper one for -1 (Shuster, 1968)."""
    root = mp.sqrt(lam / x)
    beyond = mp.exp(2 * lam / mu) * normal_lower(-root * (x / mu + 1))
    return normal_lower(sign * root * (x / mu - 1)) + sign * beyond


def rice(x: Any, nu: Any, sigma: Any) -> Any:
    """Return the density of the length of a normal vector of the plane."""
    squares = sigma * sigma
    whole = mp.exp(-(x * x + nu * nu) / (2 * squares)) * mp.besseli(0, x * nu / squares)
    return x / squares * whole


def rice_tail(x: Any, nu: Any, sigma: Any, tail: Form) -> Any:
    """Return a tail as that of a number of gamma, whose shape is one more than a Poisson number."""
    rate, y = (nu / sigma) ** 2 / 2, (x / sigma) ** 2 / 2
    total, share, k = mp.mpf(0), mp.exp(-rate), 0
    while True:
        term = share * tail(y, mp.mpf(k + 1))
        total += term
        k += 1
        share *= rate / k
        # The upper tails grow to 1.
        if k > rate and share < mp.eps * total:
            return total


def triangular(x: Any, lower: Any, upper: Any, c: Any) -> Any:
    """Return the density of a triangle."""
    side = (x - lower) / (c - lower) if x < c else (upper - x) / (upper - c)
    return 2 * side / (upper - lower)


def triangular_lower(x: Any, lower: Any, upper: Any, c: Any) -> Any:
    """Return the lower tail of a triangle."""
    if x < c:
        return (x - lower) ** 2 / ((upper - lower) * (c - lower))
    return 1 - (upper - x) ** 2 / ((upper - lower) * (upper - c))


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
    return mp.npdf(mp.log(x / (1 - x)), mu, sigma) / (x * (1 - x))


def logit_lower(x: Any, mu: Any, sigma: Any) -> Any:
    """Return the lower tail of the logistic function of a normal number."""
    return normal_lower((mp.log(x / (1 - x)) - mu) / sigma)


def logit_upper(x: Any, mu: Any, sigma: Any) -> Any:
    """Return the upper tail of the logistic function of a normal number."""
    return normal_lower((mu - mp.log(x / (1 - x))) / sigma)


def truncated_normal(x: Any, mu: Any, sigma: Any, lower: Any, upper: Any) -> Any:
    """Return the density of a normal number between bounds."""
    return mp.npdf(x, mu, sigma) / normal_between(lower, upper, mu, sigma)


def normal_between(low: Any, high: Any, mu: Any, sigma: Any) -> Any:
    """Return the probability of normal numbers between bounds."""
    return normal_lower((high - mu) / sigma) - normal_lower((low - mu) / sigma)


def shaped(z: Any, xi: Any) -> Any:
    """Return log(1 + xi z) / xi."""
    return mp.log1p(xi * z) / xi if xi else z


def extreme_value(x: Any, mu: Any, sigma: Any, xi: Any) -> Any:
    """Return the density of the largest of many numbers."""
    y = shaped((x - mu) / sigma, xi)
    return mp.exp(-(xi + 1) * y - mp.exp(-y)) / sigma


def bounds_of_extremes(mu: Any, sigma: Any, xi: Any) -> tuple[Any, Any]:
    """Return the support of the largest of many numbers."""
    bound = mu - sigma / xi if xi else mp.inf
    return (bound if xi > 0 else -mp.inf), (bound if xi < 0 else mp.inf)


def general_pareto(x: Any, sigma: Any, xi: Any) -> Any:
    """Return the density of excesses."""
    return mp.exp(-(1 + xi) * shaped(x / sigma, xi)) / sigma


def bounds_of_pareto(sigma: Any, xi: Any) -> tuple[Any, Any]:
    """Return the support of excesses."""
    return mp.mpf(0), -sigma / xi if xi < 0 else mp.inf


def beta_prime(x: Any, a: Any, b: Any) -> Any:
    """Return the density of the ratio of two gamma numbers."""
    return x ** (a - 1) * (1 + x) ** (-a - b) / mp.beta(a, b)


def beta_prime_lower(x: Any, a: Any, b: Any) -> Any:
    """Return the lower tail of the ratio of two gamma numbers."""
    return beta_lower(x / (1 + x), a, b)


def beta_prime_upper(x: Any, a: Any, b: Any) -> Any:
    """Return the upper tail of the ratio of two gamma numbers."""
    return beta_lower(1 / (1 + x), b, a)


def beta_variance(a: Any, b: Any) -> Any:
    """Return the variance of the beta distribution."""
    return a * b / ((a + b) ** 2 * (a + b + 1))


def kumaraswamy_moment(a: Any, b: Any, n: int) -> Any:
    """Return the mean of a power."""
    return b * mp.beta(1 + n / a, b)


def variance_of(moment: Form) -> Form:
    """Return the variance by the means of powers."""
    return lambda *of: moment(*of, 2) - moment(*of, 1) ** 2


def power_tail(alpha: Any, scale: Any) -> Any:
    """Return the variance of a distribution of Pareto."""
    return scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))


CONTINUOUS: dict[str, Exact] = {
    "Normal": Exact(mp.npdf, *mirrored(normal_lower), lambda mu, s: mu, lambda mu, s: s**2),
    "HalfNormal": Exact(
        lambda x, s: 2 * mp.npdf(x, 0, s),
        lambda x, s: mp.erf(x / (s * mp.sqrt(2))),
        lambda x, s: mp.erfc(x / (s * mp.sqrt(2))),
        lambda s: s * mp.sqrt(2 / mp.pi),
        lambda s: s**2 * (1 - 2 / mp.pi),
        positive,
    ),
    "LogNormal": Exact(
        lambda x, mu, s: mp.npdf(mp.log(x), mu, s) / x,
        lambda x, mu, s: normal_lower((mp.log(x) - mu) / s),
        lambda x, mu, s: normal_lower((mu - mp.log(x)) / s),
        lambda mu, s: mp.exp(mu + s**2 / 2),
        lambda mu, s: mp.expm1(s**2) * mp.exp(2 * mu + s**2),
        positive,
    ),
    "SkewNormal": Exact(
        skew_normal,
        skew_normal_lower,
        lambda x, mu, s, a: skew_normal_lower(-x, -mu, s, -a),
        lambda mu, s, a: mu + s * skew_normal_share(a) * mp.sqrt(2 / mp.pi),
        lambda mu, s, a: s**2 * (1 - 2 * skew_normal_share(a) ** 2 / mp.pi),
    ),
    "ExGaussian": Exact(
        ex_gaussian,
        ex_gaussian_lower,
        ex_gaussian_upper,
        lambda mu, s, nu: mu + nu,
        lambda mu, s, nu: s**2 + nu**2,
    ),
    "TruncatedNormal": Exact(
        truncated_normal,
        lambda x, mu, s, a, b: normal_between(a, x, mu, s) / normal_between(a, b, mu, s),
        lambda x, mu, s, a, b: normal_between(x, b, mu, s) / normal_between(a, b, mu, s),
        support=lambda mu, s, a, b: (a, b),
    ),
    "StudentT": Exact(
        student_t,
        student_lower,
        lambda x, nu, mu, s: student_lower(-x, nu, -mu, s),
        lambda nu, mu, s: mu,
        lambda nu, mu, s: s**2 * nu / (nu - 2),
    ),
    "HalfStudentT": Exact(
        lambda x, nu, s: 2 * student_t(x, nu, 0, s),
        lambda x, nu, s: 1 - 2 * student_lower(-x, nu, 0, s),
        lambda x, nu, s: 2 * student_lower(-x, nu, 0, s),
        lambda nu, s: (
            2 * s * mp.sqrt(nu / mp.pi) * mp.gammaprod([(nu + 1) / 2], [nu / 2]) / (nu - 1)
        ),
        support=positive,
    ),
    "SkewStudentT": Exact(
        skew_t,
        skew_t_lower,
        lambda x, a, b, mu, s: skew_t_lower(-x, b, a, -mu, s),
        skew_t_mean,
    ),
    "Cauchy": Exact(
        lambda x, a, b: b / (mp.pi * (b * b + (x - a) ** 2)),
        lambda x, a, b: mp.atan2(b, a - x) / mp.pi,
        lambda x, a, b: mp.atan2(b, x - a) / mp.pi,
    ),
    "HalfCauchy": Exact(
        lambda x, b: 2 * b / (mp.pi * (b * b + x * x)),
        lambda x, b: 2 * mp.atan2(x, b) / mp.pi,
        lambda x, b: 2 * mp.atan2(b, x) / mp.pi,
        support=positive,
    ),
    "Laplace": Exact(
        lambda x, mu, b: mp.exp(-abs(x - mu) / b) / (2 * b),
        *mirrored(laplace_lower),
        lambda mu, b: mu,
        lambda mu, b: 2 * b**2,
    ),
    "AsymmetricLaplace": Exact(
        asymmetric_laplace,
        asymmetric_lower,
        lambda x, kappa, mu, b: asymmetric_lower(-x, 1 / kappa, -mu, b),
        lambda kappa, mu, b: mu + (1 - kappa**2) / (kappa * b),
        lambda kappa, mu, b: (1 + kappa**4) / (kappa * b) ** 2,
    ),
    "Logistic": Exact(
        logistic,
        *mirrored(lambda z: 1 / (1 + mp.exp(-z))),
        lambda mu, s: mu,
        lambda mu, s: (mp.pi * s) ** 2 / 3,
    ),
    "LogitNormal": Exact(logit_normal, logit_lower, logit_upper, support=unit),
    "Gumbel": Exact(
        gumbel,
        *of_probability(lambda x, mu, b: -mp.exp(-(x - mu) / b)),
        lambda mu, b: mu + mp.euler * b,
        lambda mu, b: (mp.pi * b) ** 2 / 6,
    ),
    "Moyal": Exact(
        moyal,
        lambda x, mu, s: mp.erfc(mp.exp(-(x - mu) / (2 * s)) / mp.sqrt(2)),
        lambda x, mu, s: mp.erf(mp.exp(-(x - mu) / (2 * s)) / mp.sqrt(2)),
        lambda mu, s: mu + s * (mp.euler + mp.log(2)),
        lambda mu, s: (mp.pi * s) ** 2 / 2,
    ),
    "VonMises": Exact(
        von_mises,
        lambda x, mu, kappa: von_mises_between(-mp.pi, x, mu, kappa),
        lambda x, mu, kappa: von_mises_between(x, mp.pi, mu, kappa),
        lambda mu, kappa: mu,
        support=lambda *_: (-mp.pi, mp.pi),
    ),
    "Exponential": Exact(
        lambda x, lam: lam * mp.exp(-lam * x),
        *of_survival(lambda x, lam: -lam * x),
        lambda lam: 1 / lam,
        lambda lam: 1 / lam**2,
        positive,
    ),
    "Gamma": Exact(
        gamma,
        lambda x, a, b: gamma_lower(b * x, a),
        lambda x, a, b: gamma_upper(b * x, a),
        lambda a, b: a / b,
        lambda a, b: a / b**2,
        positive,
    ),
    "InverseGamma": Exact(
        lambda x, a, b: gamma(1 / x, a, b) / x**2,
        lambda x, a, b: gamma_upper(b / x, a),
        lambda x, a, b: gamma_lower(b / x, a),
        lambda a, b: b / (a - 1),
        lambda a, b: b**2 / ((a - 1) ** 2 * (a - 2)),
        positive,
    ),
    "ChiSquared": Exact(
        lambda x, nu: gamma(x, nu / 2, mp.mpf(1) / 2),
        lambda x, nu: gamma_lower(x / 2, nu / 2),
        lambda x, nu: gamma_upper(x / 2, nu / 2),
        lambda nu: nu,
        lambda nu: 2 * nu,
        positive,
    ),
    "Beta": Exact(
        lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
        beta_lower,
        lambda x, a, b: beta_lower(1 - x, b, a),
        lambda a, b: a / (a + b),
        beta_variance,
        unit,
    ),
    "Kumaraswamy": Exact(
        lambda x, a, b: a * b * x ** (a - 1) * (1 - x**a) ** (b - 1),
        *of_survival(lambda x, a, b: b * mp.log1p(-(x**a))),
        lambda a, b: kumaraswamy_moment(a, b, 1),
        variance_of(kumaraswamy_moment),
        unit,
    ),
    "Weibull": Exact(
        lambda x, a, b: a / b * (x / b) ** (a - 1) * mp.exp(-((x / b) ** a)),
        *of_survival(lambda x, a, b: -((x / b) ** a)),
        lambda a, b: b * mp.gamma(1 + 1 / a),
        lambda a, b: b**2 * (mp.gamma(1 + 2 / a) - mp.gamma(1 + 1 / a) ** 2),
        positive,
    ),
    "Pareto": Exact(
        lambda x, a, m: a * m**a / x ** (a + 1),
        *of_survival(lambda x, a, m: a * mp.log(m / x)),
        lambda a, m: a * m / (a - 1),
        power_tail,
        lambda a, m: (m, mp.inf),
    ),
    "Wald": Exact(
        wald,
        lambda x, mu, lam: wald_tail(x, mu, lam, 1),
        lambda x, mu, lam: wald_tail(x, mu, lam, -1),
        lambda mu, lam: mu,
        lambda mu, lam: mu**3 / lam,
        positive,
    ),
    "Rice": Exact(
        rice,
        lambda x, nu, s: rice_tail(x, nu, s, gamma_lower),
        lambda x, nu, s: rice_tail(x, nu, s, gamma_upper),
        lambda nu, s: s * mp.sqrt(mp.pi / 2) * mp.hyp1f1(-mp.mpf(1) / 2, 1, -((nu / s) ** 2) / 2),
        support=positive,
    ),
    "Uniform": Exact(
        lambda x, a, b: 1 / (b - a),
        lambda x, a, b: (x - a) / (b - a),
        lambda x, a, b: (b - x) / (b - a),
        lambda a, b: (a + b) / 2,
        lambda a, b: (b - a) ** 2 / 12,
        between,
    ),
    "Triangular": Exact(
        triangular,
        triangular_lower,
        lambda x, a, b, c: triangular_lower(-x, -b, -a, -c),
        lambda a, b, c: (a + b + c) / 3,
        lambda a, b, c: (a**2 + b**2 + c**2 - a * b - a * c - b * c) / 18,
        between,
    ),
    "Rayleigh": Exact(
        lambda x, s: x / s**2 * mp.exp(-(x**2) / (2 * s**2)),
        *of_survival(lambda x, s: -((x / s) ** 2) / 2),
        lambda s: s * mp.sqrt(mp.pi / 2),
        lambda s: (2 - mp.pi / 2) * s**2,
        positive,
    ),
    "Maxwell": Exact(
        lambda x, s: mp.sqrt(2 / mp.pi) * x**2 / s**3 * mp.exp(-((x / s) ** 2) / 2),
        lambda x, s: gamma_lower((x / s) ** 2 / 2, mp.mpf(3) / 2),
        lambda x, s: gamma_upper((x / s) ** 2 / 2, mp.mpf(3) / 2),
        lambda s: s * mp.sqrt(8 / mp.pi),
        lambda s: (3 - 8 / mp.pi) * s**2,
        positive,
    ),
    "Levy": Exact(
        lambda x, mu, c: (
            mp.sqrt(c / (2 * mp.pi)) * mp.exp(-c / (2 * (x - mu))) / mp.sqrt(x - mu) ** 3
        ),
        lambda x, mu, c: mp.erfc(mp.sqrt(c / (2 * (x - mu)))),
        lambda x, mu, c: mp.erf(mp.sqrt(c / (2 * (x - mu)))),
        support=lambda mu, c: (mu, mp.inf),
    ),
    "Frechet": Exact(
        lambda x, a, s: a / s * (x / s) ** (-1 - a) * mp.exp(-((x / s) ** -a)),
        *of_probability(lambda x, a, s: -((x / s) ** -a)),
        lambda a, s: s * mp.gamma(1 - 1 / a),
        support=positive,
    ),
    "GeneralizedExtremeValue": Exact(
        extreme_value,
        *of_probability(lambda x, mu, s, xi: -mp.exp(-shaped((x - mu) / s, xi))),
        support=bounds_of_extremes,
    ),
    "GeneralizedPareto": Exact(
        general_pareto,
        *of_survival(lambda x, s, xi: -shaped(x / s, xi)),
        support=bounds_of_pareto,
    ),
    "Lomax": Exact(
        lambda x, a, lam: a / lam * (1 + x / lam) ** (-a - 1),
        *of_survival(lambda x, a, lam: -a * mp.log1p(x / lam)),
        lambda a, lam: lam / (a - 1),
        support=positive,
    ),
    "LogLogistic": Exact(
        lambda x, a, b: b / a * (x / a) ** (b - 1) / (1 + (x / a) ** b) ** 2,
        lambda x, a, b: 1 / (1 + (x / a) ** -b),
        lambda x, a, b: 1 / (1 + (x / a) ** b),
        lambda a, b: a * mp.pi / b / mp.sin(mp.pi / b),
        support=positive,
    ),
    "Gompertz": Exact(
        lambda x, eta, b: eta / b * mp.exp(x / b - eta * mp.expm1(x / b)),
        *of_survival(lambda x, eta, b: -eta * mp.expm1(x / b)),
        support=positive,
    ),
    "HyperbolicSecant": Exact(
        lambda x, mu, s: 1 / (mp.pi * s * mp.cosh((x - mu) / s)),
        *mirrored(lambda z: 2 / mp.pi * mp.atan(mp.exp(z))),
        lambda mu, s: mu,
        lambda mu, s: (mp.pi * s / 2) ** 2,
    ),
    "HalfLogistic": Exact(
        lambda x, s: 1 / (2 * s * mp.cosh(x / (2 * s)) ** 2),
        lambda x, s: mp.tanh(x / (2 * s)),
        lambda x, s: 2 / (1 + mp.exp(x / s)),
        lambda s: 2 * s * mp.log(2),
        lambda s: s**2 * (mp.pi**2 / 3 - 4 * mp.log(2) ** 2),
        positive,
    ),
    "LogUniform": Exact(
        lambda x, a, b: 1 / (x * mp.log(b / a)),
        lambda x, a, b: mp.log(x / a) / mp.log(b / a),
        lambda x, a, b: mp.log(b / x) / mp.log(b / a),
        lambda a, b: (b - a) / mp.log(b / a),
        support=between,
    ),
    "FRatio": Exact(
        lambda x, n, m: n / m * beta_prime(n * x / m, n / 2, m / 2),
        lambda x, n, m: beta_prime_lower(n * x / m, n / 2, m / 2),
        lambda x, n, m: beta_prime_upper(n * x / m, n / 2, m / 2),
        lambda n, m: m / (m - 2),
        support=positive,
    ),
    "BetaPrime": Exact(
        beta_prime,
        beta_prime_lower,
        beta_prime_upper,
        lambda a, b: a / (b - 1),
        support=positive,
    ),
}
"""Continuous distributions."""


def summed(
    pmf: Form,
    mean: Form | None,
    variance: Form | None = None,
    last: Form | None = None,
    first: int = 0,
) -> Exact:
    """Return a distribution of integers, whose probabilities are summed."""

    def lower(k: Any, *of: Any) -> Any:
        return mp.fsum(pmf(mp.mpf(i), *of) for i in range(first, int(k) + 1))

    def support(*of: Any) -> tuple[Any, Any]:
        return mp.mpf(first), last(*of) if last else mp.inf

    def upper(k: Any, *of: Any) -> Any:
        return 1 - lower(k, *of) if k < support(*of)[1] else mp.mpf(0)

    return Exact(pmf, lower, upper, mean, variance, support)


def binomial(k: Any, n: Any, p: Any) -> Any:
    """Return the probability of a number of successes."""
    return mp.binomial(n, k) * p**k * (1 - p) ** (n - k)


def beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
    """Return the probability of a number of successes of a share that is drawn, too."""
    return mp.binomial(n, k) * mp.beta(k + a, n - k + b) / mp.beta(a, b)


def poisson(k: Any, mu: Any) -> Any:
    """Return the probability of a number of events."""
    return mp.exp(-mu) * mu**k / mp.factorial(k)


def negative_binomial(k: Any, mu: Any, alpha: Any) -> Any:
    """Return the probability of a number whose mean is drawn, too."""
    p = alpha / (mu + alpha)
    return mp.gamma(k + alpha) / (mp.gamma(alpha) * mp.factorial(k)) * p**alpha * (1 - p) ** k


def hyper_geometric(k: Any, size: Any, good: Any, n: Any) -> Any:
    """Return the probability of a number of successes without replacement."""
    return mp.binomial(good, k) * mp.binomial(size - good, n - k) / mp.binomial(size, n)


def inflated(pmf: Form) -> Form:
    """Return probabilities with more zeros."""
    return lambda k, psi, *of: psi * pmf(k, *of) + ((1 - psi) if k == 0 else 0)


DISCRETE: dict[str, Exact] = {
    "Bernoulli": summed(
        lambda k, p: p if k else 1 - p, lambda p: p, lambda p: p * (1 - p), lambda p: mp.mpf(1)
    ),
    "Binomial": summed(binomial, lambda n, p: n * p, lambda n, p: n * p * (1 - p), lambda n, p: n),
    "BetaBinomial": summed(
        beta_binomial,
        lambda n, a, b: n * a / (a + b),
        lambda n, a, b: n * (a + b + n) * beta_variance(a, b),
        lambda n, a, b: n,
    ),
    "Poisson": summed(poisson, lambda mu: mu, lambda mu: mu),
    "NegativeBinomial": summed(
        negative_binomial, lambda mu, alpha: mu, lambda mu, alpha: mu + mu**2 / alpha
    ),
    "Geometric": summed(
        lambda k, p: p * (1 - p) ** (k - 1), lambda p: 1 / p, lambda p: (1 - p) / p**2, first=1
    ),
    "HyperGeometric": summed(
        hyper_geometric, lambda size, k, n: n * k / size, last=lambda size, k, n: min(k, n)
    ),
    "DiscreteUniform": Exact(
        lambda k, a, b: 1 / (b - a + 1),
        lambda k, a, b: (k - a + 1) / (b - a + 1),
        lambda k, a, b: (b - k) / (b - a + 1),
        lambda a, b: (a + b) / 2,
        lambda a, b: ((b - a + 1) ** 2 - 1) / 12,
        between,
    ),
    "DiscreteWeibull": Exact(
        lambda k, q, b: q ** (k**b) - q ** ((k + 1) ** b),
        *of_survival(lambda k, q, b: (k + 1) ** b * mp.log(q)),
        support=positive,
    ),
    "ZeroInflatedPoisson": summed(inflated(poisson), lambda psi, mu: psi * mu),
    "ZeroInflatedBinomial": summed(
        inflated(binomial), lambda psi, n, p: psi * n * p, last=lambda psi, n, p: n
    ),
    "ZeroInflatedNegativeBinomial": summed(
        inflated(negative_binomial), lambda psi, mu, alpha: psi * mu
    ),
}
"""Discrete distributions."""
