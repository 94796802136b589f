"""Distributions that PyMC lacks, by closed forms of their densities, tails and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.further_functions import of_tail
from pytensor_onnx.catalogue.integrals import Tail

Form = Callable[..., V]


def smaller(lower: V, upper: V) -> Tail:
    """Return the smaller one of two tails, by the logarithms of both."""
    is_lower = lower < upper
    return Tail(pt.switch(is_lower, lower, upper), is_lower)


def of_survival(upper: V) -> Tail:
    """Return the tail of a distribution by the logarithm of its survival function."""
    return smaller(pt.log1mexp(upper), upper)


def of_probability(lower: V) -> Tail:
    """Return the tail of a distribution by the logarithm of its distribution function."""
    return smaller(lower, pt.log1mexp(lower))


def log_gap(p: V) -> V:
    """Return the negative logarithm of one minus a probability."""
    return -pt.log1p(-p)


def within(condition: V, log_prob: V) -> V:
    """Return a log-density, minus infinity out of the support."""
    return pt.switch(condition, log_prob, -np.inf)


def _forms(
    support: Callable[..., V],
    log_prob: Form,
    tail: Callable[..., Tail],
    icdf: Form,
    mean: Form | None = None,
) -> dict[str, Form]:
    """Return the functions of a distribution; draws are quantiles of uniform numbers."""

    def density(value: V, *of: V) -> V:
        return within(support(value, *of), log_prob(value, *of))

    def quantiles(p: V, *of: V) -> V:
        return pt.switch((p >= 0.0) & (p <= 1.0), icdf(p, *of), np.nan)

    def draws(rng: V, *of: V) -> V:
        zeros, size = pt.zeros_like(of[0]), of[0].shape
        _, p = pt.random.uniform(zeros, zeros + 1.0, size=size, rng=rng, return_next_rng=True)
        return icdf(p, *of)

    made = {"LogProb": density, **of_tail(tail), "Icdf": quantiles, "Random": draws}
    return made | ({"Mean": mean} if mean is not None else {})


def _positive(value: V, *_: V) -> V:
    return value >= 0.0


def at_least_zero(value: V) -> V:
    """Return values of the support, and zero for negative ones."""
    return pt.maximum(value, 0.0)


_SERIES = [(-1.0) ** k / (k + 1.0) for k in range(12)]
"""Coefficients of log(1 + u) / u, which are enough below 0.03 in float64."""


def _shaped(z: V, xi: V) -> V:
    """Return log(1 + xi z) / xi, which is z for the shape zero, and infinite out of the support."""
    u = xi * z
    # The derivative by the shape has few digits near zero, and none at it.
    is_small = abs(u) < 0.03
    small = pt.switch(is_small, u, 0.0)
    series = _SERIES[-1]
    for coefficient in reversed(_SERIES[:-1]):
        series = series * small + coefficient
    safe = pt.switch(is_small, 1.0, xi)
    inside = pt.switch(is_small | (u <= -1.0), 1.0, u)
    outside = pt.switch(xi < 0.0, np.inf, -np.inf)
    shaped = pt.switch(is_small, z * series, pt.log1p(inside) / safe)
    return pt.switch(u <= -1.0, outside, shaped)


def _unshaped(y: V, xi: V) -> V:
    """Return the inverse of `_shaped`."""
    safe = pt.switch(pt.eq(xi, 0.0), 1.0, xi)
    return pt.switch(pt.eq(xi, 0.0), y, pt.expm1(xi * y) / safe)


def _maxwell_tail(value: V, sigma: V) -> Tail:
    y = at_least_zero(value) / (np.sqrt(2.0) * sigma)
    squares = y * y
    upper = pt.log(pt.erfcx(y) + (2.0 / np.sqrt(np.pi)) * y) - squares
    return smaller(pt.log(pt.gammainc(pt.full_like(squares, 1.5), squares)), upper)


def ratio_tail(share: V, rest: V, a: V, b: V) -> Tail:
    """Return the tail of a beta number, by it and one minus it."""
    return smaller(pt.log(pt.betainc(a, b, share)), pt.log(pt.betainc(b, a, rest)))


def _beta_prime_tail(value: V, a: V, b: V) -> Tail:
    x = at_least_zero(value)
    return ratio_tail(x / (1.0 + x), 1.0 / (1.0 + x), a, b)


def _log_beta(a: V, b: V) -> V:
    return pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(a + b)


def _odds(share: V) -> V:
    return share / (1.0 - share)


def _f_tail(value: V, n: V, m: V) -> Tail:
    return _beta_prime_tail(value * n / m, 0.5 * n, 0.5 * m)


def _f_log_prob(x: V, n: V, m: V) -> V:
    of_ratio = pt.log(n / m) + (0.5 * n - 1.0) * pt.log(n * x / m)
    return of_ratio - 0.5 * (n + m) * pt.log1p(n * x / m) - _log_beta(0.5 * n, 0.5 * m)


def _log_logistic_tail(x: V, alpha: V, beta: V) -> Tail:
    y = beta * pt.log(at_least_zero(x) / alpha)
    return smaller(-pt.softplus(-y), -pt.softplus(y))


def _secant_tail(value: V, mu: V, sigma: V) -> Tail:
    z = (value - mu) / sigma
    distance = abs(z)
    near = pt.log(pt.arctan(pt.exp(-pt.minimum(distance, 20.0))) * (2.0 / np.pi))
    # The angle of a small tangent is the tangent.
    far = np.log(2.0 / np.pi) - distance
    return Tail(pt.switch(distance < 20.0, near, far), z < 0.0)


def _log_uniform_tail(x: V, lower: V, upper: V) -> Tail:
    inner = pt.clip(x, lower, upper)
    whole = pt.log(upper / lower)
    below, above = pt.log1p((inner - lower) / lower), pt.log1p((upper - inner) / inner)
    return smaller(pt.log(below / whole), pt.log(above / whole))


def _half_logistic_tail(value: V, sigma: V) -> Tail:
    z = at_least_zero(value) / sigma
    upper = np.log(2.0) - z - pt.log1p(pt.exp(-z))
    return smaller(pt.log(pt.tanh(0.5 * z)), upper)


def _levy_tail(value: V, mu: V, c: V) -> Tail:
    root = pt.sqrt(0.5 * c / at_least_zero(value - mu))
    return smaller(
        pt.log(pt.erfcx(root)) - root * root,
        pt.log(pt.erf(root)),
    )


CLOSED_FORMS: dict[str, Mapping[str, Form]] = {
    "Rayleigh": _forms(
        _positive,
        lambda x, s: pt.log(x / s) - pt.log(s) - 0.5 * (x / s) ** 2,
        lambda x, s: of_survival(-0.5 * (at_least_zero(x) / s) ** 2),
        lambda p, s: s * pt.sqrt(2.0 * log_gap(p)),
        lambda s: s * np.sqrt(0.5 * np.pi),
    ),
    "Maxwell": _forms(
        _positive,
        lambda x, s: 2.0 * pt.log(x / s) - pt.log(s) - 0.5 * (x / s) ** 2 + 0.5 * np.log(2 / np.pi),
        _maxwell_tail,
        lambda p, s: s * pt.sqrt(2.0 * pt.gammaincinv(pt.full_like(p, 1.5), p)),
        lambda s: s * np.sqrt(8.0 / np.pi),
    ),
    "Levy": _forms(
        lambda x, mu, c: x > mu,
        lambda x, mu, c: (
            0.5 * pt.log(c / (2.0 * np.pi)) - 0.5 * c / (x - mu) - 1.5 * pt.log(x - mu)
        ),
        _levy_tail,
        lambda p, mu, c: mu + 0.5 * c / pt.erfcinv(p) ** 2,
    ),
    "Frechet": _forms(
        _positive,
        lambda x, a, s: pt.log(a / s) - (a + 1.0) * pt.log(x / s) - (x / s) ** -a,
        lambda x, a, s: of_probability(-((at_least_zero(x) / s) ** -a)),
        lambda p, a, s: s * (-pt.log(p)) ** (-1.0 / a),
        lambda a, s: pt.switch(a > 1.0, s * pt.gamma(1.0 - 1.0 / pt.maximum(a, 1.0)), np.inf),
    ),
    "GeneralizedExtremeValue": _forms(
        lambda x, mu, s, xi: xi * (x - mu) > -s,
        lambda x, mu, s, xi: (
            -pt.log(s) - (1.0 + xi) * _shaped((x - mu) / s, xi) - pt.exp(-_shaped((x - mu) / s, xi))
        ),
        lambda x, mu, s, xi: of_probability(-pt.exp(-_shaped((x - mu) / s, xi))),
        lambda p, mu, s, xi: mu + s * _unshaped(-pt.log(-pt.log(p)), xi),
    ),
    "GeneralizedPareto": _forms(
        lambda x, s, xi: (x >= 0.0) & (xi * x > -s),
        lambda x, s, xi: -pt.log(s) - (1.0 + xi) * _shaped(x / s, xi),
        lambda x, s, xi: of_survival(-_shaped(at_least_zero(x) / s, xi)),
        lambda p, s, xi: s * _unshaped(log_gap(p), xi),
    ),
    "Lomax": _forms(
        _positive,
        lambda x, a, lam: pt.log(a / lam) - (a + 1.0) * pt.log1p(x / lam),
        lambda x, a, lam: of_survival(-a * pt.log1p(at_least_zero(x) / lam)),
        lambda p, a, lam: lam * pt.expm1(log_gap(p) / a),
        lambda a, lam: pt.switch(a > 1.0, lam / (a - 1.0), np.inf),
    ),
    "LogLogistic": _forms(
        _positive,
        lambda x, a, b: (
            pt.log(b / a) + (b - 1.0) * pt.log(x / a) - 2.0 * pt.softplus(b * pt.log(x / a))
        ),
        _log_logistic_tail,
        lambda p, a, b: a * _odds(p) ** (1.0 / b),
        lambda a, b: pt.switch(b > 1.0, a * np.pi / b / pt.sin(np.pi / b), np.inf),
    ),
    "Gompertz": _forms(
        _positive,
        lambda x, eta, b: pt.log(eta / b) + x / b - eta * pt.expm1(x / b),
        lambda x, eta, b: of_survival(-eta * pt.expm1(at_least_zero(x) / b)),
        lambda p, eta, b: b * pt.log1p(log_gap(p) / eta),
    ),
    "HyperbolicSecant": _forms(
        lambda x, mu, s: pt.eq(x, x),
        lambda x, mu, s: (
            -abs(x - mu) / s - pt.log1p(pt.exp(-2.0 * abs(x - mu) / s)) + pt.log(2.0 / (np.pi * s))
        ),
        _secant_tail,
        lambda p, mu, s: (
            mu + pt.switch(p < 0.5, s, -s) * pt.log(pt.tan(0.5 * np.pi * pt.minimum(p, 1.0 - p)))
        ),
        lambda mu, s: mu + 0.0 * s,
    ),
    "HalfLogistic": _forms(
        _positive,
        lambda x, s: np.log(2.0) - pt.log(s) - x / s - 2.0 * pt.log1p(pt.exp(-x / s)),
        _half_logistic_tail,
        lambda p, s: s * (pt.log1p(p) + log_gap(p)),
        lambda s: s * np.log(4.0),
    ),
    "LogUniform": _forms(
        lambda x, lower, upper: (x >= lower) & (x <= upper),
        lambda x, lower, upper: -pt.log(x) - pt.log(pt.log(upper / lower)),
        _log_uniform_tail,
        lambda p, lower, upper: lower * pt.exp(p * pt.log(upper / lower)),
        lambda lower, upper: (upper - lower) / pt.log(upper / lower),
    ),
    "FRatio": _forms(
        _positive,
        _f_log_prob,
        _f_tail,
        lambda p, n, m: m / n * _odds(pt.betaincinv(0.5 * n, 0.5 * m, p)),
        lambda n, m: pt.switch(m > 2.0, m / (m - 2.0), np.inf) + 0.0 * n,
    ),
    "BetaPrime": _forms(
        _positive,
        lambda x, a, b: (a - 1.0) * pt.log(x) - (a + b) * pt.log1p(x) - _log_beta(a, b),
        _beta_prime_tail,
        lambda p, a, b: _odds(pt.betaincinv(a, b, p)),
        lambda a, b: pt.switch(b > 1.0, a / (b - 1.0), np.inf),
    ),
}
"""Functions of distributions of SciPy that PyMC lacks, by the ends of their names."""
