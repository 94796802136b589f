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
from pytensor_onnx.functions.special.exponential import exponential
from pytensor_onnx.functions.special.portable_formulas import power_of_exp
from pytensor_onnx.functions.special.wide_evaluation import in_float64, on_pair, with_an_axis

# Half of the densities beyond this are zero.
_LAST = 40.0
# Where the integrand has fallen below 1e-15 of its largest value.
_REACH = 8.3
# The integrand is even: squares of the positive ones of 40 nodes from -1 to 1, and weights over
# 2 pi, by mpmath. The weights of NumPy's `leggauss` are off by 7e-13.
_RULE = (
    (0.0015033003592635162, 0.012335454739789602),
    (0.013475511464537647, 0.012261267875740849),
    (0.03713235760816143, 0.012113340316997729),
    (0.0719055943241644, 0.011892561719067014),
    (0.11695995815973713, 0.011600259873366936),
    (0.17121322997039845, 0.011238192722185228),
    (0.23336223017474425, 0.01080853778697774),
    (0.3019141215603053, 0.010313879073811759),
    (0.3752222677473721, 0.009757191535140042),
    (0.45152578599767995, 0.00914182318222527),
    (0.5289918443325199, 0.008471474957632579),
    (0.6057596870424587, 0.007750178492973803),
    (0.6799853312398909, 0.006982271895680595),
    (0.7498858612036233, 0.00617237373695742),
    (0.8137822575346664, 0.005325355476037607),
    (0.870139735288751, 0.004446312756063507),
    (0.917604632532668, 0.0035405368625285277),
    (0.955037009842289, 0.002613492612281241),
    (0.9815384800475735, 0.0016708538771181513),
    (0.9964785250881827, 0.0007195835993197398),
)


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
    one, last = constant(h, 1.0), constant(h, _LAST)
    height, slope = pt.minimum(pt.abs(h), last), pt.abs(a)
    # Zero times an infinite slope is zero.
    product = pt.minimum(height * pt.minimum(slope, constant(h, 1e300)), last)
    is_steep = slope > one

    (density, tail), (other, other_tail) = on_pair(_density_and_tails, height, product)
    integral = pt.switch(is_steep, other, density) * _quadrature(
        pt.switch(is_steep, product, height), pt.switch(is_steep, one / slope, slope)
    )
    steep = constant(h, 0.25) * ((tail + other_tail) - tail * other_tail) - integral
    return pt.sign(a) * pt.switch(is_steep, steep, integral)


def _density_and_tails(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``exp(-x**2 / 2)`` for ``x <= 40``, and both tails of the normal distribution.

    The rounding error of the square is taken out.
    """
    minus_two = constant(x, -2.0)
    square, error = square_with_error(constant(x, 0.5) * x)
    excess, half = exponential(minus_two * square, minus_two * error)
    near_one = constant(x, 1.0) + excess
    density = (near_one + near_one) * half
    return density, density * erfcx_of_positive(x * constant(x, math.sqrt(0.5)))


def _quadrature(h: TensorVariable, a: TensorVariable) -> TensorVariable:
    """Integral of ``exp(-(h x)**2 / 2) / (2 pi (1 + x**2))`` from 0 to ``a``."""
    end = pt.minimum(a, constant(h, _REACH) / h)
    scaled = h * end
    exponent, square = constant(h, -0.5 / 64) * scaled * scaled, end * end
    if is_short(h):
        terms = _terms(exponent, square, *np.transpose(_RULE))
        return end * pt.sum(terms, axis=0, keepdims=True)
    total, *terms = [_terms(exponent, square, *map(np.float64, pair)) for pair in _RULE]
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
