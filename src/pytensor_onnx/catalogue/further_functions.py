"""Functions of distributions that PyMC lacks, or derives with fewer digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.integrals import (
    Tail,
    log_gamma_tails,
    quantile,
    rice,
    skew_normal,
    von_mises,
)
from pytensor_onnx.functions.loops import iterate

Functions = Mapping[str, Callable[..., V]]

LARGEST_BIT = 30
"""Quantiles of integers without a bound are searched below two to one more than this."""


def of_tail(tail: Callable[..., Tail]) -> dict[str, Callable[..., V]]:
    """Return the distribution functions of a function that returns a tail."""
    return {
        "Cdf": lambda *x: tail(*x).cdf(),
        "LogCdf": lambda *x: tail(*x).log_cdf(),
        "LogSurvival": lambda *x: tail(*x).log_survival(),
    }


def _asymmetric_laplace(value: V, kappa: V, mu: V, b: V) -> Tail:
    y = (value - mu) * b
    is_lower = y < 0.0
    lower = y / kappa - pt.log1p(1.0 / kappa**2)
    return Tail(pt.switch(is_lower, lower, -kappa * y - pt.log1p(kappa**2)), is_lower)


def _asymmetric_laplace_icdf(p: V, kappa: V, mu: V, b: V) -> V:
    squares = kappa**2
    lower = kappa * (pt.log(p) + pt.log1p(1.0 / squares))
    upper = -(pt.log1p(-p) + pt.log1p(squares)) / kappa
    return mu + pt.switch(p * (1.0 + squares) < squares, lower, upper) / b


def _half_t(value: V, nu: V, sigma: V) -> Tail:
    squares = (pt.maximum(value, 0.0) / sigma) ** 2
    half = pt.full_like(nu, 0.5)
    lower = pt.betainc(half, 0.5 * nu, squares / (nu + squares))
    upper = pt.betainc(0.5 * nu, half, nu / (nu + squares))
    return Tail(pt.log(pt.minimum(lower, upper)), lower < upper)


def _skew_normal_icdf(p: V, mu: V, sigma: V, alpha: V) -> V:
    zeros, ones = pt.zeros_like(p), pt.ones_like(p)

    def density(z: V, alpha: V) -> V:
        return pm.logp(pm.SkewNormal.dist(mu=0.0, sigma=1.0, alpha=alpha), z)

    def tail(z: V, alpha: V) -> Tail:
        return skew_normal(z, pt.zeros_like(z), pt.ones_like(z), alpha)

    return mu + sigma * quantile(tail, density, p, zeros, ones, alpha)


def _rice_icdf(p: V, nu: V, sigma: V) -> V:
    center = pt.sqrt(nu**2 + sigma**2)
    return quantile(
        rice, _density(pm.Rice, "nu", "sigma"), p, center, sigma + nu, nu, sigma, least=0.0
    )


def _von_mises_icdf(p: V, mu: V, kappa: V) -> V:
    found = quantile(
        von_mises, _density(pm.VonMises, "mu", "kappa"), p, mu, pt.ones_like(mu), mu, kappa
    )
    return pt.switch(pt.isnan(p), np.nan, pt.clip(found, -np.pi, np.pi))


def _density(kind: Any, *names: str) -> Callable[..., V]:
    def density(value: V, *parameters: V) -> V:
        return pm.logp(kind.dist(**dict(zip(names, parameters, strict=True))), value)

    return density


def _half_normal(value: V, sigma: V) -> Tail:
    z = pt.maximum(value, 0.0) / (sigma * np.sqrt(2.0))
    is_lower = z < 0.5
    return Tail(
        pt.log(pt.switch(is_lower, pt.erf(z), pt.erfcx(z))) - _square(z, ~is_lower), is_lower
    )


def _square(z: V, condition: V) -> V:
    return pt.switch(condition, z * z, 0.0)


def _cauchy(value: V, alpha: V, beta: V) -> Tail:
    z = value - alpha
    return Tail(pt.log(pt.arctan2(beta, abs(z)) / np.pi), z < 0.0)


def _half_cauchy(value: V, beta: V) -> Tail:
    x = pt.maximum(value, 0.0)
    is_lower = x < beta
    angle = pt.arctan2(pt.switch(is_lower, x, beta), pt.switch(is_lower, beta, x))
    return Tail(pt.log(angle * (2.0 / np.pi)), is_lower)


def _cauchy_icdf(p: V, alpha: V, beta: V) -> V:
    # The tangent of an angle near a right one has few digits, but not its reciprocal.
    is_lower = p < 0.5
    far = beta / pt.tan(np.pi * pt.minimum(p, 1.0 - p))
    near = beta * pt.tan(np.pi * (p - 0.5))
    found = pt.switch(abs(p - 0.5) < 0.25, near, pt.switch(is_lower, -far, far))
    return pt.switch((p >= 0.0) & (p <= 1.0), alpha + found, np.nan)


def _half_cauchy_icdf(p: V, beta: V) -> V:
    far = beta / pt.tan(0.5 * np.pi * (1.0 - p))
    found = pt.switch(p < 0.5, beta * pt.tan(0.5 * np.pi * p), far)
    return pt.switch((p >= 0.0) & (p <= 1.0), found, np.nan)


def _ex_gaussian(value: V, mu: V, sigma: V, nu: V) -> Tail:
    """Return a tail by scaled error functions: that below has few digits for a small sigma/nu."""
    root = np.sqrt(2.0)
    z, rate = (value - mu) / sigma, sigma / nu
    is_lower = z < pt.minimum(rate, 1.0)
    # No function overflows on the side that is not taken.
    near = pt.minimum(z, pt.minimum(rate, 1.0))
    lower = pt.erfcx(-near / root) - pt.erfcx((rate - near) / root)
    lower = pt.log(0.5 * lower) - 0.5 * near * near
    far = pt.switch(
        z < rate,
        pt.log(0.5 * pt.erfcx(pt.maximum(rate - z, 0.0) / root)) - 0.5 * z * z,
        rate * (0.5 * rate - z) + pt.log(0.5 * pt.erfc(pt.minimum(rate - z, 0.0) / root)),
    )
    normal = pt.log(0.5 * pt.erfc(z / root))
    return Tail(pt.switch(is_lower, lower, pt.logaddexp(normal, far)), is_lower)


def _ex_gaussian_icdf(p: V, mu: V, sigma: V, nu: V) -> V:
    density = _density(pm.ExGaussian, "mu", "sigma", "nu")
    size = pt.sqrt(sigma**2 + nu**2)
    return quantile(_ex_gaussian, density, p, mu + nu, size, mu, sigma, nu)


def _wald(value: V, mu: V, lam: V) -> Tail:
    of = pm.Wald.dist(mu=mu, lam=lam)
    lower, upper = pm.logcdf(of, value), pm.logccdf(of, value)
    is_lower = lower < -np.log(2.0)
    return Tail(pt.switch(is_lower, lower, upper), is_lower)


def _wald_icdf(p: V, mu: V, lam: V) -> V:
    size = mu + mu * pt.sqrt(mu / lam)
    return quantile(_wald, _density(pm.Wald, "mu", "lam"), p, mu, size, mu, lam, least=0.0)


CONTINUOUS_FORMULAS: dict[str, Functions] = {
    "SkewNormal": {**of_tail(skew_normal), "Icdf": _skew_normal_icdf},
    "HalfNormal": of_tail(_half_normal),
    "Cauchy": {**of_tail(_cauchy), "Icdf": _cauchy_icdf},
    "HalfCauchy": {**of_tail(_half_cauchy), "Icdf": _half_cauchy_icdf},
    "ExGaussian": {**of_tail(_ex_gaussian), "Icdf": _ex_gaussian_icdf},
    "HalfStudentT": of_tail(_half_t),
    "AsymmetricLaplace": {**of_tail(_asymmetric_laplace), "Icdf": _asymmetric_laplace_icdf},
    "VonMises": {**of_tail(von_mises), "Icdf": _von_mises_icdf},
    "Wald": {"Icdf": _wald_icdf},
    "Rice": {**of_tail(rice), "Icdf": _rice_icdf},
}


def real(integers: V) -> V:
    """Return integers as numbers of the function's dtype."""
    return integers.astype(pytensor.config.floatX)


