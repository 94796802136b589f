"""The regularized incomplete gamma functions.

As in SciPy, Temme's expansion serves where ``x`` is close to a large ``a``, and otherwise a power
series below and a continued fraction above. Each loop runs until all elements have converged. The
fraction, which needs many steps for small ``x``, starts later than in SciPy.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import GammaInc, GammaIncC
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.erf import erfcx_of_positive
from pytensor_onnx.functions.special.expm1 import expm1
from pytensor_onnx.functions.special.gamma_coefficients import TEMME
from pytensor_onnx.functions.special.gamma_density import (
    gamma_density,
    log1p_less_argument_near_zero,
    scaled_gamma_of_next,
)
from pytensor_onnx.functions.special.gammaln import log_gamma_plus_one
from pytensor_onnx.functions.special.wide_evaluation import in_float64, where_any

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
