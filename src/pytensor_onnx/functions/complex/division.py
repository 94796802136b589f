"""Quotients and reciprocals of complex numbers.

R. L. Smith, "Algorithm 116: Complex division", Commun. ACM 5 (1962), in the form of NumPy: the
results are NumPy's to the last bit, at zeros, infinities and NaN as well.
"""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.complex.zero_signs import select
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import ComplexQuotient, ComplexReciprocal, part_sum


@define(ComplexQuotient)
def quotient(a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable) -> Parts:
    """Return the parts of ``(a + b i) / (c + d i)``.

    Examples
    --------
    >>> [part.eval().item() for part in quotient(*map(pt.constant, (1e300, 2e300, 4e300, 0.0)))]
    [0.25, 0.5]
    """
    is_zero = pt.eq(c, constant(c, 0.0)) & pt.eq(d, constant(c, 0.0))
    is_imag = pt.abs(c) < pt.abs(d)
    large, small = select(is_imag, d, c), select(is_imag, c, d)
    ratio = small / large
    scale = constant(c, 1.0) / (large + small * ratio)
    real = select(is_imag, part_sum(a * ratio, b) * scale, (a + b * ratio) * scale)
    imag = select(is_imag, (b * ratio - a) * scale, (b - a * ratio) * scale)
    zero = pt.abs(c)
    return pt.switch(is_zero, a / zero, real), pt.switch(is_zero, b / zero, imag)


@define(ComplexReciprocal)
def reciprocal(c: TensorVariable, d: TensorVariable) -> Parts:
    """Return the parts of ``1 / (c + d i)``; both are NaN at zero.

    Examples
    --------
    >>> [part.eval().item() for part in reciprocal(pt.constant(0.0), pt.constant(4.0))]
    [0.0, -0.25]
    """
    is_imag = pt.abs(d) > pt.abs(c)
    large, small = select(is_imag, d, c), select(is_imag, c, d)
    ratio = small / large
    divisor = large + small * ratio
    one = constant(c, 1.0)
    return select(is_imag, ratio, one) / divisor, select(is_imag, -one, -ratio) / divisor
