"""The logistic function."""

import pytensor.tensor as pt
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant


@define(Sigmoid)
def sigmoid(x: TensorVariable) -> TensorVariable:
    """``exp(x) / (1 + exp(x))``, with ``x`` at most 40, where the result is one.

    Notes
    -----
    The exponential does not overflow, and for negative ``x`` it is the numerator, so that the left
    tail keeps its relative accuracy down to the subnormal numbers. For positive ``x`` its error
    cancels but for a part of ``1 / (1 + exp(x))``.
    """
    growth = pt.exp(pt.minimum(x, constant(x, 40.0)))
    return growth / (constant(x, 1.0) + growth)
