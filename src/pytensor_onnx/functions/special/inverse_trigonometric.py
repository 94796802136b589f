"""Inverse trigonometric functions."""

import math

import pytensor.tensor as pt
from pytensor.scalar.basic import ArcCos, ArcSin, ArcTan, ArcTan2
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, is_positive, polynomial
from pytensor_onnx.functions.special.coefficients import (
    ARCSIN_BOTTOM,
    ARCSIN_TOP,
    ARCTAN_BOTTOM,
    ARCTAN_TOP,
)

# Rounding error of pi/2.
_HALF_PI_REST = {"float64": 6.123233995736766e-17, "float32": -4.371139000186241e-08}


@define(ArcSin)
def arcsin(x: TensorVariable) -> TensorVariable:
    """Inverse sine; beyond one half, ``pi/2 - 2 arcsin(sqrt((1 - |x|) / 2))``."""
    a = pt.abs(x)
    large = a > constant(x, 0.5)
    reduced = pt.switch(large, _half_angle(a), x)
    angle = reduced + _arcsin_excess(reduced)
    high, rest = _half_pi(x)
    far = pt.sign(x) * (high - (angle + angle - rest))
    return pt.switch(large, far, angle)


@define(ArcCos)
def arccos(x: TensorVariable) -> TensorVariable:
    """Inverse cosine; beyond one half, by ``2 arcsin(sqrt((1 - |x|) / 2))``."""
    a = pt.abs(x)
    large = a > constant(x, 0.5)
    reduced = pt.switch(large, _half_angle(a), x)
    excess = _arcsin_excess(reduced)
    high, rest = _half_pi(x)
    near = high - (reduced - (rest - excess))
    angle = reduced + excess
    right = angle + angle
    left = (high + high) - (right - (rest + rest))
    return pt.switch(large, pt.switch(x < constant(x, 0.0), left, right), near)


@define(ArcTan)
def arctan(x: TensorVariable) -> TensorVariable:
    """Inverse tangent; beyond one, ``pi/2 - arctan(1 / |x|)``."""
    a = pt.abs(x)
    one = constant(x, 1.0)
    large = a > one
    angle = _arctan_to_one(pt.switch(large, one / a, x))
    high, rest = _half_pi(x)
    return pt.switch(large, pt.sign(x) * (high - (angle - rest)), angle)


@define(ArcTan2)
def arctan2(y: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Angle of the point ``(x, y)``, with the signs of zeros and infinities heeded.

    Notes
    -----
    The angle in the first octant, ``arctan(min / max)`` of the absolute values, is reflected into
    the octant of the point. Equal values are set aside for the sake of 0/0 and inf/inf.
    """
    a, b = pt.abs(y), pt.abs(x)
    steep = a > b
    ratio = pt.switch(steep, b, a) / pt.switch(steep, a, b)
    ratio = pt.switch(pt.eq(a, b), pt.sign(a), ratio)
    angle = _arctan_to_one(ratio)
    high, rest = _half_pi(x)
    angle = pt.switch(steep, high - (angle - rest), angle)
    angle = pt.switch(is_positive(x), angle, (high + high) - (angle - (rest + rest)))
    return pt.switch(is_positive(y), angle, -angle)


def _half_pi(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``pi/2`` as the sum of its rounded value and the rest."""
    return constant(x, math.pi / 2), constant(x, _HALF_PI_REST[x.dtype])


def _half_angle(a: TensorVariable) -> TensorVariable:
    """``sqrt((1 - a) / 2)``: the sine of half the angle whose cosine is ``a``."""
    return pt.sqrt((constant(a, 1.0) - a) * constant(a, 0.5))


def _arcsin_excess(x: TensorVariable) -> TensorVariable:
    """``arcsin(x) - x`` for ``|x| <= 1/2``, by a rational function of ``x**2``."""
    square = x * x
    return x * (square * polynomial(square, ARCSIN_TOP) / polynomial(square, ARCSIN_BOTTOM))


def _arctan_to_one(x: TensorVariable) -> TensorVariable:
    """``arctan(x)`` for ``|x| <= 1``, by a rational function of ``x**2``.

    It multiplies, since the negative excess over ``x`` would turn -0.0 into +0.0 in a sum.
    """
    square = x * x
    excess = square * polynomial(square, ARCTAN_TOP) / polynomial(square, ARCTAN_BOTTOM)
    return x * (constant(x, 1.0) + excess)
