"""``log(1 + exp(x))``."""

import pytensor.tensor as pt
from pytensor.scalar.math import Softplus
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.log1p import log1p


@define(Softplus)
def softplus(x: TensorVariable) -> TensorVariable:
    """``log(1 + exp(x))`` as ``max(x, 0) + log1p(exp(-|x|))``, which cannot overflow."""
    return pt.maximum(x, constant(x, 0.0)) + log1p(exp(-pt.abs(x)))
