"""Draws of the Pólya-gamma distribution."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.random.polya_gamma_coefficients import EXPANSION
from pytensor_onnx.functions.random.streams import (
    ATTEMPTS,
    is_any,
    keys,
    normals,
    positions,
    put,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.functions.special.arithmetic import horner
from pytensor_onnx.functions.special.exponential import sine_and_cosine
from pytensor_onnx.ops.random.draws import StandardPolyaGamma
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
    most = np.int64(ATTEMPTS + 4 * PARTS) * is_any(where)
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
    ratio = iterate(add, start, n_steps=np.int64(_TERMS) * is_any(where))[2]
    # NaN is kept, so that a tilt that is NaN needs no more attempts.
    return put(is_alternating & is_below, where, ~(v >= ratio))


def _longest(h: V) -> V:
    """Return times beyond which the probability of J is below 1e-17."""
    return 32 + 2 * h


# Pólya-Gamma numbers of large shapes, in a time that does not depend on the shape.
#
# The variable is ``q = c**2 + 2 s``, where c is half the tilt and s the saddle point of a number x:
# the point at which the derivative of ``log E exp(-s x)`` is x. With ``g(q) = log cosh sqrt(q)``,
# which is a sum of ``log(1 + q / b)`` over ``b = (pi / 2)**2, (3 pi / 2)**2, ...``, a number of
# shape h is ``x = h g'(q) / 2``. The saddle-point approximation of its density is that of q,
#
# ``sqrt(h / (2 pi)) sqrt(|g''(q)|) exp(-h B(q))`` for ``B(q) = g(q) - g(c**2) + (c**2 - q) g'(q)``
#
# (H. E. Daniels, "Saddlepoint approximations in statistics", Ann. Math. Statist. 25 (1954)
# 631-650).
#
# The density divided by it is at most ``sqrt(h / 2) Gamma((h - 1) / 2) / Gamma(h / 2)``, which is
# below ``1 + 1 / h``: it is the integral of a characteristic function of variance 1 that is a
# product of ``(1 + i v t_k)**-h``. The square of its magnitude is ``prod(1 + v**2 t_k**2)**-h``, at
# most ``(1 + v**2 / h)**-h``. From shapes of 64 on, five terms of its expansion in 1 / h are within
# 1e-14 up to six standard deviations from the mean, and within 6e-14 up to eight. The error of B in
# the exponent is that of a few roundings of x.

_FIRST = np.pi**2 / 4
"""Distance of zero from the largest q at which the hyperbolic cosine of its root is zero."""

_BOUND = 1.1
"""Bound of the ratio of the approximation to the proposals, for shapes of 64 and more."""

_NORMAL = 1e19
"""Shape beyond which numbers differ from normal ones by less than they are rounded."""


def draw_large(result: V, key: V, where: V, elements: list[V]) -> V:
    """Draw from a normal distribution of a rational function of q until a number is accepted.

    With ``r = (q + pi**2 / 4) / (c**2 + pi**2 / 4)`` and A the product of ``|g''|`` and the square
    of ``q + pi**2 / 4``, the proposals are ``r = w**-3`` with ``w = 1 - t / 3`` for ``t > 0``, and
    ``r = w**4`` with ``w = 1 + t / 4`` for ``t < 0``; t is a normal number of variance
    ``1 / (n - 2)`` for ``n = A(c**2) h``. The approximation is a density of t,

    ``sqrt(h A(q) / (2 pi)) exp(-h B) / w``, where ``B >= A(c**2) t**2 / 2``, and for ``t > 0``
    even ``B >= A(c**2) (w**3 - 1 - 3 log(w))``:

    A increases with q, being a sum of squares of ``(q + pi**2 / 4) / (q + b)``, and
    ``A / sqrt(q + pi**2 / 4)`` decreases, so that ``B = integral of (1 - 1 / r) A dlog(r)`` is at
    least ``A(c**2) (log(r) + 1 / r - 1)`` for ``r > 1`` and
    ``2 A(c**2) (sqrt(r) + 1 / sqrt(r) - 2)`` for ``r < 1``. So the approximation is at most 1.094
    times ``sqrt(n / (n - 2))`` times the density of t. Of 100 attempts 86 succeed at least.

    Parameters
    ----------
    result
        Vector to put the numbers into.
    key
        Key of the streams.
    where
        Positions of the numbers.
    elements
        Counters of the streams, shapes of 64 or more and half of the tilts.
    """

    def attempt(k: V, key: V, counters: V, *elements: V) -> tuple[V, V, list[V]]:
        a, b, u = uniforms(k, key, counters, 3)
        x, ratio = propose(normals(a, b), *elements)
        # NaN is accepted, so that a shape that is NaN needs no more attempts.
        return x, ~(u > ratio), [counters, *elements]

    start = [*elements, concentration_of(elements[-1])]
    most = np.int64(ATTEMPTS) * is_any(where)
    return until_drawn(attempt, result, where, start, [key], n_steps=most)


def propose(normal: V, h: V, c: V, concentration: V) -> tuple[V, V]:
    """Return proposals, and the probabilities with which they are accepted."""
    degrees = h * concentration - 2
    w, rise = _proposal(normal / pt.sqrt(degrees))
    rise = rise * (c * c + _FIRST)
    q = c * c + rise
    cosine, slope, difference = _around(c, q, rise)
    deviance = h * (-rise * slope / 2 - portable.log1p(difference))
    exponent = pt.switch(h > _NORMAL, 0.0, normal * normal / 2 - deviance)
    density = pt.sqrt(_concentration(q, cosine, slope) * degrees / h) * _correction(q, h)
    bound = _BOUND * (1 + 1 / h) * w * concentration
    return h * slope, density * portable.exp(exponent) / bound


def concentration_of(c: V) -> V:
    """Return A of the square of c."""
    square = c * c
    return _concentration(square, *_around(c, square, pt.zeros_like(c))[:2])


def _proposal(t: V) -> tuple[V, V]:
    """Return w and the increase of r."""
    is_right = t > 0
    less = pt.abs(t) / pt.switch(is_right, 3.0, 4.0)
    w = 1 - less
    square = w * w
    rise = less * (3 - 3 * less + less * less) / (square * w)
    return w, pt.switch(is_right, rise, -less * (2 - less) * (1 + square))


def _around(c: V, q: V, rise: V) -> tuple[V, V, V]:
    """Return functions of the root a of q, a number or i times a number.

    Parameters
    ----------
    c
        Half of the tilt.
    q
        Numbers above ``-pi**2 / 4``.
    rise
        Difference of q and the square of c.

    Returns
    -------
    cosine
        cosh(a).
    slope
        tanh(a) / a, twice the derivative of the logarithm of cosh(a).
    difference
        ``cosh(c) / cosh(a) - 1``.
    """
    is_real = q > 0
    root = pt.sqrt(pt.maximum(pt.abs(q), 1e-200))
    sine = sine_and_cosine(pt.switch(is_real, 0.0, root / 2))[0]
    total = c + root
    # One call for all arguments, since each call is converted.
    sines = _sinh(pt.stack([root, c, total, -rise / total]) / 2)
    half = pt.switch(is_real, sines[0], sine)
    square = pt.switch(is_real, half * half, -half * half)
    cosine = 1 + 2 * square
    slope = 2 * half * pt.sqrt(1 + square) / (root * cosine)
    difference = pt.switch(is_real, sines[2] * sines[3], sines[1] * sines[1] - square)
    return cosine, slope, 2 * difference / cosine


def _sinh(x: V) -> V:
    """Return the hyperbolic sine."""
    power = portable.expm1(x)
    return (power + power / (1 + power)) / 2


def _concentration(q: V, cosine: V, slope: V) -> V:
    """Return A, of ``|g''(q)| = (sinh(a) cosh(a) - a) / (4 a**3 cosh(a)**2)`` for the root a."""
    square = cosine * cosine
    series = horner(4 * q, [pt.constant(1 / math.factorial(2 * j + 3)) for j in range(9)])
    curvature = pt.switch(pt.abs(q) < 0.5, series / square, (slope - 1 / square) / (4 * q))
    return pt.sqr(q + _FIRST) * curvature


def _correction(q: V, h: V) -> V:
    """Return the density divided by its saddle-point approximation."""
    t = (20 / (20 + pt.minimum(q, 120.0)) - 0.625) / 0.484
    columns = horner(t[:, None], [pt.constant(np.array([row])) for row in EXPANSION])
    return horner(1 / h, [pt.constant(1.0), *(columns[:, i] for i in range(len(EXPANSION[0])))])
