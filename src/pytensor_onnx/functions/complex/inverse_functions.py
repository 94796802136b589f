"""Inverses of hyperbolic and trigonometric functions of complex numbers.

W. Kahan, "Branch cuts for complex elementary functions, or: much ado about nothing's sign bit", in
The State of the Art in Numerical Analysis (1987). Products of square roots are sums of positive
numbers, so that nothing cancels; far from the origin the functions are logarithms. The angles'
inverses are these, turned by ``i``.
"""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_logarithm import log_modulus
from pytensor_onnx.functions.complex.modulus import hypotenuse
from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.complex.square_root import sqrt
from pytensor_onnx.functions.complex.zero_signs import with_sign
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import (
    ComplexArcCos,
    ComplexArcCosh,
    ComplexArcSinh,
    ComplexArcTanh,
)


@define(ComplexArcSinh)
def arcsinh(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the inverse of the hyperbolic sine, with cuts on the imaginary axis beyond ``i``.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arcsinh(pt.constant(1.0), pt.constant(2.0))]
    [1.469352, 1.06344]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    (p, q), (r, s) = sqrt(one - b, -a), sqrt(one + b, a)
    is_far = _is_far(a, b)
    real = pt.switch(is_far, with_sign(_log_twice(a, b), a), pt.arcsinh(p * s - q * r))
    x = pt.switch(is_far, pt.abs(a), p * r - q * s)
    return real, pt.arctan2(b, pt.switch(pt.eq(b, zero) & pt.isnan(a), one, x))


@define(ComplexArcCosh)
def arccosh(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the inverse of the hyperbolic cosine, with a cut on the real axis below one.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arccosh(pt.constant(-2.0), pt.constant(-0.0))]
    [1.316958, -3.141593]
    """
    one = constant(a, 1.0)
    (p, q), (r, s) = sqrt(a - one, b), sqrt(a + one, b)
    is_far = _is_far(a, b)
    real = pt.switch(is_far, _log_twice(a, b), pt.arcsinh(p * r + q * s))
    y = with_sign(pt.switch(is_far, pt.abs(b), pt.abs(q)), b)
    times = pt.switch(is_far, one, constant(a, 2.0))
    imag = times * pt.arctan2(y, pt.switch(is_far, a, r))
    is_half = pt.eq(a, constant(a, 0.0)) & pt.isnan(b)
    return real, pt.switch(is_half, constant(a, math.pi / 2), imag)


@define(ComplexArcCos)
def arccos(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the inverse of the cosine, with cuts on the real axis beyond one.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arccos(pt.constant(1.0), pt.constant(2.0))]
    [1.143718, -1.528571]
    """
    one = constant(a, 1.0)
    (p, q), (r, s) = sqrt(one - a, -b), sqrt(one + a, b)
    is_far = _is_far(a, b)
    real = constant(a, 2.0) * pt.arctan2(p, r)
    imag = pt.arcsinh(r * q - s * p)
    real = pt.switch(is_far, pt.arctan2(pt.abs(b), a), real)
    real = pt.switch(pt.eq(a, constant(a, 0.0)), constant(a, math.pi / 2), real)
    return real, pt.switch(is_far, -with_sign(_log_twice(a, b), b), imag)


@define(ComplexArcTanh)
def arctanh(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the inverse of the hyperbolic tangent, with cuts on the real axis beyond one.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arctanh(pt.constant(2.0), pt.constant(-0.0))]
    [0.549306, -1.570796]
    """
    zero, half, one = constant(a, 0.0), constant(a, 0.5), constant(a, 1.0)
    is_far = _is_far(a, b)
    x = pt.switch(is_far, zero, pt.abs(a))
    y = pt.switch(is_far, zero, b)
    distance = hypotenuse(one - x, y)
    is_pole = distance < constant(a, 1e-9, float32=1e-5)
    square = pt.switch(is_pole, one, distance * distance)
    near = pt.switch(
        is_pole,
        half * pt.log(constant(a, 2.0) / distance),
        constant(a, 0.25) * pt.log1p(constant(a, 4.0) * x / square),
    )
    imag = half * pt.arctan2(constant(a, 2.0) * y, (one - x) * (one + x) - y * y)
    p, q = _reciprocal(pt.abs(a), pt.abs(b))
    size = pt.switch(is_far, p, pt.switch(pt.eq(a, zero), zero, near))
    turned = with_sign(constant(a, math.pi / 2) - q, b)
    imag = pt.switch(is_far, pt.switch(pt.isnan(b), b, turned), imag)
    return with_sign(size, a), imag


def _reciprocal(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the absolute values of the parts of the reciprocal of a large number."""
    zero, one = constant(a, 0.0), constant(a, 1.0)
    large = pt.maximum(a, b)
    p, q = a / large, b / large
    size = large * (p * p + q * q)
    is_infinite = pt.isinf(a) | pt.isinf(b)
    size = pt.switch(is_infinite, one, size)
    return pt.switch(is_infinite, zero, p / size), pt.switch(is_infinite, zero, q / size)


def _is_far(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    limit = constant(a, 1e9, float32=1e4)
    return (pt.abs(a) > limit) | (pt.abs(b) > limit)


def _log_twice(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return the logarithm of twice the absolute value."""
    return log_modulus(a, b) + constant(a, math.log(2))
