"""The digamma and trigamma functions."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Psi, TriGamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.gamma_coefficients import (
    COTANGENT_PI_BOTTOM,
    COTANGENT_PI_TOP,
    NEGATIVE_PSI_BOTTOM,
    NEGATIVE_PSI_TOP,
    PSI_BOTTOM,
    PSI_TAIL_BOTTOM,
    PSI_TAIL_TOP,
    PSI_TOP,
    TRIGAMMA_BOTTOM,
    TRIGAMMA_TAIL,
    TRIGAMMA_TOP,
)
from pytensor_onnx.functions.special.reflection import from_nearest_integer, is_pole, sine_pi
from pytensor_onnx.functions.special.wide_evaluation import where_any, widened
from pytensor_onnx.ops.special import precise

# The roots of psi next to zero, rounded, and what the rounding leaves out.
_ROOT = (1.4616321449683622, 9.549995429965697e-17)
_NEGATIVE_ROOT = (-0.5040830082644554, -8.15428206243813e-18)
# A number near 2.5 where the function fitted to psi has a value of few bits, which can be taken
# from larger ones exactly.
_SEAM = (2.4979449615263176, 0.7021484375)
# Below it nothing counts beside the reciprocal.
_TINY = 1e-20


@define(Psi)
@widened
def psi(x: TensorVariable) -> TensorVariable:
    """Differentiate the logarithm of the gamma function; NaN at negative integers.

    Notes
    -----
    A fitted function times the distance from a root serves up to 2.5, after a step by 1 below 1,
    the asymptotic series (DLMF 5.11.2) beyond, and below 0 the reflection
    ``psi(x) = psi(-x) - 1/x - pi / tan(pi x)`` (DLMF 5.5.2 and 5.5.4), but for another fitted
    function times the distance next to the root -0.504.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    y = pt.abs(x)
    positive = psi_of_positive(y)
    r = from_nearest_integer(y)
    square = r * r
    ratio = polynomial(square, COTANGENT_PI_TOP) / polynomial(square, COTANGENT_PI_BOTTOM)
    # Halfway between the poles, where the cotangent vanishes, one of the factors is exact.
    twice = r + r
    leading = (one - twice) * (one + twice) / r
    # The parts of order 1/x next to zero cancel first, before their sum could overflow.
    reflected = (positive + one / y) + (leading + leading * (square * ratio))
    reflected = pt.switch(is_pole(x), constant(x, math.nan), reflected)

    rest = polynomial(x, NEGATIVE_PSI_TOP) / polynomial(x, NEGATIVE_PSI_BOTTOM)
    distance = _distance(x, _NEGATIVE_ROOT)
    between = distance * (rest - constant(x, 2.0)) / (x + one) / x
    negative = pt.switch(pt.abs(distance) < constant(x, 0.25), between, reflected)
    # Of a zero the sign counts, which its absolute value has lost, and reciprocals may overflow.
    negative = pt.switch(y < constant(x, _TINY), -one / x, negative)
    return where_any(x <= zero, negative, positive)


def psi_of_positive(x: TensorVariable) -> TensorVariable:
    """``psi(x)`` for ``x > 0``."""
    one = constant(x, 1.0)
    # Numbers in place of selections, which take the runtime the time of five products: psi grows,
    # so that each part is constant where the other one serves.
    small = (x < one).astype(x.dtype)
    seam, value = (constant(x, number) for number in _SEAM)
    d = _distance(pt.minimum(x + small, seam), _ROOT)
    reciprocal = one / x
    excess = polynomial(d, PSI_TOP) / polynomial(d, PSI_BOTTOM)
    near = (d + d * excess) - small * reciprocal
    far = precise.log(x) - _log_less_psi(pt.minimum(reciprocal, constant(x, 1 / _SEAM[0])))
    return near + pt.maximum(far - value, constant(x, 0.0))


def log_less_psi(x: TensorVariable) -> TensorVariable:
    """``log(x) - psi(x)`` for ``x >= 2.5``."""
    reciprocal = constant(x, 1.0) / x
    return _log_less_psi(reciprocal)


def _log_less_psi(reciprocal: TensorVariable) -> TensorVariable:
    square = reciprocal * reciprocal
    rest = polynomial(square, PSI_TAIL_TOP) / polynomial(square, PSI_TAIL_BOTTOM)
    return constant(square, 0.5) * reciprocal + square * rest


def _distance(x: TensorVariable, root: tuple[float, float]) -> TensorVariable:
    """Subtract a root that is given in two parts."""
    high, low = root
    return (x - constant(x, high)) - constant(x, low)


@define(TriGamma)
@widened
def trigamma(x: TensorVariable) -> TensorVariable:
    """Differentiate `psi`; infinite at the poles.

    Notes
    -----
    ``(x + 1/2) / x**2`` and a fitted function serve to 8, the asymptotic series (DLMF 5.15.8)
    beyond, and the reflection ``trigamma(x) = (pi / sin(pi x))**2 - trigamma(1 - x)`` (DLMF
    5.15.6) below 0.
    """
    one = constant(x, 1.0)
    negative = x < constant(x, 0.0)
    value = trigamma_of_positive(pt.switch(negative, one - x, x))
    cosecant = one / sine_pi(from_nearest_integer(x))
    reflected = cosecant * cosecant - value
    reflected = pt.switch(pt.isinf(x), constant(x, math.inf), reflected)
    return where_any(negative, reflected, value)


def trigamma_of_positive(x: TensorVariable) -> TensorVariable:
    """``trigamma(x)`` for ``x > 0``."""
    one, eight = constant(x, 1.0), constant(x, 8.0)
    rest = polynomial(x, TRIGAMMA_TOP) / polynomial(x, TRIGAMMA_BOTTOM)
    near = (x + (constant(x, 0.5) + rest)) / x / x
    reciprocal = one / x
    square = reciprocal * reciprocal
    rest = constant(x, 0.5) * square + square * reciprocal * polynomial(square, TRIGAMMA_TAIL)
    return pt.switch(x > eight, reciprocal + rest, near)
