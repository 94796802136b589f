"""Inverses of the error function, of its complement, and of the normal distribution function."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Erfcinv, Erfinv, NdtriExp
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.erf_coefficients import (
    ERFCINV_FAR_TAIL_BOTTOM,
    ERFCINV_FAR_TAIL_TOP,
    ERFCINV_REMAINDER,
    ERFCINV_TAIL_BOTTOM,
    ERFCINV_TAIL_TOP,
    ERFINV_CENTER,
)
from pytensor_onnx.functions.special.evaluation import where_any
from pytensor_onnx.functions.special.expm1 import expm1_near_zero
from pytensor_onnx.ops import precise

# Where (1 - x)(1 + x) is smaller, x is in the tails.
_TAIL = math.exp(-5)
# What rounding log(2) leaves out.
_LOG_2_REST = {"float64": 2.3190468138462996e-17, "float32": -1.904654299957768e-09}
_HALF_LOG_PI = 0.5723649429247001


@define(Erfinv)
def erfinv(x: TensorVariable) -> TensorVariable:
    """Inverse of the error function, NaN beyond one.

    Notes
    -----
    In the center ``x`` times a polynomial in ``-log((1 - x)(1 + x))``, as M. Giles does in GPU
    Computing Gems, Jade Edition (2011), chapter 10. In the tails the inverse is a square root of
    the logarithm of the complement, times a rational function of it.
    """
    one = constant(x, 1.0)
    a = pt.abs(x)
    complement = one - a
    product = complement * (one + a)
    is_tail = product <= constant(x, _TAIL)
    w = -precise.log(pt.switch(is_tail, complement, product))
    tail = pt.switch(pt.isinf(w), w, _tail(pt.sqrt(w)))
    return pt.switch(is_tail, pt.sign(x) * tail, x * polynomial(w, ERFINV_CENTER))


@define(Erfcinv)
def erfcinv(x: TensorVariable) -> TensorVariable:
    """Inverse of the complement of the error function, as `erfinv`; NaN outside of 0 to 2."""
    one, two = constant(x, 1.0), constant(x, 2.0)
    rest = one - x
    opposite = two - x
    product = x * opposite
    is_tail = product <= constant(x, _TAIL)
    w = -precise.log(pt.switch(is_tail, pt.minimum(x, opposite), product))
    s = pt.sqrt(w)
    tail = pt.switch(pt.isinf(w), w, _long_tail(s))
    return pt.switch(is_tail, pt.sign(rest) * tail, rest * polynomial(w, ERFINV_CENTER))


@define(NdtriExp)
def ndtri_exp(x: TensorVariable) -> TensorVariable:
    """Quantile of the normal distribution for the probability ``exp(x)``, NaN for positive ``x``.

    Notes
    -----
    With ``p = exp(x)`` it is ``-sqrt(2) erfcinv(2p)``, computed as in `erfcinv`. The probability is
    not formed in the left tail, where ``-log(2p)`` is ``-x - log(2)``; in the right tail ``1 - p``
    is ``-expm1(x)``; and around the median ``2p - 1`` is ``expm1(x + log(2))``.
    """
    shifted = x + constant(x, math.log(2))
    one, bound = constant(x, 1.0), constant(x, 0.8)
    p = pt.exp(x)
    # Positive x makes the complement negative and its logarithm NaN.
    less = pt.switch(pt.abs(x) > bound, p - one, expm1_near_zero(x))
    product = constant(x, -4.0) * p * less
    is_tail = product <= constant(x, _TAIL)
    is_left = shifted < constant(x, 0.0)
    logarithm = precise.log(pt.switch(is_tail, constant(x, -2.0) * less, product))
    w = -pt.switch(is_tail & is_left, shifted, logarithm)

    s = pt.sqrt(w)
    last = constant(x, 27.4, float32=10.15)
    tail = where_any(s > last, _endless_tail(w, s), _long_tail(s))
    near = expm1_near_zero(shifted + constant(x, _LOG_2_REST[x.dtype]))
    side = pt.switch(pt.abs(shifted) > bound, p + p - one, near)
    value = pt.switch(is_tail, pt.sign(side) * tail, side * polynomial(w, ERFINV_CENTER))
    return value * constant(x, math.sqrt(2))


def _tail(s: TensorVariable) -> TensorVariable:
    """``erfcinv(exp(-s**2))`` for ``2.38 <= s <= 6.1``, and up to 10.2 in float32."""
    return s + s * (polynomial(s, ERFCINV_TAIL_TOP) / polynomial(s, ERFCINV_TAIL_BOTTOM))


def _long_tail(s: TensorVariable) -> TensorVariable:
    """``erfcinv(exp(-s**2))`` from 2.38 to the logarithm of the smallest number."""
    near = _tail(s)
    if s.dtype == "float32":
        return near
    ratio = polynomial(s, ERFCINV_FAR_TAIL_TOP) / polynomial(s, ERFCINV_FAR_TAIL_BOTTOM)
    return where_any(s > constant(s, 6.05), s + s * ratio, near)


def _endless_tail(w: TensorVariable, s: TensorVariable) -> TensorVariable:
    """``erfcinv(exp(-w))`` for large ``w = s**2``, where ``erfc(y)`` is nearly ``exp(-y**2) / y``.

    With ``l = log(pi w) / 2`` the square of the inverse is ``w - l + ((l - 1) / 2 + R / w) / w``,
    where ``R`` grows as the square of ``l`` and is soon negligible.
    """
    one, half = constant(w, 1.0), constant(w, 0.5)
    u = half * precise.log(w)
    bent = u + constant(w, _HALF_LOG_PI)
    beyond = pt.minimum(u - constant(w, 3.0), constant(w, 4.0, float32=2.0))
    remainder = polynomial(beyond, ERFCINV_REMAINDER)
    ratio = ((half * (bent - one) + remainder / w) / w - bent) / w
    return pt.switch(pt.isinf(w), w, s + s * (ratio / (one + pt.sqrt(one + ratio))))
