"""Absolute values of complex numbers."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex_numbers import Hypotenuse


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
