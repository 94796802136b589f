"""Modified Bessel functions of any real order, without their exponential factors.

Where ``w = sqrt(v**2 + x**2)`` is large, Debye's expansions in ``1 / w`` serve, which hold
uniformly in the order ``v`` and the argument ``x``. Elsewhere power series and quadrature add
positive terms.
"""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import Ive, Kve
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.bessel_series import bessel_series
from pytensor_onnx.functions.special.debye import debye_sums
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.gamma import gamma_from_one_to_twenty
from pytensor_onnx.functions.special.gamma_coefficients import LOG_RATIO_WIDE
from pytensor_onnx.functions.special.portable import (
    portable_exp,
    portable_log,
    portable_log1p,
    power_of_exp,
)
from pytensor_onnx.functions.special.power import portable_power
from pytensor_onnx.functions.special.reflection import alternating_sine_pi, is_even
from pytensor_onnx.functions.special.temme import temme_series, temme_start

# From here on 17 terms of Debye's expansions are exact to 3e-16.
_DEBYE = 25.0
_TERMS = 17
# The step and the nodes of a trapezoidal sum: it is exact to 4e-15 for 1 <= x and w <= 25.
_STEP = 0.12
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
    zero, nan = constant(x, 0.0), constant(x, math.nan)
    order, a = pt.abs(v), pt.abs(x)
    nearest = pt.round(order)
    is_integer = pt.eq(order, nearest)
    w = _hypotenuse(order, a)
    last = constant(x, _DEBYE)
    is_far = w > last
    is_reflected = (v < zero) & ~is_integer
    share = constant(x, 2.0) * alternating_sine_pi(order) * portable_exp(-(a + a))
    near = _i_by_series(pt.minimum(order, last), pt.minimum(a, last))
    reflected = near + share * _near_k(order, a)
    near = where_any(is_reflected & ~is_far, reflected, near)
    far, second = _debye(order, a, w)
    far = pt.switch(is_reflected, far + share * second, far)
    value = where_any(is_far, far, near)

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
    return where_any(w > constant(x, _DEBYE), _debye(v, x, w)[1], _near_k(v, x))


def _near_k(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``exp(x) K(v, x)`` where Debye's expansions do not serve."""
    near = pt.minimum(v, constant(v, _DEBYE))
    a = pt.minimum(x, constant(x, _DEBYE))
    value = _k_by_trapezoids(near, a, _hypotenuse(near, a))
    return where_any(x < constant(x, 1.0), _k_by_series(near, x), value)


def _debye(
    v: TensorVariable, x: TensorVariable, w: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Debye's expansions of ``I`` and ``K``, scaled (DLMF 10.41.3 and 10.41.4).

    They differ in the signs of the odd terms. With ``p = v / w`` the terms ``u_k(p) / v**k`` are
    polynomials in ``p**2`` divided by ``w**k``. The inverse hyperbolic sine of ``v / x`` in the
    exponent is ``log((1 + s) / (1 - s))`` for the ``s`` that is to be subtracted from it. That
    logarithm and the exponential, which amplifies its error, are the same in all runtimes.
    """
    ratio = v / w
    one, t = constant(x, 1.0), ratio * ratio
    reciprocal = one / w
    square = reciprocal * reciprocal
    even, odd = debye_sums(t, square, _TERMS)
    odd = odd * reciprocal
    s = v / (w + x)
    s_square = s * s
    near = s + s * s_square * polynomial(s_square, LOG_RATIO_WIDE)
    exponent = -v * pt.switch(s > constant(s, 0.3), portable_log1p(v * (one + s) / x) - s, near)
    growth = portable_exp(exponent)
    first = growth * ((even + odd) / pt.sqrt(constant(x, 2 * math.pi) * w))
    return first, (even - odd) / (growth * pt.sqrt(constant(x, 2 / math.pi) * w))


def _k_by_trapezoids(v: TensorVariable, x: TensorVariable, w: TensorVariable) -> TensorVariable:
    """Integral of ``exp(-x (cosh(t) - 1)) cosh(v t)`` over positive ``t`` (DLMF 10.32.9).

    The integrand falls double-exponentially, so that the trapezoidal rule converges exponentially
    (L. N. Trefethen and J. A. C. Weideman, SIAM Review 56 (2014) 385-458). It is divided by its
    largest value at ``sinh(t) = v / x``, about, so that the exponentials are at most one.
    """
    weights = np.full(len(_NODES), _STEP / 2)
    weights[0] /= 2
    scale = constant(x, 1 / 64)
    largest = v * portable_log((v + w) / x) - (w - x)

    def add(
        t: TensorVariable,
        decay: TensorVariable,
        weight: TensorVariable,
        total: TensorVariable,
        ratio: TensorVariable,
        v: TensorVariable,
        x: TensorVariable,
        largest: TensorVariable,
        step: TensorVariable,
    ) -> list[TensorVariable]:
        # The ratio of both exponentials in the hyperbolic cosine.
        exponent = pt.maximum((v * t - x * decay) - largest, constant(x, -1.0))
        term = weight * power_of_exp(exponent)
        return [total + (term + term * ratio), ratio * step]

    sequences = [pt.constant(values) for values in (_NODES, 2 * np.sinh(_NODES / 2) ** 2, weights)]
    total, _ = iterate(
        add,
        [pt.zeros_like(x), pt.ones_like(x)],
        [v * scale, x * scale, largest * scale, portable_exp(v * constant(v, -2 * _STEP))],
        sequences=sequences,
        n_steps=len(_NODES),
    )
    return total * portable_exp(largest)


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
    return value * portable_exp(x)


def _i_by_series(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Power series (DLMF 10.25.2) of positive terms, for ``v`` and ``x`` up to 25."""
    half = x * constant(x, 0.5)
    z = half * half
    total = bessel_series(v, z, 42)
    zero = constant(x, 0.0)
    power = portable_power(pt.switch(half > zero, half, constant(x, 1.0)), v)
    power = pt.switch(half > zero, power, pt.eq(v, zero).astype(x.dtype))
    return total * (power * portable_exp(-x)) / _gamma_of_next(v)


def _gamma_of_next(v: TensorVariable) -> TensorVariable:
    """``gamma(v + 1)`` for ``0 <= v <= 25``."""
    one = constant(v, 1.0)
    is_large = v > constant(v, 19.0)
    product = v
    for k in range(1, 6):
        product = product * (v - constant(v, k))
    y = pt.switch(is_large, v - constant(v, 5.0), v + one)
    return gamma_from_one_to_twenty(y) * pt.switch(is_large, product, one)
