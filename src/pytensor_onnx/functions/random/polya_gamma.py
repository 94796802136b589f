"""Pólya-Gamma numbers."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.random.polya_gamma_of_large_shape import draw_large
from pytensor_onnx.functions.random.streams import (
    ATTEMPTS,
    keys,
    normals,
    positions,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops.random.sampler_ops import StandardPolyaGamma
from pytensor_onnx.ops.special import portable

PARTS = 64
"""Largest number of parts that are added; for more, five terms of the expansion are enough."""

_TERMS = 26
"""Number of terms of the series; further terms are below rounding for times up to `_longest`."""


@samples(StandardPolyaGamma, 2)
def standard_polya_gamma(state: V, h: V, z: V) -> tuple[V, V]:
    """Add parts, each drawn in two attempts at most on average, or draw many parts at once."""
    after, key, counters = keys(state, h.shape[0])
    c = pt.abs(z) / 2
    # The logarithm to base 2 of the mean number of attempts; rounding must not add a part.
    parts = pt.ceil(h * portable.log1p(portable.exp(-2 * c)) / np.log(2) - 1e-9)
    parts = pt.switch(parts < 1, 1.0, parts)
    are_many = parts > PARTS
    x = _sum(pt.zeros_like(h), key, *positions(~are_many, counters, h / parts, c, parts))
    x = draw_large(x, key, *positions(are_many, counters, h, c))
    return after, x / 4


def _sum(result: V, key: V, where: V, elements: list[V]) -> V:
    """Add Jacobi numbers, each a hitting time that is accepted.

    A Jacobi number J of shape h and tilt c, four times a Pólya-Gamma number of tilt ``z = 2 c``,
    has the transform ``E exp(-s J) = cosh(c)**h cosh(sqrt(c**2 + 2 s))**-h``. The time T at which a
    Brownian motion of drift c first hits the level h, an inverse Gaussian number, has
    ``exp(c h - h sqrt(c**2 + 2 s))``, and so

    ``E exp(-s T) = E exp(-s J) ((1 + exp(-2 sqrt(c**2 + 2 s))) / (1 + exp(-2 c)))**h``

    (P. Biane, J. Pitman and M. Yor, "Probability laws related to the Jacobi theta and Riemann zeta
    functions, and Brownian excursions", Bull. Amer. Math. Soc. 38 (2001) 435-465, section 3). Both
    are sums of jumps: the jumps of J are those of T kept with the probability
    ``1 - 2 exp(-2 / x) + 2 exp(-8 / x) - ...`` of a jump x. The last factor is the transform of the
    sum of all other jumps, which is zero with the probability ``(1 + exp(-2 c))**-h``. So this
    times the density of J is at most the density of T, for every shape. The series of
    both (N. G. Polson, J. G. Scott and J. Windle, JASA 108 (2013) 1339-1349, section 2) gives the
    probability `_is_kept` that T is J.
    """

    def attempt(k: V, key: V, counters: V, *elements: V) -> tuple[V, V, list[V]]:
        h, c, left, total = elements
        a, b, u, v = uniforms(k, key, counters, 4)
        x = _hitting_time(h, c, normals(a, b), u)
        is_new = _is_kept(x, h, v)
        left, total = left - is_new, pt.switch(is_new, total + x, total)
        return total, ~(left > 0), [counters, h, c, left, total]

    start = [*elements, pt.zeros_like(elements[-1])]
    most = np.int64(ATTEMPTS + 4 * PARTS) * (where.shape[0] > 0)
    return until_drawn(attempt, result, where, start, [key], n_steps=most)


def _hitting_time(level: V, drift: V, normal: V, u: V) -> V:
    """Return the time at which a Brownian motion hits a level.

    By J. R. Michael, W. R. Schucany and R. W. Haas, "Generating random variates using
    transformations with multiple roots", Amer. Statistician 30 (1976) 88-90.
    """
    half = normal * normal / (2 * level)
    root = level / (drift + half + pt.sqrt(half * (half + 2 * drift)))
    mean = level / drift
    is_upper = u * (1 + drift * root / level) > 1
    return pt.switch(is_upper, mean * (mean / root), root)


def _is_kept(x: V, h: V, v: V) -> V:
    """Return whether uniform numbers are below the ratio of the densities of J and T.

    The ratio is the sum over n of ``(-1)**n a_n`` with ``a_0 = 1`` and ``a_n / a_(n-1) =
    (n - 1 + h) / n * (2 n + h) / (2 n - 2 + h) * exp(-2 (2 n - 1 + h) / x)``. The quotients
    decrease from the second on: once one is below 1, the sum is between each two partial sums
    that follow.
    """
    power, step = portable.exp(-2 * (1 + h) / x), portable.exp(-4 / x)

    def quotient(n: int | V, h: V, power: V) -> V:
        return (n - 1 + h) / n * ((2 * n + h) / (2 * n - 2 + h)) * power

    one = (2 + h) * power
    two = one * quotient(2, h, power * step)
    is_alternating = quotient(3, h, power * step * step) <= 1
    is_below, is_above = v < 1 - one, v >= 1 - one + two
    is_known = (is_alternating & (is_below | is_above)) | (x > _longest(h))
    where, (v, *open_) = positions(~is_known, v, h, power, step)

    def add(n: V, term: V, total: V, power: V, h: V, step: V) -> list[V]:
        term = -term * quotient(n, h, power)
        return [n + 1, term, total + term, power * step, h, step]

    ones = pt.ones_like(v)
    h, power, step = open_
    start = [pt.constant(1.0), ones, ones, power, h, step]
    ratio = iterate(add, start, n_steps=np.int64(_TERMS) * (where.shape[0] > 0))[2]
    # NaN is kept, so that a tilt that is NaN needs no more attempts.
    return (is_alternating & is_below)[where].set(~(v >= ratio))


def _longest(h: V) -> V:
    """Return times beyond which the probability of J is below 1e-17."""
    return 32 + 2 * h
