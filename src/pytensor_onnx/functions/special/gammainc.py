"""The regularized incomplete gamma functions.

As in SciPy, Temme's expansion serves where ``x`` is close to a large ``a``, and otherwise a power
series below and a continued fraction above. Each loop runs until all elements have converged. The
fraction, which needs many steps for small ``x``, starts later than in SciPy.
"""

import math
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.math import GammaInc, GammaIncC
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    polynomial,
    square_with_error,
)
from pytensor_onnx.functions.special.erf import erfc
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.expm1 import expm1
from pytensor_onnx.functions.special.gamma import gamma_plus_one, scaled_gamma
from pytensor_onnx.functions.special.gamma_coefficients import LOG_RATIO_WIDE, TEMME
from pytensor_onnx.functions.special.gammaln import log_gamma_plus_one

# Rounds after which elements that have not converged are NaN, and steps between two tests.
_ROUNDS = 100
_STEPS = 4
_PRECISION = 2.0**-53


class Parts(NamedTuple):
    """Both functions where they are computed as themselves, and where that is."""

    factor: TensorVariable
    series: TensorVariable
    fraction: TensorVariable
    lower: TensorVariable
    upper: TensorVariable
    by_fraction: TensorVariable
    by_expansion: TensorVariable


@define(GammaInc)
@in_float64
def gammainc(a: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Regularized lower incomplete gamma function.

    NaN for negative arguments, and where ``a`` and ``x`` are both zero or both infinite.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    return _at_ends(a, x, _lower(_parts(a, x, 8.0)), zero, one)


@define(GammaIncC)
@in_float64
def gammaincc(a: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Regularized upper incomplete gamma function, with the remarks of `gammainc`."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    return _at_ends(a, x, _upper(a, x, _parts(a, x, 2.0)), one, zero)


def both(
    a: TensorVariable, x: TensorVariable
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Both functions of positive numbers, and ``x**a exp(-x) / gamma(a + 1)``."""
    parts = _parts(a, x, 2.0)
    return _lower(parts), _upper(a, x, parts), parts.factor


def _lower(parts: Parts) -> TensorVariable:
    one = constant(parts.series, 1.0)
    value = pt.switch(parts.by_fraction, one - parts.fraction, parts.series)
    return where_any(parts.by_expansion, parts.lower, value)


def _upper(a: TensorVariable, x: TensorVariable, parts: Parts) -> TensorVariable:
    one = constant(x, 1.0)
    logarithm = pt.log(x)
    bound = pt.minimum(one, x * constant(x, 1.1))
    bound = pt.switch(x <= constant(x, 0.5), constant(x, -0.4) / logarithm, bound)
    small = (x <= constant(x, 2.0)) & (a <= bound)
    value = pt.switch(parts.by_fraction, parts.fraction, one - parts.series)
    value = where_any(small, _upper_of_small(a, x, logarithm, small), value)
    return where_any(parts.by_expansion, parts.upper, value)


def _at_ends(
    a: TensorVariable,
    x: TensorVariable,
    value: TensorVariable,
    at_zero: TensorVariable,
    at_infinity: TensorVariable,
) -> TensorVariable:
    """Set the values where an argument is zero or infinite, and NaN outside of the domain."""
    zero, infinity = constant(x, 0.0), constant(x, math.inf)
    nan = constant(x, math.nan)
    low = pt.eq(x, zero) | pt.eq(a, infinity)
    high = pt.eq(x, infinity) | pt.eq(a, zero)
    value = pt.switch(low, at_zero, pt.switch(high, at_infinity, value))
    outside = (low & high) | (a < zero) | (x < zero)
    return pt.switch(outside | pt.isnan(a) | pt.isnan(x), nan, value)


def _parts(a: TensorVariable, x: TensorVariable, start: float) -> Parts:
    """Compute both functions, by the continued fraction from ``start`` on."""
    zero, one, ten = (constant(x, n) for n in (0.0, 1.0, 10.0))
    inside = (a > zero) & (x > zero) & (a < constant(x, math.inf)) & (x < constant(x, math.inf))
    a, x = pt.switch(inside, a, one), pt.switch(inside, x, one)
    mu = (x - a) / a
    exponent = log1p_less_argument(mu)
    factor = _factor(a, x, mu, exponent)
    by_expansion = (a > constant(x, 20.0)) & (pt.abs(mu) < constant(x, 0.3))
    by_fraction = ~by_expansion & (x > constant(x, start)) & (x > a)
    by_series = ~(by_expansion | by_fraction) & (factor > zero)
    has_fraction = by_fraction & (factor > zero)
    sums = _sum(a, pt.switch(by_series, x, zero))
    quotients = _fraction(pt.switch(has_fraction, a, one), pt.switch(has_fraction, x, ten))
    lower, upper = _by_expansion(
        pt.switch(by_expansion, a, constant(x, 100.0)),
        pt.switch(by_expansion, mu, zero),
        pt.switch(by_expansion, exponent, zero),
        factor,
    )
    return Parts(
        factor, factor * sums, factor * a * quotients, lower, upper, by_fraction, by_expansion
    )


def log1p_less_argument(
    mu: TensorVariable, one_more: TensorVariable | None = None
) -> TensorVariable:
    """``log(1 + mu) - mu``, accurately next to zero, as in `log1p_near_zero`.

    ``one_more`` is ``1 + mu`` where the sum would cancel.
    """
    s = mu / (constant(mu, 2.0) + mu)
    square = s * s
    near = -s * (mu - square * polynomial(square, LOG_RATIO_WIDE))
    far = pt.log(constant(mu, 1.0) + mu if one_more is None else one_more) - mu
    return pt.switch(pt.abs(mu) < constant(mu, 0.5), near, far)


def _factor(
    a: TensorVariable, x: TensorVariable, mu: TensorVariable, exponent: TensorVariable
) -> TensorVariable:
    """``x**a exp(-x) / gamma(a + 1)``.

    Powers are more accurate than exponentials of products while the rounding of ``x / a`` is not
    raised to a high one. The others err by some roundings of the exponent, as SciPy's do.
    """
    one = constant(x, 1.0)
    small = a < one
    difference = pt.switch(small, x, x - a)
    near = pt.abs(mu) < constant(x, 0.5)
    far_exponent = a * pt.log(x / a) - (x - a)
    product = pt.exp(pt.switch(near, a * exponent, far_exponent))
    modest = (a < constant(x, 150.0)) & (difference < constant(x, 600.0))
    base = pt.switch(small, x, x / a)
    by_power = pt.pow(base, a) * pt.exp(-difference)
    value = pt.switch(modest | small, by_power, product)
    y = pt.switch(small, one, a)
    of_large = value / (pt.sqrt(y) * scaled_gamma(y))
    return pt.switch(small, value / gamma_plus_one(pt.minimum(a, one)), of_large)


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


def _by_expansion(
    a: TensorVariable, mu: TensorVariable, exponent: TensorVariable, factor: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Both functions by Temme's uniform expansion (DLMF 8.12.3-8).

    What the rounding of the argument of `erfc` costs in its tail is corrected to first order.
    """
    half, one = constant(a, 0.5), constant(a, 1.0)
    eta = pt.sign(mu) * pt.sqrt(-(exponent + exponent))
    reciprocal = one / a
    total = polynomial(eta, TEMME[-1])
    for coefficients in reversed(TEMME[:-1]):
        total = total * reciprocal + polynomial(eta, coefficients)
    z = eta * pt.sqrt(half * a)
    square, error = square_with_error(z)
    correction = (square + a * exponent) + error
    # The factor is exp(a * exponent) / (sqrt(2 pi a) gamma*(a)).
    rest = factor * scaled_gamma(a) * constant(a, 1 / math.sqrt(2 * math.pi)) * total
    right, left = half * erfc(z), half * erfc(-z)
    positive = z > constant(a, 0.0)
    right = pt.switch(positive, right + right * correction, right)
    left = pt.switch(positive, left, left + left * correction)
    return left - rest, right + rest


def _upper_of_small(
    a: TensorVariable, x: TensorVariable, logarithm: TensorVariable, small: TensorVariable
) -> TensorVariable:
    """Upper function by the series of the lower one in powers of ``-x`` (DLMF 8.7.3)."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    a, x = pt.switch(small, a, one), pt.switch(small, x, zero)
    logarithm = pt.switch(small, logarithm, zero)
    exponent = a * logarithm - log_gamma_plus_one(a)
    total = zero
    power = one
    for n in range(1, 29):
        power = power * (x * constant(x, -1 / n))
        total = total + power * (a / (a + constant(x, n)))
    return -expm1(exponent) - pt.exp(exponent) * total
