"""Inverse hyperbolic functions, all by way of ``log1p``."""

import pytensor.tensor as pt
from pytensor.scalar.basic import ArcCosh, ArcSinh, ArcTanh
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.log1p import log1p


@define(ArcSinh)
def arcsinh(x: TensorVariable) -> TensorVariable:
    """``sign(x) * log(|x| + sqrt(x**2 + 1))`` as ``log1p(|x| + x**2 / (1 + sqrt(1 + x**2)))``."""
    one = constant(x, 1.0)
    a = pt.abs(x)
    square = x * x
    value = _log1p_of_sum(a, a + square / (one + pt.sqrt(one + square)))
    return pt.switch(a > constant(x, 0.0), pt.sign(x) * value, x)


@define(ArcCosh)
def arccosh(x: TensorVariable) -> TensorVariable:
    """``log(x + sqrt(x**2 - 1))`` as ``log1p(t + sqrt(t (t + 2)))`` with ``t = x - 1``."""
    t = x - constant(x, 1.0)
    value = _log1p_of_sum(x, t + pt.sqrt(t * (t + constant(x, 2.0))))
    return pt.switch(t < constant(x, 0.0), constant(x, float("nan")), value)


@define(ArcTanh)
def arctanh(x: TensorVariable) -> TensorVariable:
    """``log((1 + x) / (1 - x)) / 2`` as ``log1p(2a / (1 - a)) / 2`` with ``a = |x|``."""
    a = pt.abs(x)
    value = constant(x, 0.5) * log1p((a + a) / (constant(x, 1.0) - a))
    return pt.switch(a > constant(x, 0.0), pt.sign(x) * value, x)


def _log1p_of_sum(a: TensorVariable, argument: TensorVariable) -> TensorVariable:
    """``log1p(argument)``, or ``log(2 a)`` where ``a`` is so large that ``1 + a`` is ``a``."""
    large = a > constant(a, 2.0**54, float32=2.0**25)
    log_two = constant(a, 0.6931471805599453)
    return log1p(pt.switch(large, a, argument)) + pt.switch(large, log_two, constant(a, 0.0))
