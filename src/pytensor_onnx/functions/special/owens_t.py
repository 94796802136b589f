"""Owen's T function."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import Owens_t
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    is_short,
    square_with_error,
)
from pytensor_onnx.functions.special.erf import erfcx_of_positive
from pytensor_onnx.functions.special.evaluation import in_float64, on_pair, with_an_axis
from pytensor_onnx.functions.special.exponential import exponential_by_power
from pytensor_onnx.functions.special.portable import power_of_exp

# Half of the densities beyond this are zero.
_LAST = 40.0
# Where the integrand has fallen below 1e-15 of its largest value.
_REACH = 8.3
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(21)
# Squares of the nodes on the interval from 0 to 1, and the weights for half of it, over 2 pi.
_SQUARES, _WEIGHTS = ((_NODES + 1) / 2) ** 2, _WEIGHTS / (4 * math.pi)


@define(Owens_t)
@in_float64
@with_an_axis
def owens_t(h: TensorVariable, a: TensorVariable) -> TensorVariable:
    """Owen's T function, to 1e-14 of its value, computed in float64 also for float32.

    Notes
    -----
    The integral that defines it, by Gauss-Legendre quadrature for ``|a| <= 1``, where the integrand
    is smooth and positive. Otherwise by the values at ``a h`` and ``1 / a`` (D. B. Owen, Ann. Math.
    Statist. 27 (1956) 1075-1090, equation 2.3), with the tails of the normal distribution in the
    place of its values, so that nothing cancels.
    """
    zero, one = constant(h, 0.0), constant(h, 1.0)
    height, slope = pt.abs(h), pt.abs(a)
    product = pt.switch(height > zero, height * slope, height)
    is_steep = slope > one

    last = constant(h, _LAST)
    (density, tail), (other, other_tail) = on_pair(
        _density_and_tail, pt.minimum(height, last), pt.minimum(product, last)
    )
    integral = pt.switch(is_steep, other, density) * _quadrature(
        pt.minimum(pt.switch(is_steep, product, height), last),
        pt.switch(is_steep, one / slope, slope),
    )
    steep = constant(h, 0.5) * (tail + other_tail) - tail * other_tail - integral
    return pt.sign(a) * pt.switch(is_steep, steep, integral)


def _density_and_tail(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``exp(-x**2 / 2)`` for ``x <= 40``, and the tail of the normal distribution.

    The rounding error of the square is taken out.
    """
    square, error = square_with_error(constant(x, 0.5) * x)
    # An exponential that is equal in all runtimes would take a single call a quarter longer.
    power, rest = exponential_by_power(-(square + square), -(error + error))
    density = power + power * rest
    scaled = erfcx_of_positive(x * constant(x, math.sqrt(0.5)))
    return density, density * (constant(x, 0.5) * scaled)


def _quadrature(h: TensorVariable, a: TensorVariable) -> TensorVariable:
    """Integral of ``exp(-(h x)**2 / 2) / (2 pi (1 + x**2))`` from 0 to ``a``."""
    end = pt.minimum(a, constant(h, _REACH) / h)
    scaled = h * end
    exponent, square = constant(h, -0.5 / 64) * scaled * scaled, end * end
    if is_short(h):
        terms = _terms(exponent, square, _SQUARES, _WEIGHTS)
        return end * pt.sum(terms, axis=0, keepdims=True)
    total, *terms = [
        _terms(exponent, square, *pair) for pair in zip(_SQUARES, _WEIGHTS, strict=True)
    ]
    for term in terms:
        total = total + term
    return end * total


def _terms(
    exponent: TensorVariable,
    square: TensorVariable,
    squares: np.ndarray | np.float64,
    weights: np.ndarray | np.float64,
) -> TensorVariable:
    """Evaluate the integrand at a node, or at all nodes of one element."""
    bottoms = pt.constant(1 / weights) + square * pt.constant(squares / weights)
    return power_of_exp(exponent * pt.constant(squares)) / bottoms
