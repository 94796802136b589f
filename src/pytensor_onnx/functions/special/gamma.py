"""The gamma function and its logarithm."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import Gamma, GammaLn
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    horner,
    in_float64,
    polynomial,
    row,
    split_rows,
    stacked,
    where_any,
    widened,
)
from pytensor_onnx.functions.special.coefficients import Coefficients
from pytensor_onnx.functions.special.exponential import expm1_of_reduced
from pytensor_onnx.functions.special.gamma_coefficients import (
    FACTORIALS,
    GAMMA_BOW_BOTTOM,
    GAMMA_BOW_TOP,
    GAMMA_EXCESS_BOTTOM,
    GAMMA_EXCESS_TOP,
    LOG_GAMMA_BOTTOM,
    LOG_GAMMA_BOW_BOTTOM,
    LOG_GAMMA_BOW_TOP,
    LOG_GAMMA_TAIL_BOTTOM,
    LOG_GAMMA_TAIL_TOP,
    LOG_GAMMA_TOP,
)
from pytensor_onnx.functions.special.psi import (
    from_nearest_even,
    from_nearest_integer,
    psi_of_positive,
    sine_pi,
    sine_pi_excess,
    trigamma_of_positive,
)
from pytensor_onnx.ops.special import precise

# sqrt(2 pi / e).
_LIMIT = 1.520346901066281
# The powers in Stirling's formula are tabulated at multiples of 1/8, times a power of two by which
# they and their reciprocals are in the range of float64 where either gamma function is.
_LAST = 185
_SCALE = 2.0**-600


@define(Gamma)
@in_float64
def gamma(x: TensorVariable) -> TensorVariable:
    """Gamma function, NaN at negative integers; exact at integers up to 18.

    Notes
    -----
    Stirling's formula with a fitted factor serves from one on. Below, ``gamma(x + 1) = x gamma(x)``
    and the reflection ``gamma(x) gamma(-x) = -pi / (x sin(pi x))`` (DLMF 5.5.1 and 5.5.3).
    """
    zero, one, limit, scale = (constant(x, n) for n in (0.0, 1.0, _LIMIT, _SCALE))
    a = pt.abs(x)
    # At the bound gamma is infinite and its reciprocal zero.
    y = pt.minimum(a + (a < one).astype(x.dtype), constant(x, _LAST))
    power, rest = _scaled_power(y), _excess(one / y)
    value = (power * (limit + rest)) * constant(x, 1 / _SCALE)
    positive = _whole_of_whole(x, value / pt.minimum(x, one))

    r = from_nearest_even(a)
    # The factor of the sine joins that of the power before both are rounded.
    factor = limit + (rest + (limit + rest) * sine_pi_excess(r))
    # At a pole the numerator is NaN.
    quotient = -(r / r) / (pt.maximum(a, one) * r * factor)
    return where_any(x < zero, quotient * scale / power, positive)


def _scaled_power(y: TensorVariable) -> TensorVariable:
    """``(y / e)**(y - 1/2)`` times a power of two, for ``1 <= y <= 185``, or NaN.

    It is that of the nearest multiple ``n`` of 1/8, which is in a table, times the exponential of
    ``(y - 1/2) log(y / n) + (y - n) (log(n) - 1)``. The logarithm is twice the inverse hyperbolic
    tangent of ``(y - n) / (y + n)``.
    """
    eighths = pt.round(y * constant(y, 8.0))
    n = eighths * constant(y, 0.125)
    # Numbers made of NaN are out of bounds.
    place = pt.clip(eighths.astype("int64") - np.int64(8), np.int64(0), np.int64(8 * (_LAST - 1)))
    power, slope = (pt.constant(column)[place] for column in _powers())
    distance = y - n
    s = distance / (y + n)
    square, twice = s * s, s + s
    series = horner(square, [constant(y, 1 / k) for k in (3, 5, 7, 9)])
    logarithm = twice + twice * (square * series)
    change = (y - constant(y, 0.5)) * logarithm + distance * slope
    return power + power * expm1_of_reduced(change)


@cache
def _powers() -> tuple[np.ndarray, np.ndarray]:
    """Return ``(n / e)**(n - 1/2)`` times a power of two, and ``log(n) - 1``, from ``n = 1`` on."""
    with localcontext(prec=30):
        points = [Decimal(k) / 8 for k in range(8, 8 * _LAST + 1)]
        slopes = [n.ln() - 1 for n in points]
        pairs = zip(points, slopes, strict=True)
        powers = [((n - Decimal("0.5")) * slope).exp() * Decimal(_SCALE) for n, slope in pairs]
    return np.array(powers, "float64"), np.array(slopes, "float64")


def _whole_of_whole(x: TensorVariable, value: TensorVariable) -> TensorVariable:
    """Round results at integer arguments to integers; large results to even ones, as is exact."""
    shift = pt.eq(x, pt.round(x)).astype(x.dtype) * constant(x, 1.5 * 2.0**52)
    return (value + shift) - shift


def gamma_plus_one(x: TensorVariable) -> TensorVariable:
    """``gamma(x + 1)`` for ``0 <= x <= 1``."""
    one = constant(x, 1.0)
    bow = polynomial(x, GAMMA_BOW_TOP) / polynomial(x, GAMMA_BOW_BOTTOM)
    return one + x * (x - one) * bow


def _excess(s: TensorVariable) -> TensorVariable:
    return polynomial(s, GAMMA_EXCESS_TOP) / polynomial(s, GAMMA_EXCESS_BOTTOM)


def scaled_gamma(y: TensorVariable) -> TensorVariable:
    """``gamma(y) / (y**(y - 1/2) exp(-y))`` for ``y >= 1``."""
    excess = _excess(constant(y, 1.0) / y)
    return constant(y, math.sqrt(2 * math.pi)) + constant(y, math.sqrt(math.e)) * excess


# Nodes for which the mean of psi or its derivative over a step has all digits.
_NODES = 6
# The largest step, from 1 on, for which they have.
LARGEST_STEP = 0.25


def log_of_scaled_beta(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """``log(a b B(a, b) / (a + b))`` for a small ``a``.

    That is the growth of ``log(gamma)`` from 1 by ``a``, less that from ``1 + b``.
    """
    at_one, beyond = split_rows(_mean(psi_of_positive, pt.stack([pt.zeros_like(b), b]), a), 2)
    return a * (at_one - beyond)


def psi_growth(x: TensorVariable, step: TensorVariable) -> TensorVariable:
    """``psi(x + step) - psi(x)`` for positive numbers and small steps."""
    return step / x / (x + step) + step * _mean(trigamma_of_positive, x, step)


def _mean(
    function: Callable[[TensorVariable], TensorVariable], x: TensorVariable, step: TensorVariable
) -> TensorVariable:
    """Average a function from ``x + 1`` to ``x + 1 + step``, by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    points = (x + constant(x, 1.0)) + stacked(x, (nodes + 1) / 2) * step
    return pt.sum(stacked(x, weights / 2) * function(points), axis=0)


