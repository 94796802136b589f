"""Exponentials of complex numbers."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.complex.zero_signs import is_finite
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.trigonometric import cos, sin
from pytensor_onnx.ops.complex import ComplexExp, ComplexExp2, ComplexExpm1


@define(ComplexExp)
def exp(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return ``exp(a) cos(b)`` and ``exp(a) sin(b)``, finite where ``exp(a)`` overflows alone.

    Infinities follow annex G of the C standard.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in exp(pt.constant(1.0), pt.constant(2.0))]
    [-1.131204, 2.471727]
    """
    size, rest = scaled_exponential(a)
    return _at_angle(a, b, b, size, rest)


@define(ComplexExp2)
def exp2(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return ``2**a cos(b log 2)`` and ``2**a sin(b log 2)``.

    Examples
    --------
    >>> [x.eval().item() for x in exp2(pt.constant(3.0), pt.constant(0.0))]
    [8.0, 0.0]
    """
    angle = b * constant(b, math.log(2))
    return _at_angle(a, b, angle, pt.exp2(a), constant(a, 1.0))


@define(ComplexExpm1)
def expm1(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return ``expm1(a) cos(b) - 2 sin(b / 2)**2`` and ``exp(a) sin(b)``.

    Examples
    --------
    >>> [x.eval().item() for x in expm1(pt.constant(1e-20), pt.constant(0.0))]
    [1e-20, 0.0]
    """
    sine = sin(b * constant(b, 0.5))
    real = pt.expm1(a) * cos(b) - constant(a, 2.0) * sine * sine
    return real, pt.exp(a) * sin(b)


def scaled_exponential(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return two factors of the exponential that are finite where their product overflows."""
    is_large = a > constant(a, 700.0, float32=85.0)
    root = pt.exp(a * constant(a, 0.5))
    size = pt.switch(is_large, root, pt.exp(a))
    return size, pt.switch(is_large, root, constant(a, 1.0))


def _at_angle(
    a: TensorVariable,
    b: TensorVariable,
    angle: TensorVariable,
    size: TensorVariable,
    rest: TensorVariable,
) -> Parts:
    """Return the number of an angle and of two factors of a size, with the limits at infinity."""
    zero, one, infinity = constant(a, 0.0), constant(a, 1.0), constant(a, math.inf)
    is_limit, is_real = pt.isinf(a) & ~is_finite(b), pt.eq(b, zero)
    real = (size * cos(angle)) * rest
    real = pt.switch(is_limit, pt.switch(a > zero, infinity, zero), real)
    imag = (pt.switch(is_real, one, size) * sin(angle)) * pt.switch(is_real, one, rest)
    return real, pt.switch(is_limit & (a < zero), zero, imag)
