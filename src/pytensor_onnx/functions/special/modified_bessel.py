"""Modified Bessel functions."""

import math
from fractions import Fraction
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import I0, I1, Ive, Kve, ive as scalar_ive, special
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    horner,
    in_float64,
    polynomial,
    split_rows,
    stacked,
    upper_half,
    where_any,
)
from pytensor_onnx.functions.special.bessel_coefficients import (
    I0_LARGE,
    I0_MIDDLE,
    I0_SMALL,
    I1_LARGE,
    I1_MIDDLE,
    I1_SMALL,
    LONG_SINE,
    TEMME_DIFFERENCE,
    TEMME_MEAN,
)
from pytensor_onnx.functions.special.coefficients import SINH, Coefficients
from pytensor_onnx.functions.special.exponential import (
    exp,
    expm1_near_zero,
    exponent_with_rest,
    log_of_normal_with_rest,
    log_with_rest,
    power_of_exp,
    product_with_rest,
    times_exponential,
)
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.psi import alternating_sine_pi, is_even

_FIRST, _LAST = 5.0, 16.0
# Chosen so that the constant coefficients lie within 0.2 ulp of floating-point numbers.
_SHIFT = 7.875


@define(I0)
def i0(x: TensorVariable) -> TensorVariable:
    """Compute the modified Bessel function I0; NaN at infinity, as in SciPy."""
    small = constant(x, 1.0) + _excess(x, I0_SMALL)
    large = _growing(pt.abs(x), I0_MIDDLE, I0_LARGE)
    return pt.switch(pt.abs(x) > constant(x, _FIRST), large, small)


@define(I1)
def i1(x: TensorVariable) -> TensorVariable:
    """Compute the modified Bessel function I1; NaN at infinity, as in SciPy."""
    half = x * constant(x, 0.5)
    small = half + half * _excess(x, I1_SMALL)
    large = _growing(pt.abs(x), I1_MIDDLE, I1_LARGE)
    return pt.switch(pt.abs(x) > constant(x, _FIRST), pt.sign(x) * large, small)


@operation(reference=lambda x: scalar_ive.impl(0, x))
def i0e(x: TensorVariable) -> TensorVariable:
    """Compute ``exp(-|x|)`` times the modified Bessel function I0."""
    a = pt.abs(x)
    near = constant(x, 1.0) + _excess(x, I0_SMALL)
    return pt.switch(a > constant(x, _FIRST), _scaled(a, I0_MIDDLE, I0_LARGE), _damped(near, a))


@operation(reference=lambda x: scalar_ive.impl(1, x))
def i1e(x: TensorVariable) -> TensorVariable:
    """Compute ``exp(-|x|)`` times the modified Bessel function I1."""
    a, half = pt.abs(x), x * constant(x, 0.5)
    near = half + half * _excess(x, I1_SMALL)
    far = pt.sign(x) * _scaled(a, I1_MIDDLE, I1_LARGE)
    return pt.switch(a > constant(x, _FIRST), far, _damped(near, a))


def _damped(value: TensorVariable, a: TensorVariable) -> TensorVariable:
    """``exp(-a) value`` for ``a`` up to the first bound."""
    return times_exponential(value, -pt.minimum(a, constant(a, _FIRST)))


def _excess(x: TensorVariable, coefficients: Coefficients) -> TensorVariable:
    """Evaluate a polynomial in ``z = x**2 / 4``, times ``z``."""
    half = x * constant(x, 0.5)
    square = half * half
    return square * polynomial(square, coefficients)


def _growing(a: TensorVariable, middle: Coefficients, large: Coefficients) -> TensorVariable:
    """``exp(a - 7.875) f(1/a) / sqrt(a)`` for ``a > 5``, which is finite as long as the result is.

    The difference is exact, since it is smaller than ``a`` and a multiple of the same unit.
    """
    # At the bound the result is infinite. The last difference is NaN at infinity.
    bounded = pt.minimum(a, constant(a, 717.0, float32=96.0))
    center, variation = _center_and_variation(bounded, middle, large)
    factor = (center + variation) / pt.sqrt(bounded)
    return times_exponential(factor, bounded - constant(a, _SHIFT)) + (a - a)