# (log(2 pi) - 1) / 2, and log(4) - 1.
_OFFSET = 0.4189385332046727
_LOG_FOUR_LESS_ONE = 0.38629436111989062
# A number near 2.5 where the function fitted near zero has a value of few bits, which can be taken
# from larger ones exactly.
_SEAM = (2.4985892869249673, 0.28369140625)
_FIRST_FACTORIAL, _LAST_FACTORIAL = 4, 22


# The ratio of polynomials that is fitted near zero is the ratio of their first coefficients and the
# variable times a smaller one, whose rounding errors count less.
_FIRST = LOG_GAMMA_TOP["float64"][0]


def _less_first(top: Sequence[float], bottom: Sequence[float]) -> tuple[float, ...]:
    """Return the coefficients of ``(p(v) - _FIRST q(v)) / v``, rounded once."""
    pairs = zip(top[1:], bottom[1:], strict=True)
    return tuple(float(Fraction(p) - Fraction(_FIRST) * Fraction(q)) for p, q in pairs)


_LESS_FIRST_TOP: Coefficients = {
    "float64": _less_first(LOG_GAMMA_TOP["float64"], LOG_GAMMA_BOTTOM["float64"])
}


class Parts(NamedTuple):
    """Parts of ``log(gamma(x))``, ``near + weight * logarithm + rest``.

    The weight is -1 below 5/4, 0 up to 2.5, and ``x - 1/2`` beyond, where ``near`` is constant.
    """

    near: TensorVariable
    weight: TensorVariable
    logarithm: TensorVariable
    rest: TensorVariable
    below_half: TensorVariable
    below_five_quarters: TensorVariable


