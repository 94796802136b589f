"""The regularized incomplete beta function."""

import math
from functools import partial

import pytensor.tensor as pt
from pytensor.scalar.math import BetaInc
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.beta_density import stirling_factor
from pytensor_onnx.functions.special.beta_integral import both
from pytensor_onnx.functions.special.beta_narrow import betainc_of_float32
from pytensor_onnx.functions.special.beta_quadrature import PRECISE, SHORT, Rule
from pytensor_onnx.functions.special.wide_evaluation import widened


@define(BetaInc)
def betainc(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Regularized incomplete beta function, in float64 for float32 too, by a shorter quadrature.

    NaN outside of the domain, and where ``a`` and ``b`` are both zero or both infinite.
    """
    of_rule = partial(_betainc, SHORT if x.dtype == "float32" else PRECISE)
    return widened(of_rule)(a, b, x)


def _betainc(rule: Rule, a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    zero, one, half = (constant(x, n) for n in (0.0, 1.0, 0.5))
    infinity, nan = constant(x, math.inf), constant(x, math.nan)
    smallest = pt.minimum(pt.minimum(a, b), x)
    inside = (smallest > zero) & (pt.maximum(a, b) < infinity) & (x < one)
    some_a, some_b, some = (pt.switch(inside, v, n) for v, n in ((a, one), (b, one), (x, half)))
    if x.dtype == "float32":
        value = betainc_of_float32(some_a, some_b, some)
    else:
        factor = stirling_factor(some_a, some_b)
        value = both(some_a, some_b, some, one - some, factor, rule).lower
    is_zero = pt.eq(a, infinity) | pt.eq(b, zero)
    is_one = pt.eq(b, infinity) | pt.eq(a, zero)
    is_valid = (smallest >= zero) & (x <= one) & ~(is_zero & is_one)
    is_zero = pt.eq(x, zero) | (is_zero & (x < one))
    is_one = pt.eq(x, one) | is_one
    value = pt.switch(is_zero, zero, pt.switch(is_one, one, value))
    return pt.switch(is_valid, value, nan)