def _scaled(a: TensorVariable, middle: Coefficients, large: Coefficients) -> TensorVariable:
    """``exp(-7.875) f(1/a) / sqrt(a)`` for ``a > 5``."""
    center, variation = _center_and_variation(a, middle, large)
    return (center + variation) / pt.sqrt(a) * constant(a, math.exp(-_SHIFT))


def _center_and_variation(
    a: TensorVariable, middle: Coefficients, large: Coefficients
) -> tuple[TensorVariable, TensorVariable]:
    """``f(1/a)`` as a constant and a smaller rest."""
    one = constant(a, 1.0)
    is_large = a > constant(a, _LAST)
    center, variation = _split(one / a, large)
    near_center, near_variation = _split(constant(a, 10.0) / a - one, middle)
    center = pt.switch(is_large, center, near_center)
    return center, pt.switch(is_large, variation, near_variation)


def _split(x: TensorVariable, coefficients: Coefficients) -> tuple[TensorVariable, TensorVariable]:
    """Return the constant and the variable part of a polynomial."""
    return constant(x, coefficients[x.dtype][0]), x * polynomial(x, coefficients, start=1)


# Exponents beside Debye's expansions, in two parts.
#
# A rounding of an exponent, of hundreds, would be an error of as many units of the exponential.


class Decay(NamedTuple):
    """Half of an exponent in two parts, and the exponential of its negative as ``root``."""

    root: TensorVariable
    half: TensorVariable
    rest: TensorVariable


class Base(NamedTuple):
    """A number in two parts, with the linear term beside its logarithm in two parts."""

    base: TensorVariable
    lost: TensorVariable
    shift: TensorVariable
    shift_rest: TensorVariable


def decay(v: TensorVariable, x: TensorVariable, w: TensorVariable) -> Decay:
    """Decay by ``E = v log(b) - w`` for ``b = (v + w) / x`` and ``w**2 = v**2 - x**2``.

    Both terms are much larger than ``E`` where ``v`` is large, so that the logarithm needs more
    digits than that of `modified_decay`.
    """
    # At the bound the exponential is zero.
    x = pt.maximum(x, v * constant(x, 1e-30))
    base, lost, shift, shift_rest = _exact_base(v, x, w, (v + w) / x, is_modified=False)
    logarithm, rest = log_with_rest(base)
    exponent, error = exponent_with_rest(v, logarithm, rest + lost / base, shift)
    return _halved(exponent, error + shift_rest)


def modified_decay(v: TensorVariable, x: TensorVariable, w: TensorVariable) -> Decay:
    """Decay by ``E = v log(b) - (w - x)`` for ``b = (v + w) / x`` and ``w**2 = v**2 + x**2``."""
    s = v / (w + x)
    # At the bounds the exponential is zero, or one.
    v = pt.minimum(v, constant(x, 1e250))
    x = pt.minimum(pt.maximum(x, v * constant(x, 1e-30)), constant(x, 1e290))
    m = v * (constant(x, 1.0) + s) / x
    base, lost, shift, shift_rest = _exact_base(v, x, w, m, is_modified=True)
    of_base, rest = log_of_normal_with_rest(base)
    rest = rest + lost / base
    logarithm = of_base + rest
    rest = rest - (logarithm - of_base)
    exponent, error = exponent_with_rest(v, logarithm, rest, shift)
    # Where digits of the parts cancel, the first term is enough.
    is_short = w > constant(x, 1e19)
    exponent = pt.switch(is_short, v * s, exponent)
    return _halved(exponent, pt.switch(is_short, constant(x, 0.0), error + shift_rest))


