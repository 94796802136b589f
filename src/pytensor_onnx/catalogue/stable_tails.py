"""Functions of PyMC's distributions by forms that keep their digits in both tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.closed_forms import (
    at_least_zero,
    of_survival,
    ratio_tail,
    smaller,
    within,
)
from pytensor_onnx.catalogue.further_functions import Functions, of_tail
from pytensor_onnx.catalogue.integrals import Tail, integral, log_gamma_tails, scaled_i0

ROOT_TWO = float(np.sqrt(2.0))
LOG_ROOT = 0.5 * float(np.log(2.0 * np.pi))


def normal_tail(z: V) -> Tail:
    """Return the tail of the standard normal distribution."""
    return Tail(pt.log(0.5 * pt.erfcx(abs(z) / ROOT_TWO)) - 0.5 * z * z, z < 0.0)


def _normal_quantile(p: V) -> V:
    return -ROOT_TWO * pt.erfcinv(2.0 * p)


def _logit(x: V) -> V:
    inside = pt.clip(x, 0.0, 1.0)
    return pt.log(inside) - pt.log1p(-inside)


def _logit_normal(x: V, mu: V, sigma: V) -> V:
    z = (_logit(x) - mu) / sigma
    return within(
        (x > 0.0) & (x < 1.0),
        -0.5 * z * z - pt.log(sigma) - LOG_ROOT - pt.log(x) - pt.log1p(-x),
    )


def _skew_normal_gradient(x: V, mu: V, sigma: V, alpha: V) -> list[V]:
    """Return derivatives by the ratio of the density to the tail, which does not overflow."""
    z = (x - mu) / sigma
    y = alpha * z
    far = pt.sqrt(2.0 / np.pi) / pt.erfcx(-pt.minimum(y, 0.0) / ROOT_TWO)
    near = pt.sqrt(2.0 / np.pi) * pt.exp(-0.5 * y * y) / pt.erfc(-pt.maximum(y, 0.0) / ROOT_TWO)
    ratio = pt.switch(y < 0.0, far, near)
    by_z = alpha * ratio - z
    return [by_z / sigma, -by_z / sigma, -(1.0 + z * by_z) / sigma, z * ratio]


def _log_between(low: V, high: V, width: V) -> V:
    """Return the logarithm of the probability of normal numbers between standard bounds."""
    # On the lower side, where tails have their digits.
    is_above = low + high > 0.0
    a, b = pt.switch(is_above, -high, low), pt.switch(is_above, -low, high)
    step = pt.minimum(width, 1.0)
    inner = integral(lambda s, a: pt.exp(-s * (a + 0.5 * s)), pt.zeros_like(step), step, a)
    narrow = pt.log(inner) - 0.5 * a * a - LOG_ROOT
    # Differences of tails keep their digits between distant bounds.
    end = pt.minimum(b, 0.0)
    beyond = pt.exp(0.5 * (end - a) * (end + a)) * pt.erfcx(-pt.minimum(a, 0.0) / ROOT_TWO)
    below = pt.log(0.5 * (pt.erfcx(-end / ROOT_TWO) - beyond)) - 0.5 * end * end
    across = pt.log1p(-0.5 * (pt.erfc(-a / ROOT_TWO) + pt.erfc(pt.maximum(b, 0.0) / ROOT_TWO)))
    return pt.switch(width < 1.0, narrow, pt.switch(b < 0.0, below, across))


def _truncated_normal(x: V, mu: V, sigma: V, lower: V, upper: V) -> Tail:
    inner = pt.clip(x, lower, upper)

    def log_share(low: V, high: V) -> V:
        return _log_between((low - mu) / sigma, (high - mu) / sigma, (high - low) / sigma)

    whole = log_share(lower, upper)
    return smaller(log_share(lower, inner) - whole, log_share(inner, upper) - whole)


def _student_t(x: V, nu: V, mu: V, sigma: V) -> Tail:
    z = (x - mu) / sigma
    squares = z * z
    half = pt.full_like(squares, 0.5)
    far = 0.5 * pt.betainc(0.5 * nu, half, nu / (nu + squares))
    near = 0.5 - 0.5 * pt.betainc(half, 0.5 * nu, squares / (nu + squares))
    return Tail(pt.log(pt.switch(squares < 1.0, near, far)), z < 0.0)


def _half_student_t_icdf(p: V, nu: V, sigma: V) -> V:
    is_lower = p < 0.5
    half = pt.full_like(nu, 0.5)
    share = pt.betaincinv(
        pt.switch(is_lower, half, 0.5 * nu),
        pt.switch(is_lower, 0.5 * nu, half),
        pt.switch(is_lower, p, 1.0 - p),
    )
    odds = pt.switch(is_lower, share / (1.0 - share), (1.0 - share) / share)
    return sigma * pt.sqrt(nu * odds)


def _skew_shares(x: V, a: V, b: V, mu: V, sigma: V) -> tuple[V, V]:
    """Return the share of Jones and Faddy (2003) whose distribution is beta, and its rest."""
    t = (x - mu) / sigma
    root = pt.sqrt(a + b + t * t)
    large = 0.5 + 0.5 * abs(t) / root
    small = 0.5 * (a + b) / (root * (root + abs(t)))
    return pt.switch(t < 0.0, small, large), pt.switch(t < 0.0, large, small)


def _skew_student_t(x: V, a: V, b: V, mu: V, sigma: V) -> V:
    share, rest = _skew_shares(x, a, b, mu, sigma)
    log_beta = pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(a + b)
    powers = (a + 0.5) * pt.log(2.0 * share) + (b + 0.5) * pt.log(2.0 * rest)
    constant = (a + b - 1.0) * np.log(2.0) + log_beta + 0.5 * pt.log(a + b) + pt.log(sigma)
    return powers - constant


def _skew_student_t_icdf(p: V, a: V, b: V, mu: V, sigma: V) -> V:
    is_lower = p < 0.5
    share = pt.betaincinv(
        pt.switch(is_lower, a, b), pt.switch(is_lower, b, a), pt.switch(is_lower, p, 1.0 - p)
    )
    size = 0.5 * (1.0 - 2.0 * share) * pt.sqrt((a + b) / (share * (1.0 - share)))
    return mu + sigma * pt.switch(is_lower, -size, size)


def _moyal(x: V, mu: V, sigma: V) -> Tail:
    y = pt.exp(-0.5 * (x - mu) / sigma) / ROOT_TWO
    return smaller(pt.log(pt.erfcx(y)) - y * y, pt.log(pt.erf(y)))


def _gamma(x: V, alpha: V, beta: V) -> Tail:
    y = beta * at_least_zero(x)
    return smaller(*log_gamma_tails(alpha, y))


def _inverse_gamma(x: V, alpha: V, beta: V) -> Tail:
    y = beta / at_least_zero(x)
    return smaller(*reversed(log_gamma_tails(alpha, y)))


def _beta(x: V, a: V, b: V) -> Tail:
    share = pt.clip(x, 0.0, 1.0)
    return ratio_tail(share, 1.0 - share, a, b)


def _uniform(x: V, lower: V, upper: V) -> Tail:
    inner, whole = pt.clip(x, lower, upper), upper - lower
    return smaller(pt.log((inner - lower) / whole), pt.log((upper - inner) / whole))


def _rice(x: V, nu: V, sigma: V) -> V:
    z = (x - nu) / sigma
    safe = at_least_zero(x)
    bessel = pt.log(scaled_i0(safe * nu / sigma**2))
    return within(x >= 0.0, pt.log(safe / sigma) - pt.log(sigma) - 0.5 * z * z + bessel)


def _wald_gradient(x: V, mu: V, lam: V) -> list[V]:
    distance = (x - mu) / mu
    by_value = -1.5 / x - 0.5 * lam * distance * (x + mu) / (mu * x * x)
    return [by_value, lam * distance / (mu * mu), 0.5 / lam - 0.5 * distance * distance / x]


def _survival(log_upper: Callable[..., V]) -> Functions:
    return of_tail(lambda *x: of_survival(log_upper(*x)))


STABLE_TAILS: dict[str, Functions] = {
    "SkewNormal": {"LogProbGrad": _skew_normal_gradient},
    "TruncatedNormal": of_tail(_truncated_normal),
    "StudentT": of_tail(_student_t),
    "HalfStudentT": {"Icdf": _half_student_t_icdf},
    "SkewStudentT": {
        "LogProb": _skew_student_t,
        **of_tail(lambda x, a, b, mu, s: ratio_tail(*_skew_shares(x, a, b, mu, s), a, b)),
        "Icdf": _skew_student_t_icdf,
    },
    "LogitNormal": {
        "LogProb": _logit_normal,
        **of_tail(lambda x, mu, sigma: normal_tail((_logit(x) - mu) / sigma)),
        "Icdf": lambda p, mu, sigma: pt.sigmoid(mu + sigma * _normal_quantile(p)),
    },
    "Moyal": of_tail(_moyal),
    "Gamma": of_tail(_gamma),
    "InverseGamma": {
        **of_tail(_inverse_gamma),
        "Icdf": lambda p, alpha, beta: beta / pt.gammainccinv(alpha, p),
    },
    "ChiSquared": of_tail(lambda x, nu: _gamma(x, 0.5 * nu, pt.full_like(nu, 0.5))),
    "Beta": of_tail(_beta),
    "Weibull": _survival(lambda x, alpha, beta: -((at_least_zero(x) / beta) ** alpha)),
    "Pareto": _survival(lambda x, alpha, m: -alpha * pt.log1p(at_least_zero(x - m) / m)),
    "Uniform": of_tail(_uniform),
    "Rice": {"LogProb": _rice},
    "Wald": {"LogProbGrad": _wald_gradient},
}
"""Functions by the ends of their names, beside those of `CONTINUOUS_FORMULAS`."""
