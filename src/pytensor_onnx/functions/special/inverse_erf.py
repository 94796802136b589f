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
    ERFINV_BOTTOM,
    ERFINV_TOP,
    NDTRI_BOTTOM,
    NDTRI_TOP,
)
from pytensor_onnx.functions.special.portable_formulas import reduced_expm1
from pytensor_onnx.functions.special.wide_evaluation import where_any
from pytensor_onnx.ops.special import precise

_HALF_LOG_PI = 0.5723649429247001
# Up to where the rational function serves, in -log(1 - x**2).
_BOUND, _FLOAT32_BOUND = 37.0, 104.0


@define(Erfinv)
def erfinv(x: TensorVariable) -> TensorVariable:
    """Inverse of the error function, NaN beyond one.

    Notes
    -----
    ``x`` times a rational function of ``-log((1 - x)(1 + x))``, the variable of M. Giles in GPU
    Computing Gems, Jade Edition (2011), chapter 10.
    """
    one = constant(x, 1.0)
    w = -precise.log((one - x) * (one + x))
    bounded = _bounded(w)
    # Infinity stays, which would make NaN of the rational function.
    return x * (_erfinv_ratio(bounded) + (w - bounded))


@define(Erfcinv)
def erfcinv(x: TensorVariable) -> TensorVariable:
    """Inverse of the complement of the error function, as `erfinv`; NaN outside of 0 to 2."""
    one, two = constant(x, 1.0), constant(x, 2.0)
    w = -precise.log(x * (two - x))
    return (one - x) * _where_far(w, _far_ratio(w), _erfinv_ratio(_bounded(w)))


@define(NdtriExp)
def ndtri_exp(x: TensorVariable) -> TensorVariable:
    """Quantile of the normal distribution for the probability ``exp(x)``, NaN for positive ``x``.

    Notes
    -----
    With ``p = exp(x)`` it is ``sqrt(2) erfinv(2p - 1)``, computed as in `erfinv`, where
    ``-log(1 - (2p - 1)**2)`` is ``-x - log(4 (1 - p))``. The nearest power of two ``2**-k`` is
    taken from the exponential, whose ``expm1(x + k log(2))`` gives ``p - 1`` and ``2p - 1``
    without cancellation: in the right tail ``k`` is 0, and around the median it is 1.
    """
    one = constant(x, 1.0)
    # At the lower bound p has long vanished beside one, and infinities would make NaN. The upper
    # one is outside of the domain, as are the numbers beyond it.
    growth, half = reduced_expm1(pt.clip(x, constant(x, -40.0), one))
    power = half + half
    side = growth * power + (power - one)
    less = growth * half + (half - one)
    # Positive x makes the complement negative and its logarithm NaN.
    w = -(x + precise.log(constant(x, -4.0) * less))
    far = _far_ratio(w) * constant(x, math.sqrt(2))
    return side * _where_far(w, far, _ndtri_ratio(_bounded(w)))


def _bounded(w: TensorVariable) -> TensorVariable:
    return pt.minimum(w, constant(w, _BOUND, float32=_FLOAT32_BOUND))


def _erfinv_ratio(w: TensorVariable) -> TensorVariable:
    """``erfinv(x) / x`` for ``w = -log(1 - x**2)`` up to the bound.

    It is within 6 % of ``16 (w + 4) / (w + 68)``, so that the roundings of the polynomials, which
    fit the rest, hardly matter.
    """
    near = (w + constant(w, 4.0)) / (w * constant(w, 1 / 16) + constant(w, 4.25))
    return near + polynomial(w, ERFINV_TOP) / polynomial(w, ERFINV_BOTTOM)


def _ndtri_ratio(w: TensorVariable) -> TensorVariable:
    """``sqrt(2) erfinv(x) / x``, computed as `_erfinv_ratio`."""
    near = (w + constant(w, 3.125)) / (w * constant(w, 1 / 16) + constant(w, 2.5))
    return near + polynomial(w, NDTRI_TOP) / polynomial(w, NDTRI_BOTTOM)


def _far_ratio(w: TensorVariable) -> TensorVariable:
    """``erfinv(x) / x`` beyond the bound, where ``x`` rounds to one.

    There ``exp(-w) = 1 - x**2`` is ``2 (1 - x)``.
    """
    return _tail(w + constant(w, math.log(2)))


def _where_far(w: TensorVariable, far: TensorVariable, near: TensorVariable) -> TensorVariable:
    return where_any(w > constant(w, _BOUND, float32=_FLOAT32_BOUND), far, near)


def _tail(w: TensorVariable) -> TensorVariable:
    """``erfcinv(exp(-w))`` for ``w >= 37.6``, and from 104 on in float32."""
    s = pt.sqrt(w)
    if w.dtype == "float32":
        return _endless_tail(w, s)
    ratio = polynomial(s, ERFCINV_FAR_TAIL_TOP) / polynomial(s, ERFCINV_FAR_TAIL_BOTTOM)
    return where_any(s > constant(s, 27.4), _endless_tail(w, s), s + s * ratio)


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
