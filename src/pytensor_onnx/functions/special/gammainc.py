"""The regularised incomplete gamma functions and their inverses.

As in SciPy, Temme's expansion serves where ``x`` is close to a large ``a``, and otherwise a power
series below and a continued fraction above. Each loop runs until all elements have converged. The
fraction, which needs many steps for small ``x``, starts later than in SciPy.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import GammaInc, GammaIncC, GammaIncCInv, GammaIncInv
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    if_any_of_few,
    in_float64,
    polynomial,
    where_any,
)
from pytensor_onnx.functions.special.coefficients import Coefficients
from pytensor_onnx.functions.special.erf import erfcx_of_positive
from pytensor_onnx.functions.special.exponential import (
    Logarithm,
    exp,
    expm1,
    exponent_with_rest,
    keep_upper_bits,
    log1p,
    log_of_normal_with_rest,
    log_with_rest,
    portable_exp,
    product_with_rest,
    quotient_with_rest,
    root_of_exponential,
)
from pytensor_onnx.functions.special.gamma import (
    gamma_plus_one,
    gammaln_of_positive,
    log_gamma_plus_one,
    scaled_gamma,
)
from pytensor_onnx.functions.special.gamma_coefficients import LOG_RATIO_WIDE, TEMME
from pytensor_onnx.ops.special import precise

# Rounds after which elements that have not converged are NaN, and steps between two tests.
_ROUNDS = 100
_STEPS = 4
_PRECISION = 2.0**-53


class Parts(NamedTuple):
    """The series, the fraction and the expansion, and where the last two of them serve.

    ``factor`` is ``x**a exp(-x) / gamma(a + 1)``; see `gamma_density` for the other two factors.
    """

    logarithm: TensorVariable
    decay: TensorVariable
    factor: TensorVariable
    exponent: TensorVariable
    mu: TensorVariable
    series: TensorVariable
    fraction: TensorVariable
    by_fraction: TensorVariable
    by_expansion: TensorVariable


@define(GammaInc)
def gammainc(a: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Regularized lower incomplete gamma function.

    NaN for negative arguments, and where ``a`` and ``x`` are both zero or both infinite.
    """
    return in_float64(partial(_lower, is_exact=x.dtype == "float64"))(a, x)


def _lower(a: TensorVariable, x: TensorVariable, is_exact: bool) -> TensorVariable:
    zero, one = constant(x, 0.0), constant(x, 1.0)
    parts = _parts(a, x, 8.0, scaled_gamma_of_next(a), is_exact)
    value = pt.switch(parts.by_fraction, one - parts.fraction, parts.series)
    value = where_any(parts.by_expansion, _by_expansion(a, parts)[0], value)
    # The series of small parameters may round to more.
    return _at_ends(a, x, pt.minimum(value, one), zero, one)


