"""The error functions, their inverses, and Owen's T function."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import Erf, Erfc, Erfcinv, Erfcx, Erfinv, NdtriExp, Owens_t
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    in_float64,
    is_short,
    on_pair,
    polynomial,
    square_with_error,
    sum_of_powers,
    where_any,
    with_an_axis,
)
from pytensor_onnx.functions.special.coefficients import ERF, SCALED_ERFC
from pytensor_onnx.functions.special.erf_coefficients import (
    ERFCINV_FAR_TAIL_BOTTOM,
    ERFCINV_FAR_TAIL_TOP,
    ERFCINV_REMAINDER,
    ERFCX,
    ERFINV_BOTTOM,
    ERFINV_TOP,
    NDTRI_BOTTOM,
    NDTRI_TOP,
)
from pytensor_onnx.functions.special.exponential import (
    exponential,
    power_of_exp,
    reduced_expm1,
    times_exponential,
)
from pytensor_onnx.ops.special import precise


@define(Erf)
def erf(x: TensorVariable) -> TensorVariable:
    """Error function, with ``1 - erfc(|x|)`` beyond one."""
    # At the bound the complement has long vanished beside one, and infinity would make NaN.
    a = pt.minimum(pt.abs(x), constant(x, 10.0))
    center, variation = _scaled_erfc(a)
    tail = pt.exp(-(a * a)) * (center + variation) / a
    far = pt.sign(x) * (constant(x, 1.0) - tail)
    return pt.switch(a > constant(x, 1.0), far, x + _erf_excess(x))


@define(Erfc)
def erfc(x: TensorVariable) -> TensorVariable:
    """Complement of the error function, accurate in its right tail until it underflows.

    Notes
    -----
    The tail is ``exp(-x**2)`` times a slowly varying function. The rounding error of ``x**2``,
    which the exponential would amplify, is taken out.
    """
    # At the bound the tail is zero, and infinity would make NaN.
    a = pt.minimum(pt.abs(x), constant(x, 27.3, float32=10.2))
    square, error = square_with_error(a)
    center, variation = _scaled_erfc(a)
    tail = times_exponential((center + variation) / a, -square, -error)
    far = pt.switch(x < constant(x, 0.0), constant(x, 2.0) - tail, tail)
    # The first difference is exact between 1/2 and 1, where the second one cancels most.
    near = (constant(x, 1.0) - x) - _erf_excess(x)
    return pt.switch(a > constant(x, 1.0), far, near)


@define(Erfcx)
def erfcx(x: TensorVariable) -> TensorVariable:
    """``exp(x**2) erfc(x)``, with ``2 exp(x**2) - erfcx(-x)`` for negative ``x``.

    The rounding error of ``x**2`` is taken out as in `erfc`.
    """
    right = erfcx_of_positive(pt.abs(x))
    # At the bound twice the exponential is infinite, half of it is not.
    square, error = square_with_error(pt.minimum(pt.abs(x), constant(x, 26.64, float32=9.41)))
    excess, half = exponential(square, error)
    quarter = half + (half * excess - constant(x, 0.25) * right)
    return pt.switch(x < constant(x, 0.0), constant(x, 4.0) * quarter, right)


def erfcx_of_positive(a: TensorVariable) -> TensorVariable:
    """``exp(a**2) erfc(a)`` for positive ``a``.

    Times ``a + 7/8`` it varies between 0.56 and 0.88 only, and is a polynomial in ``(a - 4) / (a +
    4)``, a map used by M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981) 249-253.
    """
    four = constant(a, 4.0)
    # At the bound the quotient is one, and infinity would make NaN.
    bounded = pt.minimum(a, constant(a, 1e20))
    t = (bounded - four) / (bounded + four)
    center = constant(a, ERFCX[a.dtype][0])
    evaluate = sum_of_powers if is_short(t) else polynomial
    return (center + t * evaluate(t, ERFCX, start=1)) / (a + constant(a, 0.875))


def _erf_excess(x: TensorVariable) -> TensorVariable:
    """``erf(x) - x`` for ``|x| <= 1``."""
    return x * polynomial(x * x, ERF)


def _scaled_erfc(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Split ``a exp(a**2) erfc(a)`` for ``a >= 1`` into a constant and a smaller variable part.

    The function varies between 0.42 and 0.57 only, and is a polynomial in ``(a - 4) / (a + 4)``, a
    map used by M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981) 249-253.
    """
    four = constant(a, 4.0)
    t = (a - four) / (a + four)
    return constant(a, SCALED_ERFC[a.dtype][0]), t * polynomial(t, SCALED_ERFC, start=1)


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
    return side * _where_far(w, far, ndtri_ratio(_bounded(w)))


def _bounded(w: TensorVariable) -> TensorVariable:
    return pt.minimum(w, constant(w, _BOUND, float32=_FLOAT32_BOUND))


def _erfinv_ratio(w: TensorVariable) -> TensorVariable:
    """``erfinv(x) / x`` for ``w = -log(1 - x**2)`` up to the bound.

    It is within 6 % of ``16 (w + 4) / (w + 68)``, so that the roundings of the polynomials, which
    fit the rest, hardly matter.
    """
    near = (w + constant(w, 4.0)) / (w * constant(w, 1 / 16) + constant(w, 4.25))
    return near + polynomial(w, ERFINV_TOP) / polynomial(w, ERFINV_BOTTOM)


def ndtri_ratio(w: TensorVariable) -> TensorVariable:
    """``sqrt(2) erfinv(x) / x``, computed as `_erfinv_ratio`."""
    near = (w + constant(w, 3.125)) / (w * constant(w, 1 / 16) + constant(w, 2.5))
    return near + ndtri_rest(w)


def ndtri_rest(w: TensorVariable) -> TensorVariable:
    """``sqrt(2) erfinv(x) / x`` less the quotient that is near to it."""
    return polynomial(w, NDTRI_TOP) / polynomial(w, NDTRI_BOTTOM)


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
