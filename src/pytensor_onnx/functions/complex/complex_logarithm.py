"""Logarithms of complex numbers."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import ComplexLog, ComplexLog1p


@define(ComplexLog)
def log(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the logarithm of the absolute value, and the angle.

    Relative to the absolute value of the result the error is a few units in the last place; where
    the number is near the unit circle the real part alone is less accurate.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in log(pt.constant(0.0), pt.constant(-2.0))]
    [0.693147, -1.570796]
    """
    return log_modulus(a, b), pt.arctan2(b, a)


def log_modulus(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return ``log(large) + log1p((small / large)**2) / 2``, which does not overflow."""
    a, b = pt.abs(a), pt.abs(b)
    large, small = pt.maximum(a, b), pt.minimum(a, b)
    one = constant(a, 1.0)
    ratio = small / pt.switch(pt.eq(large, constant(a, 0.0)), one, large)
    result = pt.log(large) + constant(a, 0.5) * pt.log1p(ratio * ratio)
    return pt.switch(pt.isinf(a) | pt.isinf(b), constant(a, math.inf), result)


@define(ComplexLog1p)
def log1p(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return ``log(1 + z)`` of a complex number.

    The real part of a small number is ``log1p(a (a + 2) + b**2) / 2``, which does not cancel.

    Examples
    --------
    >>> [x.eval().item() for x in log1p(pt.constant(1e-20), pt.constant(0.0))]
    [1e-20, 0.0]
    """
    one, half = constant(a, 1.0), constant(a, 0.5)
    is_small = pt.maximum(pt.abs(a), pt.abs(b)) < half
    near = half * pt.log1p(a * (a + constant(a, 2.0)) + b * b)
    far = log_modulus(one + a, b)
    return pt.switch(is_small, near, far), pt.arctan2(b, one + a)