def least_integer(cdf: Callable[..., V], probability: V, *parameters: V) -> V:
    """Return the least integer from zero on with a cumulative probability, by its bits."""

    def step(bit: V, count: V, probability: V, *parameters: V) -> list[V]:
        # The number of integers whose cumulative probability is too small.
        is_below = cdf(count + bit - 1, *parameters) < probability
        return [count + pt.switch(is_below, bit, 0)]

    bits = pt.constant(2 ** np.arange(LARGEST_BIT, -1, -1, dtype="int64"))
    zeros = pt.zeros_like(probability).astype("int64")
    (count,) = iterate(
        step,
        [zeros],
        [probability, *parameters],
        n_steps=LARGEST_BIT + 1,
        sequences=[bits],
    )
    return count


def by_search(kind: Any, names: tuple[str, ...], last: str = "") -> Callable[..., V]:
    """Return the quantiles of a distribution of PyMC with the parameters of these names."""

    def cdf(value: V, *parameters: V) -> V:
        of = kind.dist(**dict(zip(names, parameters, strict=True)))
        return pt.exp(pm.logcdf(of, value))

    def icdf(probability: V, *parameters: V) -> V:
        count = least_integer(cdf, probability, *parameters)
        return pt.minimum(count, parameters[names.index(last)]) if last else count

    return icdf


