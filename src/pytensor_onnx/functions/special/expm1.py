"""``exp(x) - 1`` without cancellation."""

import pytensor.tensor as pt
from pytensor.scalar.basic import Expm1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.coefficients import HALF_COTH


@define(Expm1)
def expm1(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1``.

    Notes
    -----
    From ``coth(x/2) = (exp(x) + 1) / (exp(x) - 1)``, ``exp(x) - 1 = 2x / (2 - c)`` with
    ``c = x + 2 - x coth(x/2)``, which is ``x`` less a small even function: a polynomial in ``x**2``
    for ``|x| <= 0.8``. Beyond, the subtraction in ``exp(x) - 1`` at most doubles the error of
    ``exp(x)``.
    """
    beyond = pt.exp(x) - constant(x, 1.0)
    return pt.switch(pt.abs(x) > constant(x, 0.8), beyond, expm1_near_zero(x))


def expm1_near_zero(x: TensorVariable) -> TensorVariable:
    """``exp(x) - 1`` for ``|x| <= 1.1``."""
    square = x * x
    c = x - square * polynomial(square, HALF_COTH)
    return (x + x) / (constant(x, 2.0) - c)