@define(GammaLn)
@widened
def gammaln(x: TensorVariable) -> TensorVariable:
    """Logarithm of the absolute value of the gamma function.

    Notes
    -----
    Negative arguments are reflected, ``gamma(x) gamma(-x) = -pi / (x sin(pi x))`` (DLMF 5.5.3).
    Their roots next to poles, where logarithms cancel, are those of ``log(n! sin(pi r) / pi)`` and
    a small rest, where ``r`` is the distance from the pole ``-n``.
    """
    one = constant(x, 1.0)
    a = pt.abs(x)
    parts = _parts(a)

    r = from_nearest_integer(a)
    n = a - r
    at_pole = (a > constant(x, _FIRST_FACTORIAL - 0.5)) & (a < constant(x, _LAST_FACTORIAL + 0.5))
    at_pole &= pt.abs(r) < constant(x, 0.125)
    factorial, rest = _factorials(pt.switch(at_pole, n, constant(x, _FIRST_FACTORIAL)), r)
    factor = pt.switch(parts.below_half, one / (one + a), one)
    factor = pt.switch(parts.below_five_quarters, factor, pt.switch(at_pole, factorial, a))
    logarithm = precise.log(pt.abs(sine_pi(r)) * factor)
    # Below 5/4 the logarithm is in the factor.
    weight = pt.maximum(parts.weight, constant(x, 0.0))
    summand = parts.near + (weight * parts.logarithm + parts.rest)
    # At the largest numbers, which are poles, both would be infinite.
    summand = pt.minimum(summand, constant(x, 1e308, float32=3e38))
    negative = -(pt.switch(at_pole, rest, summand) + logarithm)
    negative = pt.switch(pt.isinf(x), x, negative)
    return where_any(x < constant(x, 0.0), negative, _of_positive(parts))


def gammaln_of_positive(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x))`` for ``x >= 0``."""
    return _of_positive(_parts(x))


def log_gamma_plus_one(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x + 1))`` for ``0 <= x <= 1``, accurately next to zero."""
    bow = polynomial(x, LOG_GAMMA_BOW_TOP) / polynomial(x, LOG_GAMMA_BOW_BOTTOM)
    return x * (x - constant(x, 1.0)) * bow


def _of_positive(parts: Parts) -> TensorVariable:
    return parts.near + (parts.weight * parts.logarithm + parts.rest)


def _parts(x: TensorVariable) -> Parts:
    """Compute the parts of ``log(gamma(x))`` for ``x >= 0``.

    Near zero, where one or two steps of the recurrence (DLMF 5.5.1) lead to a number ``2 + d``,
    ``d (d + 1)`` times a fitted function serves; far from it, Stirling's formula with a fitted
    rest. There ``x`` is divided by 4 and the logarithm of 4 added, which leaves smaller errors of
    the logarithm to amplify, and the function is added to that of 2.5, nearly, to need no
    selection.
    """
    half, one, two = (constant(x, n) for n in (0.5, 1.0, 2.0))
    below_half, below_five_quarters = x < half, x < constant(x, 1.25)
    seam, value = _SEAM
    bound = constant(x, seam)
    is_far = x > bound
    # Numbers in place of selections, which take the runtime the time of five products.
    small, medium, large = (
        condition.astype(x.dtype) for condition in (below_half, below_five_quarters, is_far)
    )
    bounded = pt.minimum(x, bound)
    d = bounded - (two - (small + medium))
    v = d + half
    ratio = polynomial(v, _LESS_FIRST_TOP) / polynomial(v, LOG_GAMMA_BOTTOM)
    near = d * (d + one) * (constant(x, _FIRST) + v * ratio)

    factor = one + small * bounded - large * constant(x, 0.75)
    logarithm = precise.log(x * factor) + large * constant(x, _LOG_FOUR_LESS_ONE)
    weight = large * (x - half) - medium
    reciprocal = one / pt.maximum(x, bound)
    square = reciprocal * reciprocal
    ratio = polynomial(square, LOG_GAMMA_TAIL_TOP) / polynomial(square, LOG_GAMMA_TAIL_BOTTOM)
    rest = large * (constant(x, _OFFSET - value) + reciprocal * ratio)
    return Parts(near, weight, logarithm, rest, below_half, below_five_quarters)


def _factorials(n: TensorVariable, r: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``n!`` and ``log(gamma(n+1+r) / n!)``, for ``n`` from 4 to 22 and ``|r| <= 1/8``."""
    table = pt.constant(np.array([row(n, c) for c in FACTORIALS], n.dtype))
    place = n.astype("int64") - pt.constant(_FIRST_FACTORIAL, dtype="int64")
    sizes = [1] * len(FACTORIALS)
    first, *others = pt.split(table[:, place], sizes, n_splits=len(sizes), axis=0)
    return first[0], (r[None] * horner(r[None], others))[0]
