"""``log(1 + x)`` without loss for small ``x``."""

import pytensor.tensor as pt
from pytensor.scalar.basic import Log1p
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.special import precise


@define(Log1p)
def log1p(x: TensorVariable) -> TensorVariable:
    """``log(1 + x)``.

    Notes
    -----
    ``1 + x`` rounds to ``u``, and ``x - (u - 1)`` is what the rounding lost, exactly. To first
    order ``log(1 + x) = log(u) + (x - (u - 1)) / u``, the additive form of the correction in
    D. Goldberg, ACM Computing Surveys 23 (1991), theorem 4. Where the logarithm is infinite there
    is nothing to correct.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    u = one + x
    log_u = precise.log(u)
    # Not a sum, for the sake of the sign of zero: -0.0 - 0.0 is -0.0.
    corrected = (x - (u - one)) / u - (zero - log_u)
    return pt.switch(pt.isinf(log_u), log_u, corrected)
