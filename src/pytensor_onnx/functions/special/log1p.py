"""``log(1 + x)`` without loss for small ``x``."""

import pytensor.tensor as pt
from pytensor.scalar.basic import Log1p
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.coefficients import LOG_RATIO


@define(Log1p)
def log1p(x: TensorVariable) -> TensorVariable:
    """``log(1 + x)``.

    Notes
    -----
    ``1 + x`` rounds to ``u``, and ``x - (u - 1)`` is what the rounding lost, exactly. To first
    order ``log(1 + x) = log(u) + (x - (u - 1)) / u``, the additive form of the correction in
    D. Goldberg, ACM Computing Surveys 23 (1991), theorem 4. Where the logarithm is infinite there
    is nothing to correct. In float32, where the logarithm of ONNX Runtime errs by up to 2.7 ulp
    between 1/2 and 2, `log1p_near_zero` replaces it.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    u = one + x
    log_u = pt.log(u)
    # Not a sum, for the sake of the sign of zero: -0.0 - 0.0 is -0.0.
    corrected = (x - (u - one)) / u - (zero - log_u)
    value = pt.switch(pt.isinf(log_u), log_u, corrected)
    if x.dtype == "float32":
        return pt.switch(pt.abs(x) > constant(x, 0.45), value, log1p_near_zero(x))
    return value


def log1p_near_zero(x: TensorVariable) -> TensorVariable:
    """``log(1 + x)`` for ``|x| <= 0.45``, in float32.

    With ``s = x / (2 + x)``, ``log(1 + x) = log((1 + s) / (1 - s)) = 2s + s R`` where ``R`` is a
    function of ``s**2``, and ``2s`` is ``x - s x``.
    """
    s = x / (constant(x, 2.0) + x)
    square = s * s
    return x - s * (x - square * polynomial(square, LOG_RATIO))
