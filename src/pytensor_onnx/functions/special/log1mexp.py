"""``log(1 - exp(x))`` for negative ``x``."""

import pytensor.tensor as pt
from pytensor.scalar.math import Log1mexp
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.expm1 import expm1
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.log1p import log1p
from pytensor_onnx.ops.special import precise


@define(Log1mexp)
def log1mexp(x: TensorVariable) -> TensorVariable:
    """``log(1 - exp(x))``, NaN for positive ``x``.

    Notes
    -----
    ``log(-expm1(x))`` above ``-log(2)`` and ``log1p(-exp(x))`` below, where each of them is well
    conditioned (M. Mächler, Accurately computing log(1 - exp(-|a|)), 2012, equation 7).
    """
    near = x > constant(x, -0.6931471805599453)
    return pt.switch(near, precise.log(-expm1(x)), log1p(-exp(x)))
