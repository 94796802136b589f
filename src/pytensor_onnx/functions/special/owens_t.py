"""Owen's T function."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import Owens_t
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    exponential,
    square_with_error,
)
from pytensor_onnx.functions.special.erf import erfcx_of_positive
from pytensor_onnx.functions.special.evaluation import in_float64

# Half of the densities beyond this are zero.
_LAST = 40.0
# Where the integrand has fallen below 1e-15 of its largest value.
_REACH = 8.3
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(21)


@define(Owens_t)
@in_float64
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
    height, product = pt.minimum(height, last), pt.minimum(product, last)
    density, other = _density(height), _density(product)
    integral = pt.switch(is_steep, other, density) * _quadrature(
        pt.switch(is_steep, product, height), pt.switch(is_steep, one / slope, slope)
    )
    tail, other_tail = density * _half_mills(height), other * _half_mills(product)
    steep = constant(h, 0.5) * (tail + other_tail) - tail * other_tail - integral
    return pt.sign(a) * pt.switch(is_steep, steep, integral)


def _density(x: TensorVariable) -> TensorVariable:
    """``exp(-x**2 / 2)`` for ``x <= 40``, with the rounding error of the square taken out."""
    square, error = square_with_error(constant(x, 0.5) * x)
    power, rest = exponential(-(square + square), -(error + error))
    return power + power * rest


def _half_mills(x: TensorVariable) -> TensorVariable:
    """Tail of the normal distribution divided by ``exp(-x**2 / 2)``."""
    return constant(x, 0.5) * erfcx_of_positive(x * constant(x, math.sqrt(0.5)))


def _quadrature(h: TensorVariable, a: TensorVariable) -> TensorVariable:
    """Integral of ``exp(-(h x)**2 / 2) / (2 pi (1 + x**2))`` from 0 to ``a``."""
    one = constant(h, 1.0)
    end = pt.minimum(a, constant(h, _REACH) / h)
    scaled = h * end
    exponent, square = constant(h, -0.5) * scaled * scaled, end * end
    terms = [
        constant(h, weight / (4 * math.pi))
        * pt.exp(exponent * constant(h, x * x))
        / (one + square * constant(h, x * x))
        for x, weight in zip((_NODES + 1) / 2, _WEIGHTS, strict=True)
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return end * total
