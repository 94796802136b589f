"""``exp(x) - 1`` without cancellation."""

import pytensor.tensor as pt
from pytensor.scalar.basic import Expm1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.coefficients import HALF_COTH
from pytensor_onnx.functions.special.exponential import exponential


@define(Expm1)
def expm1(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1``.

    Notes
    -----
    With the two parts of `exponential`, ``2 (half excess + (half - 1/2))``, whose second addend is
    exact, zero for ``|x| < 0.34``, and beyond that the larger one. The smallest numbers, half of
    which would be rounded, are their own results.
    """
    excess, half = exponential(pt.clip(x, constant(x, -50.0), constant(x, 710.0, float32=89.5)))
    value = half * excess + (half - constant(x, 0.5))
    return pt.switch(pt.abs(x) > constant(x, 1e-300, float32=1e-30), value + value, x)


def expm1_near_zero(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1`` for ``|x| <= 1.1``."""
    square = x * x
    c = x - square * polynomial(square, HALF_COTH)
    return (x + x) / (constant(x, 2.0) - c)
