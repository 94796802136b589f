"""Sines of multiples of pi and poles, for reflection formulas."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.gamma_coefficients import SINE_PI


def from_nearest_integer(x: TensorVariable) -> TensorVariable:
    """Return ``x`` less the nearest integer, which is exact, and -0.5 or 0.5 halfway."""
    return x - pt.round(x)


def from_nearest_even(x: TensorVariable) -> TensorVariable:
    """Return the number from -1/2 to 1/2 with the same sine of its product with pi, exactly."""
    turns = pt.round(x * constant(x, 0.5))
    distance = x - (turns + turns)
    bound = constant(x, 0.5)
    near = pt.maximum(pt.minimum(distance, bound), -bound)
    # Beyond a distance of 1/2 the result falls again: twice the bound, less the distance.
    return (near + near) - distance


def sine_pi(r: TensorVariable) -> TensorVariable:
    """``sin(pi r) / pi`` for ``|r| <= 1/2``."""
    return r + r * sine_pi_excess(r)


def sine_pi_excess(r: TensorVariable) -> TensorVariable:
    """``sin(pi r) / (pi r) - 1`` for ``|r| <= 1/2``."""
    square = r * r
    return square * polynomial(square, SINE_PI)


def alternating_sine_pi(x: TensorVariable) -> TensorVariable:
    """``sin(pi x) / pi``."""
    return sine_pi(from_nearest_even(x))


def is_even(count: TensorVariable) -> TensorVariable:
    """Tell even integers."""
    half = count * constant(count, 0.5)
    return pt.eq(half, pt.floor(half))


def is_pole(x: TensorVariable) -> TensorVariable:
    """Tell negative integers, minus infinity among them."""
    return (x < constant(x, 0.0)) & pt.eq(x, pt.round(x))
