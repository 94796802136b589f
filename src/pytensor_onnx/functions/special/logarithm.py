"""Logarithms to the bases 2 and 10, and the powers of 2."""

import pytensor.tensor as pt
from pytensor.scalar.basic import Exp2, Log2, Log10
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.special import precise


@define(Exp2)
def exp2(x: TensorVariable) -> TensorVariable:
    """``2**x``, exact for integers."""
    return pt.pow(constant(x, 2.0), x)


@define(Log2)
def log2(x: TensorVariable) -> TensorVariable:
    """``log(x) / log(2)``, exact at powers of 2."""
    value = precise.log(x) * constant(x, 1.4426950408889634)
    integer = pt.round(value)
    return pt.switch(pt.eq(pt.pow(constant(x, 2.0), integer), x), integer, value)


@define(Log10)
def log10(x: TensorVariable) -> TensorVariable:
    """``log(x) / log(10)``, exact at powers of 10."""
    value = precise.log(x) * constant(x, 0.4342944819032518)
    integer = pt.round(value)
    # The subnormal numbers next to powers of 10 are too coarse to be taken for them.
    power = pt.pow(constant(x, 10.0), pt.maximum(integer, constant(x, -307.0, float32=-37.0)))
    return pt.switch(pt.eq(power, x), integer, value)
