"""Square roots of complex numbers."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.complex.zero_signs import with_sign
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import ComplexSqrt


@define(ComplexSqrt)
def sqrt(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the square root with a real part that is not negative.

    Notes
    -----
    W. Kahan, "Branch cuts for complex elementary functions", in The State of the Art in Numerical
    Analysis (1987): the larger part is a root of a sum of positive numbers, here divided by the
    larger of ``|a|`` and ``|b|``, and the other part a quotient.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in sqrt(pt.constant(-3.0), pt.constant(-4.0))]
    [1.0, -2.0]
    """
    zero, half, one = constant(a, 0.0), constant(a, 0.5), constant(a, 1.0)
    x, y, infinity = pt.abs(a), pt.abs(b), constant(a, math.inf)
    large = pt.maximum(x, y)
    divisor = pt.switch(pt.eq(large, zero), one, large)
    p = pt.switch(pt.isinf(a), one, x / divisor)
    q = pt.switch(pt.isinf(a), zero, y / divisor)
    root = pt.sqrt(large) * pt.sqrt(half * (p + pt.sqrt(p * p + q * q)))
    root = pt.switch(pt.isinf(a), infinity, root)
    other = half * (b / pt.switch(pt.eq(root, zero), one, root))
    is_left = a < zero
    real = pt.switch(is_left, pt.abs(other), root)
    imag = pt.switch(is_left, with_sign(root, b), other)
    return pt.switch(pt.isinf(b), infinity, real), pt.switch(pt.isinf(b), b, imag)
