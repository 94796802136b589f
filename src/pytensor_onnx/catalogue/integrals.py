"""Distribution functions by Gauss' quadrature of a tail, and quantiles by Newton's method.

A tail is integrated from its value outwards, relative to the density there, so that no digits
cancel and its logarithm does not underflow. 64 nodes reach exp(-40) of the density.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate

DROP = 40.0
"""Negative logarithm of the density where a tail ends, relative to its beginning."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class Tail(NamedTuple):
    """One side of a value: the logarithm of its probability, and whether it is the lower one."""

    log_probability: V
    is_lower: V

    def cdf(self) -> V:
        """Return the probability of values up to the given one."""
        lower = pt.exp(self.log_probability)
        return pt.switch(self.is_lower, lower, -pt.expm1(self.log_probability))

    def log_cdf(self) -> V:
        """Return the logarithm of the probability of values up to the given one."""
        tail = self.log_probability
        return pt.switch(self.is_lower, tail, pt.log1mexp(tail))

    def log_survival(self) -> V:
        """Return the logarithm of the probability of values above the given one."""
        tail = self.log_probability
        return pt.switch(self.is_lower, pt.log1mexp(tail), tail)


def log_gamma_tails(a: V, x: V) -> tuple[V, V]:
    """Return the logarithms of the incomplete gamma functions, also where they underflow.

    There the lower one is its series, whose rest is geometric, and the upper one Legendre's
    continued fraction.
    """
    lower, upper = pt.gammainc(a, x), pt.gammaincc(a, x)
    fraction = x + (2.0 * _TERMS + 1.0) - a
    inner = pt.minimum(x, a)
    series = 1.0 / (1.0 - inner / (a + _TERMS + 1.0))
    for k in range(_TERMS, 0, -1):
        series = 1.0 + inner / (a + float(k)) * series
        fraction = x + (2.0 * k - 1.0) - a - k * (k - a) / fraction
    power = a * pt.log(x) - x - pt.gammaln(a)
    least = float(np.finfo(x.type.dtype).tiny) * 1e8
    log_lower = pt.switch(lower < least, power - pt.log(a) + pt.log(series), pt.log(lower))
    return log_lower, pt.switch(upper < least, power - pt.log(fraction), pt.log(upper))


_TERMS = 24
"""Terms of a series where it is less than the least number of its dtype."""


def integral(function: Callable[..., V], lower: V, upper: V, *parameters: V) -> V:
    """Return integrals of a function of a column of points, one for each element of vectors."""
    dtype = lower.type.dtype
    half = 0.5 * (upper - lower)
    nodes = lower[:, None] + half[:, None] * (_NODES + 1.0).astype(dtype)
    values = function(nodes, *(x[:, None] for x in parameters))
    return half * (values * _WEIGHTS.astype(dtype)).sum(axis=1)


def skew_normal(value: V, mu: V, sigma: V, alpha: V) -> Tail:
    """Return the tail of the skew normal distribution on the side of the value.

    The tail on the thin side has the density ``phi(x) erfc(|alpha x| / sqrt(2))``; that on the
    other side is the tail of two normal ones without the thin tail.
    """
    z = (value - mu) / sigma
    x, a = abs(z), abs(alpha)
    rate = 1.0 + a * a
    inner = integral(
        lambda s, x, a, rate: (
            pt.exp(-0.5 * rate * (s - x) * (s + x)) * pt.erfcx(a * s / np.sqrt(2.0))
        ),
        x,
        pt.sqrt(x * x + 2.0 * DROP / rate),
        *(x, a, rate),
    ) / np.sqrt(2.0 * np.pi)
    thin = pt.log(inner) - 0.5 * rate * x * x
    wide = pt.log(pt.erfcx(x / np.sqrt(2.0)) - pt.exp(-0.5 * a * a * x * x) * inner)
    is_thin = pt.eq(z < 0.0, alpha >= 0.0)
    return Tail(pt.switch(is_thin, thin, wide - 0.5 * x * x), z < 0.0)


def rice(value: V, nu: V, sigma: V) -> Tail:
    """Return the smaller tail of the Rice distribution: Marcum's function or its complement."""
    a, b = nu / sigma, pt.maximum(value, 0.0) / sigma
    is_lower = b < pt.sqrt(a * a + 1.0)
    reach = pt.sqrt((b - a) ** 2 + 2.0 * DROP)
    inner = integral(
        lambda s, a, b: s * pt.exp(-0.5 * (s - b) * (s + b - 2.0 * a)) * scaled_i0(a * s),
        pt.switch(is_lower, pt.maximum(a - reach, 0.0), b),
        pt.switch(is_lower, b, a + reach),
        *(a, b),
    )
    return Tail(pt.log(inner) - 0.5 * (b - a) ** 2, is_lower)


def scaled_i0(x: V) -> V:
    """Return the modified Bessel function of order 0, times ``exp(-|x|)``."""
    return pt.ive(pt.zeros_like(x), x)