def sums(log_prob: Callable[..., V], value: V, last: V, *parameters: V) -> tuple[V, V]:
    """Return the sums of probabilities up to values and above them, of integers up to the last."""

    def step(i: V, lower: V, upper: V, value: V, last: V, *parameters: V) -> list[V]:
        at = pt.zeros_like(value) + i
        share = pt.switch(i <= last, pt.exp(log_prob(at, *parameters)), 0.0)
        share = share.astype(pytensor.config.floatX)
        is_lower = i <= value
        return [lower + pt.switch(is_lower, share, 0.0), upper + pt.switch(is_lower, 0.0, share)]

    zeros = pt.zeros_like(real(value))
    n_steps = _largest(last) + 1
    lower, upper = iterate(
        step,
        [zeros, zeros],
        [value, last, *parameters],
        n_steps=n_steps,
        sequences=[pt.arange(n_steps)],
    )
    return lower, upper


def _largest(integers: V) -> V:
    """Return the largest integer, zero if there are none."""
    return pt.max(pt.concatenate([integers, pt.zeros(1, dtype="int64")]))


def first_integer(log_prob: Callable[..., V], probability: V, last: V, *parameters: V) -> V:
    """Return the least integer with a cumulative probability, by the sum of probabilities."""

    def step(i: V, total: V, count: V, probability: V, *parameters: V) -> list[V]:
        at = pt.zeros_like(count) + i
        total = total + pt.exp(log_prob(at, *parameters)).astype(pytensor.config.floatX)
        return [total, count + (total < probability)]

    n_steps = _largest(last) + 1
    zeros = pt.zeros_like(probability)
    _, count = iterate(
        step,
        [zeros, zeros.astype("int64")],
        [probability, *parameters],
        n_steps=n_steps,
        sequences=[pt.arange(n_steps)],
    )
    return pt.minimum(count, last)


def by_sums(log_prob: Callable[..., V], last: Callable[..., V]) -> Functions:
    """Return the functions of a distribution on 0, 1, …, whose probabilities are summed."""
    return {
        "Cdf": lambda v, *p: sums(log_prob, v, last(*p), *p)[0],
        "LogCdf": lambda v, *p: pt.log(sums(log_prob, v, last(*p), *p)[0]),
        "LogSurvival": lambda v, *p: pt.log(sums(log_prob, v, last(*p), *p)[1]),
        "Icdf": lambda q, *p: first_integer(log_prob, q, last(*p), *p),
    }


def _beta_binomial(value: V, n: V, alpha: V, beta: V) -> V:
    return pm.logp(pm.BetaBinomial.dist(n=n, alpha=alpha, beta=beta), value)


def _hyper_geometric(value: V, size: V, k: V, n: V) -> V:
    return pm.logp(pm.HyperGeometric.dist(N=size, k=k, n=n), value)


