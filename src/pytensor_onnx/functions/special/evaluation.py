"""Evaluation in float64, and of branches that no element needs."""

from collections.abc import Callable
from functools import wraps

import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

Expression = Callable[..., TensorVariable]


def in_float64(expression: Expression) -> Expression:
    """Evaluate an expression of float operands in float64, and round to their dtype.

    The gamma and Bessel functions amplify errors of intermediate results, of the logarithm above
    all, which ONNX Runtime computes within 2.7 ulp only in float32.
    """

    @wraps(expression)
    def evaluated(*operands: TensorVariable) -> TensorVariable:
        dtype = operands[-1].dtype
        return expression(*(x.astype("float64") for x in operands)).astype(dtype)

    return evaluated


def where_any(
    condition: TensorVariable, value: TensorVariable, otherwise: TensorVariable
) -> TensorVariable:
    """Select by a condition, and compute ``value`` only if the condition holds anywhere."""
    return ifelse(pt.any(condition), pt.switch(condition, value, otherwise), otherwise)
