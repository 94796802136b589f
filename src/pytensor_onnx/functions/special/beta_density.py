"""The density of the beta distribution in the logit of its variable."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, split_rows
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.gamma_density import log1p_less_argument
from pytensor_onnx.functions.special.portable import portable_exp, portable_log


def density(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    factor: TensorVariable,
) -> TensorVariable:
    """``x**a y**b / B(a, b)``.

    With ``d = a y - b x``, ``x = p (1 - d/a)`` and ``y = q (1 + d/b)`` for ``p = a / (a + b)`` and
    ``q = 1 - p``. Linear terms of both logarithms cancel. The errors of the logarithms, which are
    amplified, are the same ones in all runtimes.
    """
    one = constant(x, 1.0)
    d = a * y - b * x
    # In the order in which no quotient overflows.
    first, second = pt.switch(a < one, x, a + b), pt.switch(a < one, a + b, x)
    ratio = second * (first / a)
    above = d / b
    part = b / a
    logarithms = log1p_less_argument(
        pt.stack([above, -d / a, part]),
        pt.stack([one + above, ratio, one + part]),
        log=portable_log,
    )
    of_above, of_ratio, of_part = split_rows(logarithms, 3)
    rest = pt.switch(above < constant(x, 1e300), b * of_above, -d)
    # Powers err less than exponentials where roundings of their base hardly count, or are none.
    is_slim = (b <= one) & (a < constant(x, 1e15))
    by_power = is_slim | (a <= constant(x, 64.0)) | (ratio < constant(x, 0.3))
    # Together, as one of the factors may underflow.
    is_one_power = by_power & ~is_slim & (a >= one)
    exponent = pt.switch(by_power, rest + d, rest + a * of_ratio)
    # Of the closer one to 1 the rounding counts.
    rounding = pt.switch(x > y, ((one - x) - y) / x, constant(x, 0.0))
    slim = exponent + (b + a * (of_part + rounding))
    exponent = pt.switch(is_slim, slim, exponent)
    exponential = portable_exp(exponent / pt.switch(is_one_power, a, one))
    base = pt.switch(is_slim, x, pt.switch(by_power, ratio, one))
    power = pt.pow(base * pt.switch(is_one_power, exponential, one), a)
    return power * pt.switch(is_one_power, one, exponential) * factor


def stirling_factor(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """``x**a y**b / B(a, b)`` at ``x = a / (a + b)``, where that is the largest."""
    of_a, of_b, of_sum = split_rows(_stirling(pt.stack([a, b, a + b])), 3)
    return of_a * (of_b / of_sum)


def _stirling(y: TensorVariable) -> TensorVariable:
    """``y**y exp(-y) / gamma(y)``, from ``gamma(y + 1)`` if ``y < 1``."""
    one = constant(y, 1.0)
    is_small = y < one
    z = pt.switch(is_small, y + one, y)
    shifted = constant(y, math.e) * y * pt.pow(y / z, y)
    return pt.switch(is_small, shifted, z) / (pt.sqrt(z) * scaled_gamma(z))