def _above(value: V, survival: V) -> V:
    """Return the logarithm of a survival function, which is one below zero."""
    return pt.switch(value < 0, 0.0, pt.log(survival))


def _poisson(value: V, mu: V) -> V:
    lower, _ = log_gamma_tails(real(pt.maximum(value, 0)) + 1.0, mu)
    return pt.switch(value < 0, 0.0, lower)


def _binomial(value: V, n: V, p: V) -> V:
    within = pt.clip(value, 0, pt.maximum(n - 1, 0))
    survival = pt.betainc(real(within) + 1.0, real(pt.maximum(n - within, 1)), p)
    return pt.switch(value >= n, -np.inf, _above(value, survival))


def _negative_binomial(value: V, mu: V, alpha: V) -> V:
    return _above(value, pt.betainc(real(pt.maximum(value, 0)) + 1.0, alpha, mu / (mu + alpha)))


def _discrete_weibull(value: V, q: V, beta: V) -> V:
    return pt.log(q) * real(pt.maximum(value + 1, 0)) ** beta


def _discrete_weibull_log_prob(value: V, q: V, beta: V) -> V:
    k = real(pt.maximum(value, 1))
    power = k**beta
    is_zero = value <= 0
    start = pt.switch(is_zero, 0.0, power)
    step = pt.switch(is_zero, 1.0, power * pt.expm1(beta * pt.log1p(1.0 / k)))
    log_prob = start * pt.log(q) + pt.log1mexp(step * pt.log(q))
    return pt.switch(value < 0, -np.inf, log_prob)


def _inflated(survival: Callable[..., V]) -> Callable[..., V]:
    def log_survival(value: V, psi: V, *parameters: V) -> V:
        return pt.switch(value < 0, 0.0, pt.log(psi) + survival(value, *parameters))

    return log_survival


def _inflated_draws(kind: Any, *names: str) -> Callable[..., V]:
    """Return draws that are zero, or those of another distribution."""

    def draws(rng: V, psi: V, *parameters: V) -> V:
        size = psi.shape
        after, uniform = pt.random.uniform(
            pt.zeros_like(psi), pt.ones_like(psi), size=size, rng=rng, return_next_rng=True
        )
        of = dict(zip(names, parameters, strict=True))
        return pt.switch(uniform < psi, kind.dist(**of, size=size, rng=after), 0)

    return draws


DISCRETE_FORMULAS: dict[str, Functions] = {
    "Binomial": {"LogSurvival": _binomial, "Icdf": by_search(pm.Binomial, ("n", "p"), "n")},
    "BetaBinomial": by_sums(_beta_binomial, lambda n, alpha, beta: n),
    "Poisson": {"LogSurvival": _poisson, "Icdf": by_search(pm.Poisson, ("mu",))},
    "NegativeBinomial": {
        "LogSurvival": _negative_binomial,
        "Icdf": by_search(pm.NegativeBinomial, ("mu", "alpha")),
    },
    "HyperGeometric": by_sums(_hyper_geometric, lambda size, k, n: pt.minimum(k, n)),
    "DiscreteWeibull": {
        "LogProb": _discrete_weibull_log_prob,
        "LogSurvival": _discrete_weibull,
        "Icdf": by_search(pm.DiscreteWeibull, ("q", "beta")),
    },
    "ZeroInflatedPoisson": {
        "LogSurvival": _inflated(_poisson),
        "Icdf": by_search(pm.ZeroInflatedPoisson, ("psi", "mu")),
        "Random": _inflated_draws(pm.Poisson, "mu"),
    },
    "ZeroInflatedBinomial": {
        "LogSurvival": _inflated(_binomial),
        "Icdf": by_search(pm.ZeroInflatedBinomial, ("psi", "n", "p"), "n"),
        "Random": _inflated_draws(pm.Binomial, "n", "p"),
    },
    "ZeroInflatedNegativeBinomial": {
        "LogSurvival": _inflated(_negative_binomial),
        "Icdf": by_search(pm.ZeroInflatedNegativeBinomial, ("psi", "mu", "alpha")),
        "Random": _inflated_draws(pm.NegativeBinomial, "mu", "alpha"),
    },
}