def _exact_base(
    v: TensorVariable, x: TensorVariable, w: TensorVariable, m: TensorVariable, is_modified: bool
) -> Base:
    """Return ``b = (v + w) / x`` and ``-w``, of modified functions ``x - w``, from a rough ``m``.

    With ``a = v - x m``, which is the linear term, the number ``m = b`` solves ``m (a + v) = x``,
    and of modified functions ``m = b - 1`` solves ``m (a + v) + 2 a = 0``. From an ``m`` of few
    bits, whose products with the upper bits of ``x`` are exact, one step leads to the root.
    """
    m = upper_half(m)
    v_first, x_first = upper_half(v), upper_half(x)
    v_second, x_second = v - v_first, x - x_first
    first, second = v_first - x_first * m, v_second - x_second * m
    total_first = upper_half(first + v_first)
    total_second = (first - (total_first - v_first)) + (second + v_second)
    if is_modified:
        one = constant(x, 1.0)
        base, lost, outer = one + m, m - ((one + m) - one), one + (w - v) / x
        fixed_first, fixed_second = first + first, second + second
    else:
        base, lost, outer = m, constant(x, 0.0), (w - v) / x
        fixed_first, fixed_second = -x_first, -x_second
    residual = (fixed_first + m * total_first) + (fixed_second + m * total_second)
    step = residual / (m + outer) / x
    total = base + step
    lost = lost + (step - (total - base))
    return Base(total, lost, *add_with_error(first, second - x * step))


def _halved(exponent: TensorVariable, rest: TensorVariable) -> Decay:
    half, rest = constant(rest, 0.5) * exponent, constant(rest, 0.5) * rest
    return Decay(exp(-half, -rest), half, rest)


# Modified Bessel functions of any real order, with and without their exponential factors.
#
# Where ``w = sqrt(v**2 + x**2)`` is large, Debye's expansions in ``1 / w`` serve, which hold
# uniformly in the order ``v`` and the argument ``x``. Elsewhere power series and quadrature add
# positive terms. Beside Debye's expansions and the quadrature stands the exponential of ``v
# arsinh(v / x) - (w - x)``.

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