def von_mises(value: V, mu: V, kappa: V) -> Tail:
    """Return a tail of the von Mises distribution, whose angles are in [-pi, pi].

    For a location that is not negative, the lower tail has a part beyond the opposite angle, which
    is near pi. The other locations are mirrored.
    """
    sign = pt.switch(mu < 0.0, -1.0, 1.0).astype(value.type.dtype)
    m = abs(mu)
    y = sign * value - m

    def side(t: V) -> V:
        # Probability between an angle t in [0, pi] from the location, and the opposite one.
        sine = pt.sin(0.5 * t)
        far = 2.0 * pt.arcsin(pt.sqrt(pt.minimum(sine * sine + 0.5 * DROP / kappa, 1.0)))
        inner = integral(
            lambda s, t, kappa: pt.exp(
                -2.0 * kappa * pt.sin(0.5 * (s + t)) * pt.sin(0.5 * (s - t))
            ),
            t,
            pt.maximum(far, t),
            *(t, kappa),
        )
        return inner * pt.exp(-2.0 * kappa * sine * sine) / (2.0 * np.pi * scaled_i0(kappa))

    beyond, here = side(np.pi - m), side(pt.switch(y < -np.pi, y + 2.0 * np.pi, abs(y)))
    lower = pt.switch(y < -np.pi, beyond - here, beyond + here)
    tail = pt.switch(y > 0.0, here - beyond, lower)
    is_lower = pt.eq(y <= 0.0, mu >= 0.0)
    within = pt.log(pt.clip(tail, 0.0, 1.0))
    # The sides cancel near the ends, whose distance has the digits of pi in two parts.
    high_part = np.asarray(np.pi, value.type.dtype)
    low_part = np.asarray(np.pi - np.float64(high_part) + _REST * (high_part.itemsize == 8))
    # Without the bounds between them, the two constants would be added first.
    gap = pt.clip(high_part - abs(value), 0.0, _NEAR)
    is_near, is_below = gap < _NEAR, value < 0.0
    gap = pt.maximum(gap + low_part.astype(value.type.dtype), 0.0)
    near = _near_end(gap, pt.switch(is_below, mu, -mu), kappa)
    return Tail(pt.switch(is_near, near, within), pt.switch(is_near, is_below, is_lower))


_REST = 1.2246467991473532e-16
"""The number pi without the one of float64."""

_NEAR = 0.1
"""Largest distance of an angle from the end, which is narrow for 64 nodes."""


def _near_end(gap: V, mu: V, kappa: V) -> V:
    """Return the logarithm of the probability within a distance of -pi."""
    inner = integral(
        lambda s, gap, mu, kappa: pt.exp(
            2.0 * kappa * pt.sin(0.5 * (s + gap) - mu) * pt.sin(0.5 * (s - gap))
        ),
        pt.zeros_like(gap),
        gap,
        *(gap, mu, kappa),
    )
    cosine = pt.cos(0.5 * (gap - mu))
    return pt.log(inner / (2.0 * np.pi * scaled_i0(kappa))) - 2.0 * kappa * cosine * cosine


def quantile(
    tail: Callable[..., Tail],
    density: Callable[..., V],
    probability: V,
    center: V,
    scale: V,
    *parameters: V,
    least: float | None = None,
) -> V:
    """Return quantiles by Newton's method for the logarithm of the smaller tail, in brackets.

    Parameters
    ----------
    tail, density
        Functions of the value and the parameters: a tail, and the logarithm of the density.
    probability
        Cumulative probabilities.
    center, scale
        A value near the middle, and the size of the distribution.
    least
        Bound of the values; none for real numbers.
    """
    dtype = probability.type.dtype
    reach = 2.0**10 * scale
    low = center - reach if least is None else pt.full_like(center, least)
    target = pt.switch(probability < 0.5, pt.log(probability), pt.log1p(-probability))

    def step(x: V, low: V, high: V, *given: V) -> tuple[list[V], until]:
        probability, target, *parameters = given
        at = tail(x, *parameters)
        is_lower = probability < 0.5
        found = pt.switch(is_lower, at.log_cdf(), at.log_survival())
        error = pt.switch(is_lower, found - target, target - found)
        low, high = pt.switch(error < 0.0, x, low), pt.switch(error < 0.0, high, x)
        after = x - error * pt.exp(found - density(x, *parameters))
        middle = 0.5 * (low + high)
        # A comparison with NaN is false.
        after = pt.switch((after > low) & (after < high), after, middle)
        moved = abs(after - x) > np.finfo(dtype).eps * abs(after)
        return [after, low, high], until(~moved.any())

    found, *_ = iterate(
        step,
        [center, low, center + reach],
        [probability, target, *parameters],
        n_steps=100,
    )
    lowest = -np.inf if least is None else least
    found = pt.switch(pt.eq(probability, 0.0), lowest, found)
    found = pt.switch(pt.eq(probability, 1.0), np.inf, found)
    return pt.switch((probability >= 0.0) & (probability <= 1.0), found, np.nan)
