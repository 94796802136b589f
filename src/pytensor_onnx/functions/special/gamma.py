"""The gamma function."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Gamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.gamma_coefficients import (
    GAMMA_BOW_BOTTOM,
    GAMMA_BOW_TOP,
    GAMMA_EXCESS_BOTTOM,
    GAMMA_EXCESS_TOP,
)
from pytensor_onnx.functions.special.reflection import from_nearest_even, sine_pi_excess

# sqrt(2 pi / e), and 1/e as the sum of 27 bits and a rest.
_LIMIT = 1.520346901066281
_INVERSE_E = (0.3678794354200363, 5.751406005677555e-09)


@define(Gamma)
@in_float64
def gamma(x: TensorVariable) -> TensorVariable:
    """Gamma function, NaN at negative integers; exact at integers up to 18.

    Notes
    -----
    Stirling's formula with a fitted factor serves from one on. Below, ``gamma(x + 1) = x gamma(x)``
    and the reflection ``gamma(x) gamma(-x) = -pi / (x sin(pi x))`` (DLMF 5.5.1 and 5.5.3).
    """
    zero, half, one, limit = (constant(x, n) for n in (0.0, 0.5, 1.0, _LIMIT))
    a = pt.abs(x)
    base, exponent, rest = _stirling(a + (a < one).astype(x.dtype))
    power, root = pt.pow(base, exponent), pt.pow(base, half * exponent)
    positive = _whole_of_whole(x, power * (limit + rest) / pt.minimum(x, one))

    r = from_nearest_even(a)
    # The factor of the sine joins that of the power before both are rounded.
    factor = limit + (rest + (limit + rest) * sine_pi_excess(r))
    # At a pole the numerator is NaN.
    quotient = -(r / r) / (pt.maximum(a, one) * r * factor)
    # The power overflows before its reciprocal underflows.
    negative = where_any(a > constant(x, 170.0), quotient / root / root, quotient / power)
    return where_any(x < zero, negative, positive)


def _whole_of_whole(x: TensorVariable, value: TensorVariable) -> TensorVariable:
    """Round the values at integers to integers, or even ones if they are large, which they are."""
    shift = pt.eq(x, pt.round(x)).astype(x.dtype) * constant(x, 1.5 * 2.0**52)
    return (value + shift) - shift


def gamma_plus_one(x: TensorVariable) -> TensorVariable:
    """``gamma(x + 1)`` for ``0 <= x <= 1``."""
    one = constant(x, 1.0)
    bow = polynomial(x, GAMMA_BOW_TOP) / polynomial(x, GAMMA_BOW_BOTTOM)
    return one + x * (x - one) * bow


def _stirling(y: TensorVariable) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return a base, an exponent and a rest for ``y >= 1``.

    ``gamma(y)`` is ``base**exponent (sqrt(2 pi / e) + rest)``. The base is ``y / e``, rounded. Its
    error is computed exactly, with ``y`` as the sum of 26 bits and a rest, and enters the rest to
    first order.
    """
    # At the bound the power overflows, and infinity would make NaN.
    y = pt.minimum(y, constant(y, 200.0))
    half, s = constant(y, 0.5), constant(y, 1.0) / y
    upper = pt.round(y * constant(y, 2.0**18)) * constant(y, 2.0**-18)
    first, second = (constant(y, part) for part in _INVERSE_E)
    base = y * constant(y, 1 / math.e)
    error = (upper * first - base) + (y * second + (y - upper) * first)
    slope = constant(y, math.e * _LIMIT)
    return base, y - half, _excess(s) + error * (slope - slope * half * s)


def _excess(s: TensorVariable) -> TensorVariable:
    return polynomial(s, GAMMA_EXCESS_TOP) / polynomial(s, GAMMA_EXCESS_BOTTOM)


def scaled_gamma(y: TensorVariable) -> TensorVariable:
    """``gamma(y) / (y**(y - 1/2) exp(-y))`` for ``y >= 1``."""
    excess = _excess(constant(y, 1.0) / y)
    return constant(y, math.sqrt(2 * math.pi)) + constant(y, math.sqrt(math.e)) * excess
