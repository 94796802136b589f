"""Absolute values and signs of complex numbers."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import ComplexSign, Hypotenuse


@define(Hypotenuse)
def hypotenuse(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return the square root of ``a**2 + b**2`` without overflow.

    C. B. Moler and D. Morrison, "Replacing square roots by Pythagorean sums", IBM J. Res. Dev. 27
    (1983), divide by the larger number. An infinite part gives infinity, even beside a NaN.

    Examples
    --------
    >>> hypotenuse(pt.constant(3e200), pt.constant(4e200)).eval()
    array(5.e+200)
    """
    a, b = pt.abs(a), pt.abs(b)
    large, small = pt.maximum(a, b), pt.minimum(a, b)
    one = constant(a, 1.0)
    ratio = small / pt.switch(pt.eq(large, constant(a, 0.0)), one, large)
    result = large * pt.sqrt(one + ratio * ratio)
    return pt.switch(pt.isinf(a) | pt.isinf(b), constant(a, float("inf")), result)


@define(ComplexSign)
def sign(a: TensorVariable, b: TensorVariable) -> Parts:
    """Return the number over its absolute value, zero for zero.

    The sign of a number with one infinite part is that of the part; two give NaN, as in NumPy.

    Examples
    --------
    >>> [round(part.eval().item(), 6) for part in sign(pt.constant(3.0), pt.constant(-4.0))]
    [0.6, -0.8]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    size = hypotenuse(a, b)
    divisor = pt.switch(pt.eq(size, zero), one, size)

    def part(x: TensorVariable, other: TensorVariable) -> TensorVariable:
        limit = pt.switch(pt.isinf(x), pt.sign(x), zero)
        limit = pt.switch(pt.isinf(x) & pt.isinf(other), constant(x, float("nan")), limit)
        return pt.switch(pt.isinf(size) | pt.eq(size, zero), limit, x / divisor)

    return part(a, b), part(b, a)
