"""Logarithm, exponential and cotangent that are equal in every bit in all runtimes.

They consist of operations that IEEE 754 rounds correctly, so that they round alike everywhere. The
runtime's logarithm serves to find exponents of two only, which are rounded afterwards.
"""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, horner, polynomial
from pytensor_onnx.functions.special.coefficients import (
    COSINE,
    REDUCED_HALF_COTH,
    REDUCED_LOG_RATIO,
    SINE,
)
from pytensor_onnx.functions.special.expm1 import expm1_near_zero
from pytensor_onnx.functions.special.exponential import exp, log_2
from pytensor_onnx.ops.special.portable import (
    PortableCotPi,
    PortableExp,
    PortableExpm1,
    PortableLog,
    PortableLog1p,
    half_power_of_two,
)

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
