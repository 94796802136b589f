"""Hyperbolic and trigonometric functions of complex numbers, as ``sin(z) = -i sinh(i z)``."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_exponential import scaled_exponential
from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.complex.zero_signs import is_finite
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.trigonometric import cos, sin
from pytensor_onnx.ops.complex import ComplexCosh, ComplexSinh, ComplexTanh


@define(ComplexSinh)
def sinh(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return ``sinh(a) cos(b)`` and ``cosh(a) sin(b)``.

    Examples
    --------
    >>> [x.eval().item() for x in sinh(pt.constant(0.0), pt.constant(0.0))]
    [0.0, 0.0]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    odd, even, rest = _halves(a)
    is_limit, is_real = ~is_finite(b) & pt.isinf(a), pt.eq(b, zero)
    cosine = pt.switch(pt.eq(a, zero) & ~is_finite(b), one, cos(b))
    real = pt.switch(is_limit, pt.abs(a), (odd * cosine) * rest)
    imag = (pt.switch(is_real, one, even) * sin(b)) * pt.switch(is_real, one, rest)
    return real, imag


@define(ComplexCosh)
def cosh(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return ``cosh(a) cos(b)`` and ``sinh(a) sin(b)``.

    Examples
    --------
    >>> [x.eval().item() for x in cosh(pt.constant(0.0), pt.constant(0.0))]
    [1.0, 0.0]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    odd, even, rest = _halves(a)
    is_limit, is_real = ~is_finite(b) & pt.isinf(a), pt.eq(b, zero)
    real = pt.switch(is_limit, pt.abs(a), (even * cos(b)) * rest)
    sine = pt.switch(pt.eq(a, zero) & ~is_finite(b), one, sin(b))
    # An infinite or unknown size has no part in a zero.
    odd = pt.switch(is_real & pt.isinf(a), pt.sign(a), pt.switch(is_real & pt.isnan(a), one, odd))
    return real, (odd * sine) * pt.switch(is_real, one, rest)


def _halves(a: TensorVariable) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return sinh and cosh over a common factor, which is one unless they overflow."""
    size, half, one = pt.abs(a), constant(a, 0.5), constant(a, 1.0)
    power, rest = scaled_exponential(size)
    growing = power * half
    decaying = pt.switch(size > constant(a, 40.0), constant(a, 0.0), half / power)
    far = growing - decaying
    odd = pt.switch(size > one, pt.switch(a > constant(a, 0.0), far, -far), pt.sinh(a))
    return odd, growing + decaying, rest


@define(ComplexTanh)
def tanh(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the hyperbolic tangent.

    W. Kahan, "Branch cuts for complex elementary functions" (1987): with ``t = tan(b)`` and
    ``s = sinh(a)`` the parts are ``(1 + t**2) sqrt(1 + s**2) s`` and ``t`` over
    ``1 + (1 + t**2) s**2``. For large ``|a|`` they are one and ``4 sin(b) cos(b) exp(-2 |a|)``.

    Examples
    --------
    >>> [x.eval().item() for x in tanh(pt.constant(1000.0), pt.constant(1.0))]
    [1.0, 0.0]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    size = pt.abs(a)
    is_far = size > constant(a, 22.0, float32=11.0)
    sine = pt.sinh(pt.switch(is_far, zero, a))
    tangent = pt.switch(pt.isinf(a) & ~is_finite(b), zero, pt.tan(b))
    slope = pt.switch(pt.eq(a, zero) & ~is_finite(b), zero, tangent)
    secant = one + slope * slope
    divisor = one + secant * sine * sine
    real = secant * pt.sqrt(one + sine * sine) * sine / divisor
    real = pt.switch(is_far, pt.switch(a > zero, one, -one), real)
    cosine = pt.switch(pt.eq(tangent, zero), one, cos(b))
    tail = constant(a, 4.0) * cosine * cosine * pt.exp(constant(a, -2.0) * size)
    factor = pt.switch(is_far, tail, one / pt.switch(pt.eq(b, zero), one, divisor))
    return real, tangent * factor
