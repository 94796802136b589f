"""The error function of complex numbers."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import ComplexErf

_RADIUS = 6.5
"""Absolute value from which 26 terms of the asymptotic series are exact in float64."""
_N_ASYMPTOTIC = 26
_N_TRAPEZOIDAL = 26
"""Number of terms: they are largest at ``n = 2 |y|``, at most 13, and vanish 12 or 13 later."""


@define(ComplexErf)
def erf(x: TensorVariable, y: TensorVariable) -> Parts:
    """Return the error function, computed in float64.

    Relative to its absolute value the error is a few units in the last place near the origin, and
    that of ``exp(-z**2)`` far from it. Near a complex zero of the function it is larger.

    Examples
    --------
    >>> [round(v.eval().item(), 6) for v in erf(pt.constant(1.0), pt.constant(2.0))]
    [-0.536644, -5.049144]
    """
    dtype = x.type.dtype
    x, y = pt.cast(x, "float64"), pt.cast(y, "float64")
    is_near = x * x + y * y < _RADIUS**2
    near = _near_origin(pt.switch(is_near, x, 1.0), pt.switch(is_near, y, 1.0))
    far = _far_from_origin(pt.switch(is_near, _RADIUS, x), pt.switch(is_near, _RADIUS, y))
    real, imag = (pt.switch(is_near, a, b) for a, b in zip(near, far, strict=True))
    is_real, is_imaginary = pt.eq(y, 0.0), pt.eq(x, 0.0)
    real = pt.switch(is_real, pt.erf(x), pt.switch(is_imaginary, x, real))
    imag = pt.switch(is_real, y, imag)
    return pt.cast(real, dtype), pt.cast(imag, dtype)


def _near_origin(x: TensorVariable, y: TensorVariable) -> Parts:
    """Return the sum of the trapezoidal rule, which does not cancel.

    H. E. Salzer, "Formulas for calculating the error function of a complex variable", MTAC 5
    (1951); Abramowitz and Stegun 7.1.29.
    """
    angle = x * y
    sine, cosine = pt.sin(angle), pt.cos(angle)
    sine_2, cosine_2 = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine
    is_zero = pt.eq(angle, 0.0)
    ratio = y * pt.switch(is_zero, 1.0, sine / pt.switch(is_zero, 1.0, angle))
    scale = pt.exp(-x * x)
    real, imag = sine * ratio / math.pi, cosine * ratio / math.pi
    for n in range(1, _N_TRAPEZOIDAL + 1):
        weight = 2.0 / math.pi * math.exp(-n * n / 4) / (n * n + 4.0 * x * x)
        half, grown, sinh = pt.sinh(n * y / 2), pt.cosh(n * y), pt.sinh(n * y)
        # 1 - cosh(n y) cos(2 x y), which cancels near the axes.
        rest = 2.0 * sine * sine * grown - 2.0 * half * half
        real += weight * (2.0 * x * rest + n * sinh * sine_2)
        imag += weight * (2.0 * x * grown * sine_2 + n * sinh * cosine_2)
    return pt.erf(x) + scale * real, scale * imag


def _far_from_origin(x: TensorVariable, y: TensorVariable) -> Parts:
    """Return ``±1 - exp(-z**2) / (z sqrt(pi)) (1 - 1 / (2 z**2) + 3 / (2 z**2)**2 - ...)``."""
    # Of larger numbers the result is 1, -1 or infinite.
    exponent = (y - x) * (y + x)
    limit = constant(x, 1e150)
    x, y = pt.clip(x, -limit, limit), pt.clip(y, -limit, limit)
    larger = pt.maximum(pt.abs(x), pt.abs(y))
    a, b = x / larger, y / larger
    norm = (a * a + b * b) * larger
    p, q = a / norm, -b / norm
    real_square, imag_square = p * p - q * q, 2.0 * p * q
    real, imag = pt.ones_like(p), pt.zeros_like(p)
    for n in range(_N_ASYMPTOTIC, 0, -1):
        factor = -(2 * n - 1) / 2
        real, imag = (
            1.0 + factor * (real_square * real - imag_square * imag),
            factor * (real_square * imag + imag_square * real),
        )
    real, imag = p * real - q * imag, p * imag + q * real
    angle = 2.0 * x * y
    size = pt.exp(exponent) / math.sqrt(math.pi)
    cosine, sine = pt.cos(angle), -pt.sin(angle)
    sign = pt.switch(pt.lt(x, 0.0), -1.0, 1.0)
    vanishes = pt.lt(exponent, -750.0)
    return (
        pt.switch(vanishes, sign, sign - size * (cosine * real - sine * imag)),
        pt.switch(vanishes, 0.0, -size * (cosine * imag + sine * real)),
    )
