"""Modified Bessel functions of any real order, with and without their exponential factors.

Where ``w = sqrt(v**2 + x**2)`` is large, Debye's expansions in ``1 / w`` serve, which hold
uniformly in the order ``v`` and the argument ``x``. Elsewhere power series and quadrature add
positive terms. Beside Debye's expansions and the quadrature stands the exponential of
``v arsinh(v / x) - (w - x)``.
"""

import math
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import Ive, Kve
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import add_with_error, constant
from pytensor_onnx.functions.special.bessel_series import bessel_series
from pytensor_onnx.functions.special.debye import debye_sums
from pytensor_onnx.functions.special.debye_exponent import Decay, modified_decay
from pytensor_onnx.functions.special.expm1 import expm1_near_zero
from pytensor_onnx.functions.special.exponential import exp, times_exponential
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.portable_formulas import power_of_exp
from pytensor_onnx.functions.special.power import log_of_normal_with_rest, product_with_rest
from pytensor_onnx.functions.special.reflection import alternating_sine_pi, is_even
from pytensor_onnx.functions.special.temme import temme_series, temme_start
from pytensor_onnx.functions.special.wide_evaluation import in_float64, where_any
from pytensor_onnx.ops.special.bessel_ops import Kv, TimesIv

# From here on so many terms of Debye's expansions are exact to 1.4e-15.
_DEBYE = 34.0
_TERMS = 12
# The step and the nodes of a trapezoidal sum: it is exact to 5e-15 for 1 <= x and w <= 34.
_STEP = 0.116
_NODES = _STEP * np.arange(47)


