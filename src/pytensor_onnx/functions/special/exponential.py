"""Exponentials, logarithms, powers, and the functions made of them.

The operator `Exp` differs between runtimes by its vector instructions. These functions consist of
operations that IEEE 754 rounds correctly and a table of powers of two (17 kB of a file in float64).
They take 7 ns an element in float64 and 12 of arrays that leave the cache, where a power takes 8,
and `Exp` 3; a single number takes 5 µs longer than by `Exp`.

Use `exp(x)` for the exponential alone. Use `times_exponential(factor, x)` for products
``factor * exp(x)`` with ``x`` within bounds: no part overflows or underflows before the product
does. Compute sums like ``exp(x) - 1`` from the two parts of `exponential`. All three accept a small
``rest`` that is added to ``x``.
"""

import math
from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import Exp2, Expm1, Log1p, Log2, Log10
from pytensor.scalar.math import Log1mexp, Sigmoid, Softplus
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    horner,
    polynomial,
    upper_half,
)
from pytensor_onnx.functions.special.coefficients import (
    COSINE,
    HALF_COTH,
    REDUCED_HALF_COTH,
    REDUCED_LOG_RATIO,
    SINE,
)
from pytensor_onnx.ops.special import precise
from pytensor_onnx.ops.special.portable import (
    PortableCotPi,
    PortableExp,
    PortableExpm1,
    PortableLog,
    PortableLog1p,
    half_power_of_two,
)