@operation(reference=lambda factor, v, x: factor * special.iv(v, x))
@in_float64
def times_iv(factor: TensorVariable, v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Multiply the modified Bessel function of the first kind by ``factor``.

    The growth is multiplied last, half at a time, so that neither ``exp(|x|)`` overflows nor the
    scaled function underflows. NaN where `ive` is.
    """
    return _first_kind(v, x, factor)


def _kv_of_scipy(v: Any, x: Any) -> Any:
    return special.kv(v, x)


@operation(reference=_kv_of_scipy)
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


# Debye's expansions of Bessel functions, uniform in order and argument where both are not small.
#
# The terms ``u_k(p) / v**k`` of DLMF 10.41.9 are polynomials in ``p**2`` times ``(p / v)**k``, so
# that they serve small orders too: at order zero they are those of Hankel's expansion.


def debye_polynomials(count: int) -> list[tuple[float, ...]]:
    """Coefficients of ``u_k(p) / p**k`` in ``p**2``, by the recurrence of DLMF 10.41.9.

    Examples
    --------
    >>> debye_polynomials(2) == [(1.0,), (1 / 8, -5 / 24)]
    True
    """
    terms = {0: Fraction(1)}
    found = []
    for k in range(count):
        found.append(tuple(float(terms.get(k + 2 * j, 0)) for j in range(k + 1)))
        following: dict[int, Fraction] = {}
        for power, c in terms.items():
            low = c * (Fraction(power, 2) + Fraction(1, 8 * (power + 1)))
            high = c * (Fraction(power, 2) + Fraction(5, 8 * (power + 3)))
            following[power + 1] = following.get(power + 1, Fraction(0)) + low
            following[power + 3] = following.get(power + 3, Fraction(0)) - high
        terms = following
    return found


def debye_sums(
    t: TensorVariable, z: TensorVariable, count: int
) -> tuple[TensorVariable, TensorVariable]:
    """Add the terms of even and of odd index, ``z**(k // 2)`` times the polynomial of ``t``.

    Each operation computes four terms along a new first axis, which takes a fourth of the nodes.
    """
    polynomials = debye_polynomials(count)
    terms = []
    for first in range(0, count, 4):
        four = (polynomials[first : first + 4] + [()] * 3)[:4]
        rows = zip_longest(*four, fillvalue=0.0)
        terms.append(horner(t[None], [stacked(t, row) for row in rows]))
    square = z * z
    lower, upper = pt.split(horner(square[None], terms), [2, 2], n_splits=2, axis=0)
    even, odd = split_rows(lower + z[None] * upper, 2)
    return even, odd


def bessel_series(v: TensorVariable, z: TensorVariable, terms: int) -> TensorVariable:
    """Return the sum of ``z**k / (k! (v + 1) ... (v + k))``, over so many terms after the first.

    With ``z = x**2 / 4`` it belongs to the modified functions (DLMF 10.25.2), with ``-x**2 / 4`` to
    the others (DLMF 10.2.2).

    Examples
    --------
    >>> v, z = pt.vectors("v", "z")
    >>> float(bessel_series(v, z, 20).eval({v: [0.0], z: [0.25]})[0].round(12))
    1.266065877752
    """

    def add(
        k: TensorVariable,
        total: TensorVariable,
        term: TensorVariable,
        v: TensorVariable,
        z: TensorVariable,
    ) -> tuple[TensorVariable, TensorVariable]:
        term = term * (z / (k * (v + k)))
        return total + term, term

    start = pt.ones_like(z)
    numbers = pt.constant(np.arange(1.0, terms + 1))
    total, _ = iterate(add, [start, start], [v, z], sequences=[numbers], n_steps=terms)
    return total


# Temme's series of modified Bessel functions of the second kind, for small arguments.
#
# N. M. Temme, J. Comput. Phys. 19 (1975) 324-337 and 21 (1976) 343-350.


class Start(NamedTuple):
    """First terms of the recurrences of `temme_series`."""

    f: TensorVariable
    p: TensorVariable
    q: TensorVariable


def temme_coefficients(m: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``(1 / gamma(1 - m) - 1 / gamma(1 + m)) / (2 m)``, and half the sum of the two."""
    square = m * m
    return polynomial(square, TEMME_DIFFERENCE), polynomial(square, TEMME_MEAN)


def temme_start(m: TensorVariable, x: TensorVariable) -> Start:
    """Return the first terms, for ``|m| <= 1/2`` and ``x <= 2``."""
    one, half = constant(x, 1.0), constant(x, 0.5)
    difference, mean = temme_coefficients(m)
    # Differences of runtimes would be amplified where parts cancel.
    logarithm, rest = log_of_normal_with_rest(x * constant(x, 2.0**60), constant(x, -61.0))
    log, angle = -logarithm, -m * logarithm
    growth = exp(*product_with_rest(-m, logarithm, rest))
    angle_square = angle * angle
    sinc = pt.switch(
        pt.abs(angle) > one,
        half * (growth - one / growth) / angle,
        one + angle_square * polynomial(angle_square, SINH),
    )
    turn = constant(x, math.pi) * m
    turn_square = turn * turn
    f = difference * (half * (growth + one / growth)) + mean * sinc * log
    f = f / (one + turn_square * polynomial(turn_square, LONG_SINE))
    p = half * growth / (mean - m * difference)
    q = half / growth / (mean + m * difference)
    return Start(f, p, q)


def temme_series(
    start: Start,
    m: TensorVariable,
    z: TensorVariable,
    terms: int,
) -> tuple[TensorVariable, TensorVariable]:
    """Add the series of the function of order ``m``, and of ``x / 2`` times that of ``m + 1``.

    Parameters
    ----------
    start
        First terms.
    m
        Order, at most one half.
    z
        ``x**2 / 4``.
    terms
        Number of terms after the first one.
    """

    def step(
        k: TensorVariable,
        terms: Start,
        factor: TensorVariable,
        total: TensorVariable,
        following: TensorVariable,
        m: TensorVariable,
        z: TensorVariable,
    ) -> list[Any]:
        f, p, q = terms
        f = (k * f + p + q) / (k * k - m * m)
        factor = factor * z / k
        p, q = p / (k - m), q / (k + m)
        term = factor * f
        return [Start(f, p, q), factor, total + term, following + (factor * p - k * term)]

    *_, total, following = iterate(
        step,
        [start, pt.ones_like(z), start.f, start.p],
        [m, z],
        sequences=[pt.constant(np.arange(1.0, terms + 1))],
        n_steps=terms,
    )
    return total, following
