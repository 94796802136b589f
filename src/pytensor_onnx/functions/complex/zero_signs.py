"""Selections that keep the signs of zeros, which tell the sides of branch cuts apart.

The Where of ONNX Runtime makes +0.0 of a -0.0 in its first branch, and its optimizer swaps the
branches of a negated condition. The definitions here have the value that may be -0.0 second,
behind a condition that is no negation, or give the sign to the selected size.
"""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant


def sign_of(x: TensorVariable) -> TensorVariable:
    """Return -1 for negative numbers and -0.0, else 1.

    Examples
    --------
    >>> sign_of(pt.constant([-2.0, 3.0])).eval()
    array([-1.,  1.])
    """
    one = constant(x, 1.0)
    return pt.switch(x + one / x < constant(x, 0.0), -one, one)


def with_sign(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return a number that is not negative with the sign of another, which may be zero."""
    return x * sign_of(y)


def select(condition: TensorVariable, x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Select `x` where a condition holds and `y` elsewhere, keeping the signs of zeros."""
    size = pt.switch(condition, pt.abs(x), pt.abs(y))
    return size * pt.switch(condition, sign_of(x), sign_of(y))


def is_finite(x: TensorVariable) -> TensorVariable:
    """Return whether numbers are neither infinite nor NaN."""
    return ~(pt.isinf(x) | pt.isnan(x))
