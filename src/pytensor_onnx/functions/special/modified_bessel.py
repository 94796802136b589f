"""Modified Bessel functions of the orders 0 and 1."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import I0, I1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.bessel_coefficients import (
    I0_LARGE,
    I0_MIDDLE,
    I0_SMALL,
    I1_LARGE,
    I1_MIDDLE,
    I1_SMALL,
)
from pytensor_onnx.functions.special.coefficients import Coefficients
from pytensor_onnx.functions.special.exponential import times_exponential
from pytensor_onnx.ops.special.bessel_ops import I0e, I1e

_FIRST, _LAST = 5.0, 16.0
# Chosen so that the constant coefficients lie within 0.2 ulp of floating-point numbers.
_SHIFT = 7.875


@define(I0)
def i0(x: TensorVariable) -> TensorVariable:
    """Compute the modified Bessel function I0; NaN at infinity, as in SciPy."""
    small = constant(x, 1.0) + _excess(x, I0_SMALL)
    large = _growing(pt.abs(x), I0_MIDDLE, I0_LARGE)
    return pt.switch(pt.abs(x) > constant(x, _FIRST), large, small)


@define(I1)
def i1(x: TensorVariable) -> TensorVariable:
    """Compute the modified Bessel function I1; NaN at infinity, as in SciPy."""
    half = x * constant(x, 0.5)
    small = half + half * _excess(x, I1_SMALL)
    large = _growing(pt.abs(x), I1_MIDDLE, I1_LARGE)
    return pt.switch(pt.abs(x) > constant(x, _FIRST), pt.sign(x) * large, small)


@define(I0e)
def i0e(x: TensorVariable) -> TensorVariable:
    """Compute ``exp(-|x|)`` times the modified Bessel function I0."""
    a = pt.abs(x)
    near = constant(x, 1.0) + _excess(x, I0_SMALL)
    return pt.switch(a > constant(x, _FIRST), _scaled(a, I0_MIDDLE, I0_LARGE), _damped(near, a))


@define(I1e)
def i1e(x: TensorVariable) -> TensorVariable:
    """Compute ``exp(-|x|)`` times the modified Bessel function I1."""
    a, half = pt.abs(x), x * constant(x, 0.5)
    near = half + half * _excess(x, I1_SMALL)
    far = pt.sign(x) * _scaled(a, I1_MIDDLE, I1_LARGE)
    return pt.switch(a > constant(x, _FIRST), far, _damped(near, a))


def _damped(value: TensorVariable, a: TensorVariable) -> TensorVariable:
    """``exp(-a) value`` for ``a`` up to the first bound."""
    return times_exponential(value, -pt.minimum(a, constant(a, _FIRST)))


def _excess(x: TensorVariable, coefficients: Coefficients) -> TensorVariable:
    """Evaluate a polynomial in ``z = x**2 / 4``, times ``z``."""
    half = x * constant(x, 0.5)
    square = half * half
    return square * polynomial(square, coefficients)


def _growing(a: TensorVariable, middle: Coefficients, large: Coefficients) -> TensorVariable:
    """``exp(a - 7.875) f(1/a) / sqrt(a)`` for ``a > 5``, which is finite as long as the result is.

    The difference is exact, since it is smaller than ``a`` and a multiple of the same unit.
    """
    # At the bound the result is infinite. The last difference is NaN at infinity.
    bounded = pt.minimum(a, constant(a, 717.0, float32=96.0))
    center, variation = _center_and_variation(bounded, middle, large)
    factor = (center + variation) / pt.sqrt(bounded)
    return times_exponential(factor, bounded - constant(a, _SHIFT)) + (a - a)


def _scaled(a: TensorVariable, middle: Coefficients, large: Coefficients) -> TensorVariable:
    """``exp(-7.875) f(1/a) / sqrt(a)`` for ``a > 5``."""
    center, variation = _center_and_variation(a, middle, large)
    return (center + variation) / pt.sqrt(a) * constant(a, math.exp(-_SHIFT))


def _center_and_variation(
    a: TensorVariable, middle: Coefficients, large: Coefficients
) -> tuple[TensorVariable, TensorVariable]:
    """``f(1/a)`` as a constant and a smaller rest."""
    one = constant(a, 1.0)
    is_large = a > constant(a, _LAST)
    center, variation = _split(one / a, large)
    near_center, near_variation = _split(constant(a, 10.0) / a - one, middle)
    center = pt.switch(is_large, center, near_center)
    return center, pt.switch(is_large, variation, near_variation)


def _split(x: TensorVariable, coefficients: Coefficients) -> tuple[TensorVariable, TensorVariable]:
    """Return the constant and the variable part of a polynomial."""
    return constant(x, coefficients[x.dtype][0]), x * polynomial(x, coefficients, start=1)
