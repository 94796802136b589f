"""Quotients and reciprocals of complex numbers.

R. L. Smith, "Algorithm 116: Complex division", Commun. ACM 5 (1962), in the form of NumPy: the
results are NumPy's to the last bit, at zeros, infinities and NaN as well.
"""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex_numbers import ComplexQuotient, ComplexReciprocal

Pair = tuple[TensorVariable, TensorVariable]


@define(ComplexQuotient)
def quotient(a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable) -> Pair:
    """Return the parts of ``(a + b i) / (c + d i)``.

    Examples
    --------
    >>> [part.eval().item() for part in quotient(*map(pt.constant, (1e300, 2e300, 4e300, 0.0)))]
    [0.25, 0.5]
    """
    is_zero = pt.eq(c, constant(c, 0.0)) & pt.eq(d, constant(c, 0.0))
    is_real = pt.abs(c) >= pt.abs(d)
    large, small = pt.switch(is_real, c, d), pt.switch(is_real, d, c)
    ratio = small / large
    scale = constant(c, 1.0) / (large + small * ratio)
    real = pt.switch(is_real, a + b * ratio, a * ratio + b) * scale
    imag = pt.switch(is_real, b - a * ratio, b * ratio - a) * scale
    zero = pt.abs(c)
    return pt.switch(is_zero, a / zero, real), pt.switch(is_zero, b / zero, imag)


@define(ComplexReciprocal)
def reciprocal(c: TensorVariable, d: TensorVariable) -> Pair:
    """Return the parts of ``1 / (c + d i)``; both are NaN at zero.

    Examples
    --------
    >>> [part.eval().item() for part in reciprocal(pt.constant(0.0), pt.constant(4.0))]
    [0.0, -0.25]
    """
    is_real = pt.abs(d) <= pt.abs(c)
    large, small = pt.switch(is_real, c, d), pt.switch(is_real, d, c)
    ratio = small / large
    divisor = large + small * ratio
    one = constant(c, 1.0)
    real, imag = pt.switch(is_real, one, ratio), pt.switch(is_real, -ratio, -one)
    return real / divisor, imag / divisor