@define(Kve)
@in_float64
def kve(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``exp(x)`` times the modified Bessel function of the second kind, in float64 for float32 too.

    It is infinite at zero, NaN for negative ``x`` and, as in SciPy, at infinity.
    """
    zero = constant(x, 0.0)
    value = pt.switch(x > zero, _scaled_k(pt.abs(v), x), constant(x, math.nan))
    value = pt.switch(pt.isinf(x) | pt.isinf(v), constant(x, math.nan), value)
    return pt.switch(pt.eq(x, zero), constant(x, math.inf), value)


@define(Ive)
@in_float64
def ive(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``exp(-|x|)`` times the modified Bessel function of the first kind, in float64 throughout.

    Notes
    -----
    Arguments are reflected for integer orders, for which the function is even or odd, and NaN for
    others. Orders are reflected by ``I(-v) = I(v) + 2/pi sin(pi v) K(v)`` (DLMF 10.27.2). NaN at
    infinity and, for negative orders that are no integers, at zero, as in SciPy.
    """
    return _first_kind(v, x)


@define(TimesIv)
@in_float64
def times_iv(factor: TensorVariable, v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Multiply the modified Bessel function of the first kind by ``factor``.

    The growth is multiplied last, half at a time, so that neither ``exp(|x|)`` overflows nor the
    scaled function underflows. NaN where `ive` is.
    """
    return _first_kind(v, x, factor)


@define(Kv)
@in_float64
def kv(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Compute the modified Bessel function of the second kind, where that is finite.

    It is infinite, or NaN, where `kve` is because of its argument.
    """
    zero, half = constant(x, 0.0), constant(x, 0.5)
    order, w = pt.abs(v), _hypotenuse(pt.abs(v), x)
    decay = modified_decay(order, x, w)
    last = constant(x, _DEBYE)
    shift, error = add_with_error(decay.half, -half * x)
    growth = exp(shift, decay.rest + error)
    far = _debye(order, w)[1] * growth * growth
    near = times_exponential(_near_k(order, x, decay), -pt.clip(x, zero, last))
    value = pt.switch(x > zero, where_any(w > last, far, near), constant(x, math.nan))
    value = pt.switch(pt.isinf(x) | pt.isinf(v), constant(x, math.nan), value)
    return pt.switch(pt.eq(x, zero), constant(x, math.inf), value)


def _first_kind(
    v: TensorVariable, x: TensorVariable, factor: TensorVariable | None = None
) -> TensorVariable:
    """Return `times_iv`, or without a factor `ive`."""
    zero, nan = constant(x, 0.0), constant(x, math.nan)
    order, a = pt.abs(v), pt.abs(x)
    nearest = pt.round(order)
    is_integer = pt.eq(order, nearest)
    w = _hypotenuse(order, a)
    last = constant(x, _DEBYE)
    is_far = w > last
    near = _i_by_series(pt.minimum(order, last), pt.minimum(a, last))
    decay = modified_decay(order, a, w)
    far, far_second = _debye(order, w)
    if factor is None:
        far = far * decay.root * decay.root
    far, far_second = ifelse(pt.any(is_far), [far, far_second], [near, near])
    value = pt.switch(is_far, far, near)

    share = constant(x, 2.0) * alternating_sine_pi(order)
    second = pt.switch(is_far, far_second, _near_k(order, a, decay))
    half, rest = (pt.switch(is_far, of, zero) for of in (decay.half, decay.rest))
    if factor is None:
        # Growth and damping together, half at a time, as either alone may overflow or underflow.
        growth = exp(half - a, rest)
    else:
        shift, error = add_with_error(half, -constant(x, 0.5) * a)
        growth = exp(shift, rest + error)
        reciprocal = exp(-shift, -(rest + error))
        value, share = value * factor * reciprocal * reciprocal, share * factor
    reflected = value + share * second * growth * growth
    value = where_any((v < zero) & ~is_integer, reflected, value)
    value = pt.switch((x < zero) & ~is_even(nearest), -value, value)
    is_outside = ~is_integer & ((x < zero) | ((v < zero) & pt.eq(x, zero)))
    return pt.switch(is_outside | pt.isinf(x) | pt.isinf(v) | pt.isnan(v), nan, value)


def _hypotenuse(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    large, small = pt.maximum(v, x), pt.minimum(v, x)
    ratio = small / large
    return large * pt.sqrt(constant(x, 1.0) + ratio * ratio)


def _scaled_k(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``exp(x) K(v, x)`` for positive ``x`` and ``v >= 0``."""
    w = _hypotenuse(v, x)
    decay = modified_decay(v, x, w)
    far = _debye(v, w)[1] / decay.root / decay.root
    return where_any(w > constant(x, _DEBYE), far, _near_k(v, x, decay))


def _near_k(v: TensorVariable, x: TensorVariable, decay: Decay) -> TensorVariable:
    """``exp(x) K(v, x)`` where Debye's expansions do not serve."""
    value = _k_by_trapezoids(v, x, decay)
    return where_any(x < constant(x, 1.0), _k_by_series(v, x), value)


def _debye(v: TensorVariable, w: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Debye's expansions of ``I`` and ``K`` without exponentials (DLMF 10.41.3 and 10.41.4).

    They differ in the signs of the odd terms. With ``p = v / w`` the terms ``u_k(p) / v**k`` are
    polynomials in ``p**2`` divided by ``w**k``.
    """
    ratio, reciprocal = v / w, constant(w, 1.0) / w
    even, odd = debye_sums(ratio * ratio, reciprocal * reciprocal, _TERMS)
    odd, width = odd * reciprocal, pt.sqrt(w)
    first = (even + odd) / (constant(w, math.sqrt(2 * math.pi)) * width)
    return first, (even - odd) / (constant(w, math.sqrt(2 / math.pi)) * width)


class _Node(NamedTuple):
    """A node of the trapezoidal rule: ``t``, ``cosh(t) - 1`` and its weight."""

    t: TensorVariable
    decay: TensorVariable
    weight: TensorVariable


def _k_by_trapezoids(v: TensorVariable, x: TensorVariable, largest: Decay) -> TensorVariable:
    """Integral of ``exp(-x (cosh(t) - 1)) cosh(v t)`` over positive ``t`` (DLMF 10.32.9).

    The integrand falls double-exponentially, so that the trapezoidal rule converges exponentially
    (L. N. Trefethen and J. A. C. Weideman, SIAM Review 56 (2014) 385-458). It is divided by its
    largest value at ``sinh(t) = v / x``, about, so that the exponentials are at most one. The
    reciprocal of that is the decay ``largest``.
    """
    weights = np.full(len(_NODES), _STEP / 2)
    weights[0] /= 2
    scale = constant(x, 1 / 64)

    def add(
        node: _Node,
        total: TensorVariable,
        ratio: TensorVariable,
        v: TensorVariable,
        x: TensorVariable,
        largest: TensorVariable,
        step: TensorVariable,
    ) -> list[TensorVariable]:
        # The ratio of both exponentials in the hyperbolic cosine.
        exponent = pt.maximum((v * node.t - x * node.decay) - largest, constant(x, -1.0))
        term = node.weight * power_of_exp(exponent)
        return [total + (term + term * ratio), ratio * step]

    nodes = map(pt.constant, (_NODES, 2 * np.sinh(_NODES / 2) ** 2, weights))
    total, _ = iterate(
        add,
        [pt.zeros_like(x), pt.ones_like(x)],
        [
            v * scale,
            x * scale,
            largest.half * (scale + scale),
            power_of_exp(v * constant(v, -_STEP / 32)),
        ],
        sequences=[_Node(*nodes)],
        n_steps=len(_NODES),
    )
    # The exponents of the terms are without the rest of the largest one.
    total = total - total * (largest.rest + largest.rest)
    return total / largest.root / largest.root


def _k_by_series(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """N. M. Temme's series for ``x < 1`` (J. Comput. Phys. 19 (1975) 324-337), and recurrence.

    The series gives the orders ``m`` and ``m + 1`` for ``|m| <= 1/2``; upward recurrence is stable.
    """
    count = pt.round(v)
    m = v - count
    total, following = temme_series(temme_start(m, x), m, x * x * constant(x, 0.25), 10)

    def step(
        k: TensorVariable,
        lower: TensorVariable,
        upper: TensorVariable,
        count: TensorVariable,
        m: TensorVariable,
        x: TensorVariable,
    ) -> tuple[TensorVariable, TensorVariable]:
        higher = (m + k) * (constant(x, 2.0) / x) * upper + lower
        is_before = k <= count
        return pt.switch(is_before, upper, lower), pt.switch(is_before, higher, upper)

    value, _ = iterate(
        step,
        [total, following * (constant(x, 2.0) / x)],
        [count, m, x],
        sequences=[pt.constant(np.arange(1.0, _DEBYE + 1))],
        n_steps=int(_DEBYE),
    )
    return value * (constant(x, 1.0) + expm1_near_zero(x))


def _i_by_series(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Power series (DLMF 10.25.2) of positive terms, for ``v`` and ``x`` up to 34."""
    zero, one, half = (constant(x, n) for n in (0.0, 1.0, 0.5))
    y, middle, is_zero = v + one, half * x, pt.eq(x, zero)
    total = bessel_series(v, middle * middle, 50)
    # Of (x/2)**v exp(-x) / gamma(y) the powers are one, which vanishes with the result only.
    base = pt.switch(is_zero, one, x * constant(x, 2.0**99) / y)
    exponent, rest = product_with_rest(v, *log_of_normal_with_rest(base, constant(x, -100.0)))
    shift, shift_rest = add_with_error(v, -x)
    exponent, error = add_with_error(exponent, shift)
    exponent = pt.maximum(exponent, constant(x, -746.0))
    factor = total * constant(x, math.e) / (pt.sqrt(y) * scaled_gamma(y))
    value = times_exponential(factor, exponent, error + (rest + shift_rest))
    return pt.switch(is_zero, pt.eq(v, zero).astype(x.dtype), value)