def exponential(
    x: TensorVariable, rest: TensorVariable | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Split the exponential of ``x + rest`` into an excess over one and half of a power of two.

    With ``x = k log(2) + r`` for the nearest whole ``k``, ``exp(r) - 1 = r + r c / (2 - c)``, where
    ``c = r + 2 - r coth(r/2)`` is ``r`` less a small even function.

    Parameters
    ----------
    x
        Numbers from -744 to 710, in float32 from -102.9 to 89, or NaN. The exponential of numbers
        less than that, by 2 at most, is right where it is rounded to one bit; that of greater ones,
        up to 1000, is infinite.
    rest
        Correction to ``x`` of less than a few units in its last place.

    Returns
    -------
    excess, half
        ``exp(x + rest) = 2 * half * (1 + excess)``.
    """
    k = pt.round(x * constant(x, 1 / math.log(2)))
    # Below, half of the power would be zero; one bit of the result is left.
    k = pt.maximum(k, constant(x, -1073.0, float32=-148.0))
    upper, lower = log_2(x)
    below = k * lower if rest is None else k * lower - rest
    return expm1_of_reduced((x - k * upper) - below), half_power_of_two(k)


def expm1_of_reduced(r: TensorVariable) -> TensorVariable:
    """``exp(r) - 1`` for numbers from ``-log(2) / 2`` to ``log(2) / 2``."""
    square = r * r
    c = r - square * polynomial(square, REDUCED_HALF_COTH)
    return r + r * c / (constant(r, 2.0) - c)


def times_exponential(
    factor: TensorVariable, x: TensorVariable, rest: TensorVariable | None = None
) -> TensorVariable:
    """Multiply a number by the exponential of ``x + rest``, for the numbers of `exponential`."""
    excess, half = exponential(x, rest)
    product = factor + factor * excess
    return (product + product) * half


def exp(x: TensorVariable, rest: TensorVariable | None = None) -> TensorVariable:
    """Exponential of any number and of a rest, within 1 ulp."""
    bounds = constant(x, -746.0, float32=-105.0), constant(x, 710.0, float32=89.0)
    excess, half = exponential(pt.clip(x, *bounds), rest)
    near_one = constant(x, 1.0) + excess
    return (near_one + near_one) * half


def log_2(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return ``log(2)`` as a sum of a number with some trailing zero bits and a correction."""
    return (
        constant(x, 0.6931471803691238, float32=0.693359375),
        constant(x, 1.9082149292705877e-10, float32=-2.12194440e-4),
    )


@define(Expm1)
def expm1(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1``.

    Notes
    -----
    With the two parts of `exponential`, ``2 (half excess + (half - 1/2))``, whose second addend is
    exact, zero for ``|x| < 0.34``, and beyond that the larger one. The smallest numbers, half of
    which would be rounded, are their own results.
    """
    excess, half = exponential(pt.clip(x, constant(x, -50.0), constant(x, 710.0, float32=89.5)))
    value = half * excess + (half - constant(x, 0.5))
    return pt.switch(pt.abs(x) > constant(x, 1e-300, float32=1e-30), value + value, x)


def expm1_near_zero(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1`` for ``|x| <= 1.1``."""
    square = x * x
    c = x - square * polynomial(square, HALF_COTH)
    return (x + x) / (constant(x, 2.0) - c)


@define(Log1mexp)
def log1mexp(x: TensorVariable) -> TensorVariable:
    """``log(1 - exp(x))``, NaN for positive ``x``.

    Notes
    -----
    ``log(-expm1(x))`` above ``-log(2)`` and ``log1p(-exp(x))`` below, where each of them is well
    conditioned (M. Mächler, Accurately computing log(1 - exp(-|a|)), 2012, equation 7).
    """
    near = x > constant(x, -0.6931471805599453)
    return pt.switch(near, precise.log(-expm1(x)), log1p(-exp(x)))


@define(Sigmoid)
def sigmoid(x: TensorVariable) -> TensorVariable:
    """``exp(x) / (1 + exp(x))``, with ``x`` at most 40, where the result is one.

    Notes
    -----
    The exponential does not overflow, and for negative ``x`` it is the numerator, so that the left
    tail keeps its relative accuracy down to the subnormal numbers. For positive ``x`` its error
    cancels but for a part of ``1 / (1 + exp(x))``.
    """
    growth = pt.exp(pt.minimum(x, constant(x, 40.0)))
    return growth / (constant(x, 1.0) + growth)


@define(Softplus)
def softplus(x: TensorVariable) -> TensorVariable:
    """``log(1 + exp(x))`` as ``max(x, 0) + log1p(exp(-|x|))``, which cannot overflow."""
    return pt.maximum(x, constant(x, 0.0)) + log1p(exp(-pt.abs(x)))


@define(Exp2)
def exp2(x: TensorVariable) -> TensorVariable:
    """``2**x``, exact for integers."""
    return pt.pow(constant(x, 2.0), x)


@define(Log2)
def log2(x: TensorVariable) -> TensorVariable:
    """``log(x) / log(2)``, exact at powers of 2."""
    value = precise.log(x) * constant(x, 1.4426950408889634)
    integer = pt.round(value)
    return pt.switch(pt.eq(pt.pow(constant(x, 2.0), integer), x), integer, value)


@define(Log10)
def log10(x: TensorVariable) -> TensorVariable:
    """``log(x) / log(10)``, exact at powers of 10."""
    value = precise.log(x) * constant(x, 0.4342944819032518)
    integer = pt.round(value)
    # The subnormal numbers next to powers of 10 are too coarse to be taken for them.
    power = pt.pow(constant(x, 10.0), pt.maximum(integer, constant(x, -307.0, float32=-37.0)))
    return pt.switch(pt.eq(power, x), integer, value)


@define(Log1p)
def log1p(x: TensorVariable) -> TensorVariable:
    """``log(1 + x)``.

    Notes
    -----
    ``1 + x`` rounds to ``u``, and ``x - (u - 1)`` is what the rounding lost, exactly. To first
    order ``log(1 + x) = log(u) + (x - (u - 1)) / u``, the additive form of the correction in
    D. Goldberg, ACM Computing Surveys 23 (1991), theorem 4. Where the logarithm is infinite there
    is nothing to correct.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    u = one + x
    log_u = precise.log(u)
    # Not a sum, for the sake of the sign of zero: -0.0 - 0.0 is -0.0.
    corrected = (x - (u - one)) / u - (zero - log_u)
    return pt.switch(pt.isinf(log_u), log_u, corrected)


# Powers that are equal in every bit in all runtimes, as their logarithms in `portable_formulas`.
#
# A power is the exponential of a product that loses no digit, of the exponent and of a logarithm in
# two parts: ``exp(*product_with_rest(y, *log_with_rest(x)))``.


def power_of_logarithm(
    y: TensorVariable, logarithm: TensorVariable, rest: TensorVariable
) -> TensorVariable:
    """``x**y`` by the logarithm of ``x`` in two parts.

    By that of `log_of_normal_with_rest`, the relative error is 1 ulp and the lesser of 1.5e-17
    times ``y`` and 3.5e-17 times the logarithm of the result. Powers of the largest exponents have
    their limits.
    """
    y = pt.clip(y, constant(y, -1e300), constant(y, 1e300))
    product, rest = product_with_rest(y, logarithm, rest)
    # Where the power has a limit, the rest may be large.
    return exp(product, pt.clip(rest, constant(y, -1e-12), constant(y, 1e-12)))


def log_of_normal_with_rest(
    x: TensorVariable, exponent: TensorVariable | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """`log_of_normal` in two parts, to 1.5e-17 and 3.5e-17 of its value.

    That is the error of ``s (f - R)``; the other parts are added without one. `log_with_rest` has
    more digits, and takes half as many operators again.
    """
    k, f = binary_parts(x, exponent)
    s = f / (constant(x, 2.0) + f)
    upper, lower = log_2(x)
    whole = k * upper
    total = whole + f
    rest = (f - (total - whole)) - (s * (f - log_ratio(s * s)) - k * lower)
    logarithm = total + rest
    return logarithm, rest - (logarithm - total)


def log_with_rest(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Natural logarithm of positive finite float64 numbers in two parts, to about 1e-18.

    With ``x = 2**k (1 + f)`` and ``s = f / (2 + f)`` as in `log_of_normal`, the logarithm is
    ``k log(2) + 2 s`` and less than 0.004. The quotient and the sum have their rounding errors
    added, as in fdlibm's ``e_pow.c``.
    """
    two = constant(x, 2.0)
    k, f = binary_parts(*to_normal(x))
    bottom = two + f
    s = f / bottom
    first, bottom_first = upper_half(s), upper_half(bottom)
    bottom_second = f - (bottom_first - two)
    second = ((f - first * bottom_first) - first * bottom_second) / bottom
    upper, lower = log_2(x)
    whole = k * upper
    twice = first + first
    total = whole + twice
    rest = (twice - (total - whole)) + ((second + second) + (s * log_ratio(s * s) + k * lower))
    logarithm = total + rest
    return logarithm, rest - (logarithm - total)


def product_with_rest(
    y: TensorVariable, x: TensorVariable, rest: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``y * (x + rest)`` in two parts (T. J. Dekker, Numer. Math. 18 (1971) 224-242)."""
    product = y * x
    y_first, x_first = upper_half(y), upper_half(x)
    y_second, x_second = y - y_first, x - x_first
    error = (y_first * x_first - product) + y_first * x_second + y_second * x_first
    return product, (error + y_second * x_second) + y * rest


def quotient_with_rest(
    x: TensorVariable, rest: TensorVariable, y: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``(x + rest) / y`` in two parts."""
    quotient = x / y
    product, error = product_with_rest(quotient, y, constant(x, 0.0))
    return quotient, (((x - product) - error) + rest) / y


def root_of_exponential(
    a: TensorVariable, x: TensorVariable, rest: TensorVariable, shift: TensorVariable
) -> TensorVariable:
    """``exp((x + rest + shift) / a)``, of an exponent that is not rounded."""
    total, error = add_with_error(x, shift)
    quotient, rest = quotient_with_rest(total, error + rest, a)
    # Of infinite exponents, and of the largest parameters, the rest is NaN.
    rest = pt.switch(pt.isnan(rest), constant(x, 0.0), rest)
    exponent, rest = add_with_error(pt.maximum(quotient, constant(x, -1e300)), rest)
    # Far beyond the range of exponentials the rest may be large.
    return exp(exponent, pt.clip(rest, constant(x, -1e-3), constant(x, 1e-3)))


def exponent_with_rest(
    y: TensorVariable, x: TensorVariable, rest: TensorVariable, shift: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``y * (x + rest) + shift`` in two parts, for an exponential."""
    product, rest = product_with_rest(y, x, rest)
    total, error = add_with_error(product, shift)
    # Far beyond the range of exponentials the rest may be large.
    return total, pt.clip(error + rest, constant(x, -1e-3), constant(x, 1e-3))


# Logarithm, exponential and cotangent that are equal in every bit in all runtimes.
#
# They consist of operations that IEEE 754 rounds correctly, so that they round alike everywhere.
# The runtime's logarithm serves to find exponents of two only, which are rounded afterwards.

Logarithm = Callable[[TensorVariable], TensorVariable]


@define(PortableLog)
def portable_log(x: TensorVariable) -> TensorVariable:
    """Natural logarithm, within 1 ulp."""
    value = log_of_normal(*to_normal(x))
    # Infinities and NaN are equal in all runtimes.
    is_positive = (x > constant(x, 0.0)) & (x < constant(x, np.inf))
    return pt.switch(is_positive, value, pt.log(x))


def to_normal(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return a normal number, not one of the largest, and an exponent of two for positive ``x``."""
    shift = constant(x, 60.0, float32=30.0)
    up, down = constant(x, 2.0**60, float32=2.0**30), constant(x, 2.0**-60, float32=2.0**-30)
    is_small = x < constant(x, 1.0)
    return x * pt.switch(is_small, up, down), pt.switch(is_small, -shift, shift)


def log_of_normal(x: TensorVariable, exponent: TensorVariable | None = None) -> TensorVariable:
    """Natural logarithm of ``2**exponent x``, for normal positive ``x`` below 2**970.

    ``x = 2**k m`` with ``m`` between ``sqrt(1/2)`` and ``sqrt(2)``; then, as in fdlibm's
    ``e_log.c``, ``log(m) = 2 s + s R(s**2)`` for ``s = f / (2 + f)`` and ``f = m - 1``, and ``2 s``
    is ``f - s f``. The upper part of ``log(2)`` has few bits, so that ``k`` times it is exact.

    Parameters
    ----------
    x
        Numbers, in float32 below 2**100.
    exponent
        Whole numbers; 0 by default.
    """
    k, f = binary_parts(x, exponent)
    s = f / (constant(x, 2.0) + f)
    square = s * s
    rest = s * (f - log_ratio(square))
    upper, lower = log_2(x)
    return k * upper - ((rest - k * lower) - f)


def binary_parts(
    x: TensorVariable, exponent: TensorVariable | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Return whole ``k`` and ``f``: ``2**k (1 + f)`` is the number as in `log_of_normal`."""
    power = _power_of_two(x)
    k = pt.round(pt.log(power) * constant(x, 1 / np.log(2)))
    if exponent is not None:
        k = k + exponent
    return k, x / power - constant(x, 1.0)


def log_ratio(square: TensorVariable) -> TensorVariable:
    """``log((1 + s) / (1 - s)) / s - 2`` of the square of ``s``, as in `log_of_normal`."""
    return square * polynomial(square, REDUCED_LOG_RATIO)


@define(PortableLog1p)
def portable_log1p(x: TensorVariable) -> TensorVariable:
    """``log(1 + x)``, with the correction for the rounding of the sum as in `Log1p`."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    u = one + x
    log_u = portable_log(u)
    corrected = (x - (u - one)) / u - (zero - log_u)
    return pt.switch(pt.isinf(log_u), log_u, corrected)


@define(PortableExp)
def portable_exp(x: TensorVariable) -> TensorVariable:
    """Exponential, within 1 ulp."""
    return exp(x)


def power_of_exp(x: TensorVariable) -> TensorVariable:
    """``exp(64 x)`` for ``-1 <= x <= 0`` and terms of a sum: to 1e-16, and 2e-15 of its value.

    ``exp(x) - 1`` is ``x`` over a short part of ``1 - x/2 + x**2/12 - ...`` (DLMF 24.2.1), and
    ``exp(2 x) - 1 = y (2 + y)`` for ``y = exp(x) - 1``. That is squared five times, in all half of
    the operations of `portable_exp`.
    """
    one = constant(x, 1.0)
    square = x * x
    even = horner(square, [constant(x, value) for value in (1 / 12, -1 / 720, 1 / 30240)])
    y = x / ((one - constant(x, 0.5) * x) + square * even)
    power = one + y * (constant(x, 2.0) + y)
    for _ in range(5):
        power = power * power
    return power


def reduced_expm1(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return ``r`` between ``sqrt(1/2) - 1`` and ``sqrt(2) - 1``, and a power of two ``p``.

    ``exp(x) = (1 + r) p``, for results that are normal numbers. ``r`` is accurate next to its roots
    at 0, ``-log(2)`` and ``-2 log(2)`` too, as multiples by powers of two are exact.
    """
    k = pt.round(x * constant(x, 1 / np.log(2)))
    rest = constant(x, 2.3190468138462996e-17, float32=-1.904654299957768e-09)
    r = (x - k * constant(x, np.log(2))) - k * rest
    square = r * r
    c = r - square * polynomial(square, REDUCED_HALF_COTH)
    half = half_power_of_two(k)
    return r + r * c / (constant(x, 2.0) - c), half + half


@define(PortableExpm1)
def portable_expm1(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1``, computed as `Expm1`."""
    beyond = portable_exp(x) - constant(x, 1.0)
    return pt.switch(pt.abs(x) > constant(x, 0.8), beyond, expm1_near_zero(x))


@define(PortableCotPi)
def portable_cot_pi(x: TensorVariable) -> TensorVariable:
    """Cotangent of ``pi x`` for ``x`` from 0 to 1, by the nearest multiple of 1/2."""
    half = constant(x, 0.5)
    from_end = pt.minimum(x, constant(x, 1.0) - x)
    is_steep = from_end < constant(x, 0.25)
    turns = pt.switch(is_steep, from_end, half - from_end)
    sine, cosine = sine_and_cosine(turns * constant(x, np.pi))
    size = pt.switch(is_steep, cosine / sine, sine / cosine)
    return pt.switch(x > half, -size, size)


def sine_and_cosine(angle: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Sine and cosine of an angle of at most 45 degrees, in radians."""
    square = angle * angle
    sine = angle + angle * (square * polynomial(square, SINE))
    cosine = constant(angle, 0.5) * square - square * square * polynomial(square, COSINE)
    return sine, constant(angle, 1.0) - cosine


def keep_upper_bits(x: TensorVariable) -> TensorVariable:
    """Round float64 numbers to 16 bits, by T. J. Dekker's split (Numer. Math. 18 (1971) 224-242).

    Numbers that differ in their last bits become equal, but for one pair in a billion.
    """
    small = x * constant(x, 2.0**-40)
    scaled = small * constant(x, 2.0**37 + 1)
    return (scaled - (scaled - small)) * constant(x, 2.0**40)


def _power_of_two(x: TensorVariable) -> TensorVariable:
    """Return the power of two between ``x / sqrt(2)`` and ``sqrt(2) x``, of a positive number.

    It is one or two units in the last place of ``x``, scaled: 1.06 to 2.12 units are subtracted,
    and the difference is rounded to whole ones, or to halves below a power of two. Compilers may
    round a product and a difference at once, as the scaled number is exact, and may rearrange sums
    and products, which they do not take out of an absolute value.
    """
    scaled = x * constant(x, 2.0 ** np.finfo(x.dtype).nmant)
    return scaled - pt.abs(scaled - x * constant(x, 1.5 / np.sqrt(2)))