@define(GammaIncC)
def gammaincc(a: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Regularized upper incomplete gamma function, with the remarks of `gammainc`."""
    return in_float64(partial(_complement, is_exact=x.dtype == "float64"))(a, x)


def _complement(a: TensorVariable, x: TensorVariable, is_exact: bool) -> TensorVariable:
    zero, one = constant(x, 0.0), constant(x, 1.0)
    parts = _parts(a, x, 2.0, scaled_gamma_of_next(a), is_exact)
    value = where_any(parts.by_expansion, _by_expansion(a, parts)[1], _upper(a, x, parts))
    return _at_ends(a, x, value, one, zero)


def lower_or_upper(
    a: TensorVariable, x: TensorVariable, lower: TensorVariable, of_next: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """One of both functions of positive numbers, and ``x**a exp(-x) / gamma(a + 1)``.

    ``of_next`` is `scaled_gamma_of_next` of ``a``, which does not change as ``x`` does.
    """
    parts = _parts(a, x, 2.0, of_next, is_exact=False)
    one = constant(x, 1.0)
    value = pt.switch(parts.by_fraction, one - parts.fraction, parts.series)
    value = pt.switch(lower, value, _upper(a, x, parts, ~lower))
    value = where_any(parts.by_expansion, pt.switch(lower, *_by_expansion(a, parts)), value)
    return value, parts.factor


def _upper(
    a: TensorVariable, x: TensorVariable, parts: Parts, wanted: TensorVariable | None = None
) -> TensorVariable:
    """Upper function apart from the expansion, and where it is wanted."""
    one = constant(x, 1.0)
    bound = pt.minimum(one, x * constant(x, 1.1))
    # That of x if a <= 1; no larger a is within any bound.
    bound = pt.switch(x <= constant(x, 0.5), constant(x, -0.4) / parts.logarithm, bound)
    small = (x <= constant(x, 2.0)) & (a <= bound)
    small = small if wanted is None else small & wanted
    value = pt.switch(parts.by_fraction, parts.fraction, one - parts.series)
    return where_any(small, _upper_of_small(a, x, parts.logarithm), value)


def _at_ends(
    a: TensorVariable,
    x: TensorVariable,
    value: TensorVariable,
    at_zero: TensorVariable,
    at_infinity: TensorVariable,
) -> TensorVariable:
    """Set the values where an argument is zero or infinite, and NaN outside of the domain."""
    zero, infinity = constant(x, 0.0), constant(x, math.inf)
    low = pt.eq(x, zero) | pt.eq(a, infinity)
    high = pt.eq(x, infinity) | pt.eq(a, zero)
    value = pt.switch(low, at_zero, pt.switch(high, at_infinity, value))
    outside = (low & high) | (pt.minimum(a, x) < zero) | pt.isnan(a + x)
    return pt.switch(outside, constant(x, math.nan), value)


def _parts(
    a: TensorVariable,
    x: TensorVariable,
    start: float,
    of_next: TensorVariable,
    is_exact: bool,
) -> Parts:
    """Compute the parts of both functions by the continued fraction from ``start`` on.

    Outside of the domain the results mean nothing, but no loop waits for them. ``is_exact`` is that
    of `gamma_density`.
    """
    zero, one, ten = (constant(x, n) for n in (0.0, 1.0, 10.0))
    mu = (x - a) / a
    exponent = log1p_less_argument_near_zero(mu)
    logarithm, decay = gamma_density(a, x, mu, exponent, is_exact)
    factor = decay / of_next
    by_expansion = (a > constant(x, 20.0)) & (pt.abs(mu) < constant(x, 0.3))
    by_fraction = ~by_expansion & (x > constant(x, start)) & (x > a)
    has_terms = (pt.minimum(a, x) > zero) & (factor > zero)
    by_series = has_terms & ~(by_expansion | by_fraction)
    has_fraction = has_terms & by_fraction
    sums = _sum(a, pt.switch(by_series, x, zero))
    quotients = _fraction(pt.switch(has_fraction, a, one), pt.switch(has_fraction, x, ten))
    series, fraction = factor * sums, factor * a * quotients
    powers = logarithm, decay, factor
    return Parts(*powers, exponent, mu, series, fraction, by_fraction, by_expansion)


def _sum(a: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``1 + x/(a+1) + x**2/((a+1)(a+2)) + ...`` (DLMF 8.7.1)."""
    one, precision = constant(x, 1.0), constant(x, _PRECISION)

    def step(
        total: TensorVariable, term: TensorVariable, divisor: TensorVariable, x: TensorVariable
    ) -> tuple:
        for _ in range(_STEPS):
            divisor = divisor + one
            term = term * (x / divisor)
            total = total + term
        return (total, term, divisor), until(pt.all(term <= precision * total))

    start = pt.ones_like(x)
    total, term, _ = iterate(step, [start, start, a], [x], n_steps=_ROUNDS)
    converged = term <= precision * total
    return pt.switch(converged, total, constant(x, math.nan))


def _fraction(a: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...`` (DLMF 8.9.2), by Lentz's method."""
    one, two = constant(x, 1.0), constant(x, 2.0)
    precision = constant(x, 4 * _PRECISION)

    def step(
        value: TensorVariable,
        c: TensorVariable,
        d: TensorVariable,
        b: TensorVariable,
        n: TensorVariable,
        change: TensorVariable,
        a: TensorVariable,
    ) -> tuple:
        for _ in range(_STEPS):
            n = n + one
            b = b + two
            numerator = n * (a - n)
            d = one / (numerator * d + b)
            c = b + numerator / c
            change = c * d
            value = value * change
        return (value, c, d, b, n, change), until(pt.all(pt.abs(change - one) <= precision))

    b = x + one - a
    first = one / b
    infinite = constant(x, 1e300) + pt.zeros_like(x)
    start = [first, infinite, first, b, constant(x, 0.0), pt.zeros_like(x)]
    value, _, _, _, _, change = iterate(step, start, [a], n_steps=_ROUNDS)
    converged = pt.abs(change - one) <= precision
    return pt.switch(converged, value, constant(x, math.nan))


def _by_expansion(a: TensorVariable, parts: Parts) -> tuple[TensorVariable, TensorVariable]:
    """Both functions by Temme's uniform expansion (DLMF 8.12.3-8).

    `erfc` is the decay times `erfcx`, so that the rounding of its argument hardly counts.
    """
    half, one = constant(a, 0.5), constant(a, 1.0)
    exponent, reciprocal = parts.exponent, one / a
    distance = pt.sqrt(-(exponent + exponent))
    above = parts.mu > constant(a, 0.0)
    eta = pt.switch(above, distance, -distance)
    total = polynomial(eta, TEMME[-1])
    for coefficients in reversed(TEMME[:-1]):
        total = total * reciprocal + polynomial(eta, coefficients)
    rest = parts.decay / pt.sqrt(constant(a, 2 * math.pi) * a) * total
    tail = half * parts.decay * erfcx_of_positive(distance * pt.sqrt(half * a))
    lower, upper = pt.switch(above, one - tail, tail), pt.switch(above, tail, one - tail)
    return lower - rest, upper + rest


def _upper_of_small(
    a: TensorVariable, x: TensorVariable, logarithm: TensorVariable
) -> TensorVariable:
    """Upper function by the series of the lower one in powers of ``-x`` (DLMF 8.7.3)."""

    def add(
        n: TensorVariable,
        total: TensorVariable,
        power: TensorVariable,
        a: TensorVariable,
        x: TensorVariable,
    ) -> list[TensorVariable]:
        power = power * (x / -n)
        return [total + power * (a / (a + n)), power]

    start, numbers = [pt.zeros_like(x), pt.ones_like(x)], pt.constant(np.arange(1.0, 29.0))
    total, _ = iterate(add, start, [a, x], sequences=[numbers], n_steps=28)
    growth = expm1(a * logarithm - log_gamma_plus_one(a))
    return -(growth + (growth + constant(x, 1.0)) * total)


# Up to this size of an exponent and its parts roundings make errors of less than 1e-13.
_LARGE = 150.0


def log1p_less_argument(
    mu: TensorVariable, one_more: TensorVariable | None = None, log: Logarithm = precise.log
) -> TensorVariable:
    """``log(1 + mu) - mu``, accurately next to zero, as in `log_of_normal`.

    ``one_more`` is ``1 + mu`` where the sum would cancel.
    """
    near = log1p_less_argument_near_zero(mu)
    far = log(constant(mu, 1.0) + mu if one_more is None else one_more) - mu
    return pt.switch(pt.abs(mu) < constant(mu, 0.5), near, far)


def log1p_less_argument_near_zero(mu: TensorVariable) -> TensorVariable:
    """``log(1 + mu) - mu`` for ``|mu| < 1/2``."""
    s = mu / (constant(mu, 2.0) + mu)
    square = s * s
    return -s * (mu - square * polynomial(square, LOG_RATIO_WIDE))


def scaled_gamma_of_next(a: TensorVariable) -> TensorVariable:
    """``gamma(a + 1)`` for ``a`` below one, and else ``gamma(a + 1) exp(a) / a**a``."""
    one = constant(a, 1.0)
    small = a < one
    y = pt.switch(small, one, a)
    return pt.switch(small, gamma_plus_one(a), pt.sqrt(y) * scaled_gamma(y))


def gamma_density(
    a: TensorVariable,
    x: TensorVariable,
    mu: TensorVariable,
    exponent: TensorVariable,
    is_exact: bool,
) -> tuple[TensorVariable, TensorVariable]:
    """``log(x/y)`` and ``(x/y)**a exp(-(x - y))``.

    ``y`` is ``a``, or one for ``a`` below it. The rounding errors of ``x / y`` and ``x - y`` are
    left, which large exponents amplify.

    Parameters
    ----------
    a, x
        Parameter and argument.
    mu, exponent
        ``(x - a) / a``, and `log1p_less_argument_near_zero` of it.
    is_exact
        Whether to round no exponent where it is large, and the result beyond those of float32.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    small = a < one
    y, start = pt.switch(small, one, a), pt.switch(small, zero, a)
    base, difference = x / y, x - start
    # A quotient may underflow, and results of the largest are zero.
    normal = pt.clip(base, constant(x, 5e-324), constant(x, 1e270)) * constant(x, 2.0**60)
    logarithm, rest = log_of_normal_with_rest(normal, constant(x, -60.0))
    # Results of the largest parameters elsewhere are zero.
    near = ~small & ((pt.abs(mu) < constant(x, 0.5)) | (a > constant(x, 1e15)))
    far, rest = exponent_with_rest(a, logarithm, rest, -difference)
    exponent = pt.switch(near, a * exponent, far)
    decay = exp(exponent, pt.switch(near, zero, rest))
    if not is_exact:
        return logarithm, decay
    size = pt.switch(near, -exponent, pt.maximum(pt.abs(a * logarithm), pt.abs(difference)))
    is_large = (size > constant(x, _LARGE)) & (exponent > constant(x, -760.0))
    return logarithm, if_any_of_few(is_large, _exact_decay, decay, [a, x, y, start])


def _exact_decay(
    _: TensorVariable,
    a: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    start: TensorVariable,
) -> TensorVariable:
    """``(x/y)**a exp(-(x - start))``, of an exponent that is not rounded."""
    base, base_rest = quotient_with_rest(x, constant(x, 0.0), y)
    logarithm, rest = log_with_rest(base)
    power, power_rest = product_with_rest(a, logarithm, rest + base_rest / base)
    difference, difference_rest = add_with_error(x, -start)
    total, total_rest = add_with_error(power, -difference)
    return exp(*add_with_error(total, total_rest + (power_rest - difference_rest)))


# Steps after which elements that have not converged are NaN.
_NEWTON_STEPS = 40
# Logarithm of the numbers whose squares are lost beside one.
_LOG_TINY = -18.5
# Rational approximation of the normal quantile within 4.5e-4 (M. Abramowitz and I. Stegun,
# Handbook of Mathematical Functions, 1964, 26.2.23).
_QUANTILE_TOP: Coefficients = {"float64": (2.515517, 0.802853, 0.010328)}
_QUANTILE_BOTTOM: Coefficients = {"float64": (1.0, 1.432788, 0.189269, 0.001308)}


@define(GammaIncInv)
@in_float64
def gammaincinv(a: TensorVariable, p: TensorVariable) -> TensorVariable:
    """Inverse of the regularized lower incomplete gamma function in its second argument."""
    return _inverse(a, p, constant(p, 1.0) - p)


@define(GammaIncCInv)
@in_float64
def gammainccinv(a: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Inverse of the regularized upper incomplete gamma function in its second argument."""
    return _inverse(a, constant(q, 1.0) - q, q)


def _inverse(a: TensorVariable, p: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Solve ``P(a, x) = p`` where ``p <= q``, and else ``Q(a, x) = q``.

    Notes
    -----
    The logarithms of both functions are concave functions of ``log(x)``, so that Newton's method
    converges from one side; the second derivative, which follows from the first, makes it Halley's.
    """
    zero, one, half = (constant(p, n) for n in (0.0, 1.0, 0.5))
    infinity, nan = constant(p, math.inf), constant(p, math.nan)
    inside = (p > zero) & (q > zero) & (a > zero) & (a < infinity)
    some = pt.switch(inside, a, one)
    some_p, some_q = pt.switch(inside, p, half), pt.switch(inside, q, half)
    value = _solve(some, some_p, some_q)
    # The limit: the weight of a parameter of zero is at zero.
    value = pt.switch(inside, value, pt.switch(pt.eq(a, zero), zero, nan))
    value = pt.switch(pt.eq(p, zero), zero, pt.switch(pt.eq(q, zero), infinity, value))
    outside = (p < zero) | (q < zero) | (a < zero) | pt.isnan(a + p)
    return pt.switch(outside, nan, value)


def _solve(a: TensorVariable, p: TensorVariable, q: TensorVariable) -> TensorVariable:
    one, two, half = (constant(p, n) for n in (1.0, 2.0, 0.5))
    below = p <= q
    goal = pt.minimum(p, q)
    precision, most, back = (constant(p, n) for n in (1e-9, 1.5, -0.15))
    # Beyond this it would overflow, and serves no guess.
    log_gamma = gammaln_of_positive(pt.minimum(a, constant(p, 1e300)))
    # Bound the logarithm of the solution from below, by the first term of the series. Both of its
    # parts are small if `a` is.
    near = log_gamma_plus_one(pt.minimum(a, one))
    of_next = pt.switch(a < one, near, log_gamma + pt.log(a))
    log_least = (pt.switch(below, pt.log(p), log1p(-q)) + of_next) / a
    tiny = log_least < constant(p, _LOG_TINY)
    guess = pt.switch(tiny, one, _guess(a, q, below, goal, log_gamma, pt.exp(log_least)))
    given, a, goal = a, pt.switch(tiny, one, a), pt.switch(tiny, half, goal)

    def step(
        x: TensorVariable,
        change: TensorVariable,
        a: TensorVariable,
        goal: TensorVariable,
        below: TensorVariable,
        of_next: TensorVariable,
    ) -> tuple:
        found, factor = lower_or_upper(a, x, below, of_next)
        slope = pt.switch(below, one, -one) * (a * factor / found)
        distance = precise.log(found / goal)
        newton = distance / slope
        bend = a - x - slope
        halley = newton / (one - half * newton * bend)
        tame = pt.abs(newton * bend) < one
        new = -pt.switch(tame, halley, newton)
        # Far beyond the solution the functions underflow.
        new = pt.clip(pt.switch(pt.isnan(new), back, new), -most, most)
        # The next change is of the size of the cube of this one, and not worth its step.
        done = pt.abs(change) <= precision
        new = pt.switch(done, change, new)
        x = pt.switch(done, x, x * portable_exp(new))
        return (x, new), until(pt.all(pt.abs(new) <= precision))

    # Runtimes that differ in the last bits of a guess start from the same number, unless the
    # other bits place it many standard deviations away.
    guess = pt.switch(a > constant(p, 1e9), guess, keep_upper_bits(guess))
    start = [guess, pt.ones_like(p) * two]
    constants = [a, goal, below, scaled_gamma_of_next(a)]
    x, change = iterate(step, start, constants, n_steps=_NEWTON_STEPS)
    value = pt.switch(pt.abs(change) <= precision, x, constant(p, math.nan))
    return if_any_of_few(tiny, _of_series, value, [given, p, q, of_next])


def _of_series(
    _: TensorVariable,
    a: TensorVariable,
    p: TensorVariable,
    q: TensorVariable,
    of_next: TensorVariable,
) -> TensorVariable:
    """Solve by two terms of the series, with an exponent that is not rounded.

    ``of_next`` is ``log(gamma(a + 1))``. The solution may underflow.
    """
    one = constant(p, 1.0)
    rounding = (one - p) - q
    logarithm, rest = log_with_rest(p)
    x = root_of_exponential(a, logarithm, rest + rounding / p, of_next)
    return x + x * (x / (a + one))


def normal_quantile(q: TensorVariable) -> TensorVariable:
    """Approximate the number that normal variates exceed with probability ``q <= 1/2``."""
    t = pt.sqrt(constant(q, -2.0) * pt.log(q))
    return t - polynomial(t, _QUANTILE_TOP) / polynomial(t, _QUANTILE_BOTTOM)


def _guess(
    a: TensorVariable,
    q: TensorVariable,
    below: TensorVariable,
    share: TensorVariable,
    log_gamma: TensorVariable,
    least: TensorVariable,
) -> TensorVariable:
    """Guess from quantiles of the gamma distribution, and next to infinity from its tail."""
    zero, one = constant(q, 0.0), constant(q, 1.0)
    s = normal_quantile(share)
    s = pt.switch(below, -s, s)
    # The cube root is nearly normal (E. B. Wilson and M. M. Hilferty, PNAS 17 (1931) 684-688).
    root = one - constant(q, 1 / 9) / a + s / (constant(q, 3.0) * pt.sqrt(a))
    cubed = pt.switch(a < one, zero, a * root * root * root)
    y = -(pt.log(q) + log_gamma)
    tail = y + (a - one) * pt.log(pt.maximum(y, one))
    tail = y + (a - one) * pt.log(pt.maximum(tail, one))
    in_tail = ~below & (y > pt.switch(a < one, one, a + constant(q, 20.0)))
    return pt.switch(in_tail, tail, pt.maximum(cubed, least))
