"""Sines of multiples of pi and poles, for reflection formulas."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.gamma_coefficients import SINE_PI


def from_nearest_integer(x: TensorVariable) -> TensorVariable:
    """Return ``x`` less the nearest integer, which is exact, and -0.5 or 0.5 halfway."""
    return x - pt.round(x)


def sine_pi(r: TensorVariable) -> TensorVariable:
    """``sin(pi r) / pi`` for ``|r| <= 1/2``."""
    square = r * r
    return r + r * (square * polynomial(square, SINE_PI))


def alternating_sine_pi(x: TensorVariable) -> TensorVariable:
    """``sin(pi x) / pi``."""
    turns = pt.round(x)
    sine = sine_pi(x - turns)
    return pt.switch(is_even(turns), sine, -sine)


def is_even(count: TensorVariable) -> TensorVariable:
    """Tell even integers."""
    half = count * constant(count, 0.5)
    return pt.eq(half, pt.floor(half))


def is_pole(x: TensorVariable) -> TensorVariable:
    """Tell negative integers, minus infinity among them."""
    return (x < constant(x, 0.0)) & pt.eq(x, pt.round(x))
