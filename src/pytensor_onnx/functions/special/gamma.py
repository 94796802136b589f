"""The gamma function."""

import math
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import Gamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, horner, polynomial
from pytensor_onnx.functions.special.exponential import expm1_of_reduced
from pytensor_onnx.functions.special.gamma_coefficients import (
    GAMMA_BOW_BOTTOM,
    GAMMA_BOW_TOP,
    GAMMA_EXCESS_BOTTOM,
    GAMMA_EXCESS_TOP,
)
from pytensor_onnx.functions.special.reflection import from_nearest_even, sine_pi_excess
from pytensor_onnx.functions.special.wide_evaluation import in_float64, where_any

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
