"""The logistic function."""

import pytensor.tensor as pt
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant


@define(Sigmoid)
def sigmoid(x: TensorVariable) -> TensorVariable:
    """``1 / (1 + exp(-x))``, with ``exp(x)`` as the numerator for negative ``x``.

    Notes
    -----
    The exponential is that of ``-|x|``, so that it never overflows and the left tail keeps its
    relative accuracy down to the subnormal numbers.
    """
    one = constant(x, 1.0)
    decay = pt.exp(-pt.abs(x))
    return pt.switch(x < constant(x, 0.0), decay, one) / (one + decay)
