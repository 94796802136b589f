"""The gamma function."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Gamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import LOG_E_REST, constant, polynomial
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.gamma_coefficients import (
    GAMMA_BOW_BOTTOM,
    GAMMA_BOW_TOP,
    GAMMA_EXCESS_BOTTOM,
    GAMMA_EXCESS_TOP,
)
from pytensor_onnx.functions.special.reflection import alternating_sine_pi, is_pole


@define(Gamma)
@in_float64
def gamma(x: TensorVariable) -> TensorVariable:
    """Gamma function, NaN at negative integers; exact at integers up to 18.

    Notes
    -----
    Stirling's formula with a fitted factor serves from one on. Below, ``gamma(x + 1) = x gamma(x)``
    and the reflection ``gamma(x) gamma(-x) = -pi / (x sin(pi x))`` (DLMF 5.5.1 and 5.5.3).
    """
    one = constant(x, 1.0)
    a = pt.abs(x)
    below_one = a < one
    power, factor, scaled, growth = _factors(a + below_one.astype(x.dtype))
    positive = power * (factor * (scaled / growth))
    positive = _whole_of_whole(x, pt.switch(below_one, positive / x, positive))

    sine = alternating_sine_pi(a)
    far = -(growth / scaled) / (sine * a) / power / factor
    near = -one / (sine * gamma_plus_one(a))
    negative = pt.switch(is_pole(x), constant(x, math.nan), pt.switch(below_one, near, far))
    return where_any(x < constant(x, 0.0), negative, positive)


def gamma_from_one(x: TensorVariable) -> TensorVariable:
    """``gamma(x)`` for ``x >= 1``, and ``gamma(1)`` in place of smaller numbers."""
    power, factor, scaled, growth = _factors(pt.maximum(x, constant(x, 1.0)))
    return _whole_of_whole(x, power * (factor * (scaled / growth)))


def _whole_of_whole(x: TensorVariable, value: TensorVariable) -> TensorVariable:
    """Round the values at integers to integers, which they are."""
    integer = pt.round(value)
    exact = pt.eq(x, pt.round(x)) & (integer < constant(x, 1e15))
    return pt.switch(exact, integer, value)


def gamma_plus_one(x: TensorVariable) -> TensorVariable:
    """``gamma(x + 1)`` for ``0 <= x <= 1``."""
    one = constant(x, 1.0)
    bow = polynomial(x, GAMMA_BOW_TOP) / polynomial(x, GAMMA_BOW_BOTTOM)
    return one + x * (x - one) * bow


def gamma_from_one_to_twenty(y: TensorVariable) -> TensorVariable:
    """``gamma(y)`` for ``1 <= y <= 20``."""
    scaled, growth = _without_power(y)
    return pt.pow(y, y - constant(y, 0.5)) * (scaled / growth)


def _factors(y: TensorVariable) -> tuple[TensorVariable, ...]:
    """``gamma(y)`` for ``y >= 1`` as three factors and a divisor, which overflow late or never."""
    # At the bound the product overflows, and infinity would make NaN.
    y = pt.minimum(y, constant(y, 200.0))
    half, one = constant(y, 0.5), constant(y, 1.0)
    large = y > constant(y, 140.0)
    power = pt.pow(y, (y - half) * (one - half * large.astype(y.dtype)))
    return power, pt.switch(large, power, one), *_without_power(y)


def _without_power(y: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``gamma(y) / y**(y - 1/2)`` for ``y >= 1``, as a quotient.

    The powers are those of ONNX Runtime, more accurate than its exponentials; the rounding of the
    base is corrected to first order.
    """
    correction = y * constant(y, LOG_E_REST[y.dtype] * math.sqrt(2 * math.pi))
    return scaled_gamma(y, correction), pt.pow(constant(y, math.e), y)


def scaled_gamma(y: TensorVariable, correction: TensorVariable | None = None) -> TensorVariable:
    """``gamma(y) / (y**(y - 1/2) exp(-y))`` for ``y >= 1``, plus a small correction."""
    s = constant(y, 1.0) / y
    excess = s * (polynomial(s, GAMMA_EXCESS_TOP) / polynomial(s, GAMMA_EXCESS_BOTTOM))
    excess = excess if correction is None else excess + correction
    return constant(y, math.sqrt(2 * math.pi)) + excess
