"""The logarithm of the absolute value of the gamma function."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import GammaLn
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial, simple_and_rest
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.gamma import gamma_from_one_to_twenty
from pytensor_onnx.functions.special.gamma_coefficients import (
    LOG_GAMMA_BOTTOM,
    LOG_GAMMA_SIMPLE,
    LOG_GAMMA_TAIL,
    LOG_GAMMA_TOP,
)
from pytensor_onnx.functions.special.reflection import from_nearest_integer, sine_pi

# (log(2 pi) - 1) / 2
_OFFSET = 0.4189385332046727


@define(GammaLn)
@in_float64
def gammaln(x: TensorVariable) -> TensorVariable:
    """Logarithm of the absolute value of the gamma function.

    Notes
    -----
    Negative arguments are reflected, ``gamma(x) gamma(-x) = -pi / (x sin(pi x))`` (DLMF 5.5.3):
    between -20 and -3.5, where roots lie apart from the poles, by one logarithm of a product, else
    by a difference of logarithms.
    """
    zero, one, twenty = (constant(x, n) for n in (0.0, 1.0, 20.0))
    a = pt.abs(x)
    positive, near = _of_positive(a)

    small = a < constant(x, 0.5)
    sine = pt.abs(sine_pi(from_nearest_integer(a))) * pt.switch(small, one, a)
    product = sine * gamma_from_one_to_twenty(pt.maximum(pt.minimum(a, twenty), one))
    by_product = (a > constant(x, 3.5)) & (a < twenty)
    logarithm = pt.log(pt.switch(by_product, product, sine))
    negative = pt.switch(by_product, zero, -pt.switch(small, near, positive)) - logarithm
    negative = pt.switch(pt.isinf(x), x, negative)
    return where_any(x < zero, negative, positive)


def gammaln_of_positive(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x))`` for ``x >= 0``."""
    return _of_positive(x)[0]


def log_gamma_plus_one(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x + 1))`` for ``0 <= x <= 7``, accurately next to zero."""
    one = constant(x, 1.0)
    return x * (x - one) * _over_distances(x + one)


def _over_distances(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x)) / ((x - 1) (x - 2))`` for ``1/2 <= x <= 8``."""
    return simple_and_rest(x, LOG_GAMMA_SIMPLE, LOG_GAMMA_TOP, LOG_GAMMA_BOTTOM)


def _of_positive(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``log(gamma(x))`` for ``x >= 0``, and ``log(gamma(x + 1))`` where ``x < 1/2``.

    The first one is the second one less ``log(x)`` there, up to 8 ``(x - 1) (x - 2)`` times a
    fitted function, and beyond Stirling's formula with a fitted rest. There ``x`` is divided by 8
    and the logarithm of 8 added, which leaves smaller errors of the logarithm to amplify.
    """
    half, one, two, eight = (constant(x, n) for n in (0.5, 1.0, 2.0, 8.0))
    small = x < half
    y = pt.switch(small, x + one, x)
    below, less = pt.switch(small, x, x - one), pt.switch(small, x - one, x - two)
    near = below * less * _over_distances(y)

    large = x > eight
    logarithm = pt.log(pt.switch(large, x * constant(x, 0.125), x))
    reciprocal = one / x
    tail = reciprocal * polynomial(reciprocal * reciprocal, LOG_GAMMA_TAIL)
    logarithm_less_one = logarithm + constant(x, math.log(8) - 1)
    far = (x - half) * logarithm_less_one + (constant(x, _OFFSET) + tail)
    # The first branch loses the sign of zero, which this one has at 1 and 2.
    return pt.switch(x <= eight, pt.switch(small, near - logarithm, near), far), near
