"""Bessel functions of the first kind of any real order.

The power series serves where its terms hardly cancel, Debye's expansions where order or argument
are large and not nearly equal, and recurrences over the order elsewhere.
"""

import math

import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import Jv
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.bessel_expansions import expansions, is_debye, is_hankel
from pytensor_onnx.functions.special.bessel_recurrence import first_kind, order_above, second_kind
from pytensor_onnx.functions.special.bessel_series import bessel_series
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.power import exponent_with_rest, log_of_normal_with_rest
from pytensor_onnx.functions.special.reflection import is_even, sine_pi
from pytensor_onnx.functions.special.wide_evaluation import in_float64, where_any

# Terms of the power series, enough for x**2 / 4 <= 2 (v + 1).
_TERMS = 24
# From this order on the recurrence begins at a value of Debye's expansion.
_LARGE = 5000.0


@define(Jv)
@in_float64
def jv(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Compute the Bessel function of the first kind, in float64 for float32 too.

    Notes
    -----
    Integer orders are reflected by ``J(-v) = (-1)**v J(v)``. For other negative orders the power
    series serves below 2, and ``J(-v) = cos(pi v) J(v) - sin(pi v) Y(v)`` (DLMF 10.2.3) beyond.
    Negative arguments are NaN for orders that are no integers, as in SciPy. So are arguments from
    ``2**39`` on where the square of the order is more than 100 times as large (from 1e150 on: six
    times), arguments beyond 1e300, and orders that nearly equal the argument above about 3e7, or
    below -9,000 if they are no integers.
    """
    zero, half, one, two, nan = (constant(x, n) for n in (0.0, 0.5, 1.0, 2.0, math.nan))
    order, a = pt.abs(v), pt.abs(x)
    count = pt.round(order)
    m = order - count
    is_integer = pt.eq(m, zero)
    # Beyond this the square of the order would overflow, and results are zero anyway.
    order = pt.minimum(order, constant(x, 1e154))
    by_hankel, by_debye = is_hankel(order, a), is_debye(order, a)
    is_far = by_hankel | by_debye
    is_negative = (v < zero) & ~is_integer & ~pt.isinf(v)
    is_reflected = is_negative & (is_far | (a >= two))
    is_upwards = is_reflected & ~is_far
    by_series = (a * a <= constant(x, 8.0) * (order + one)) & ~is_upwards
    is_near = ~(by_series | is_far) & ~pt.isnan(order)

    # The sine of pi m / 2, then the sine and the cosine of pi v.
    sine = constant(x, math.pi) * sine_pi(m * half)
    double_sine = (sine + sine) * pt.sqrt(one - sine * sine)
    cosine = one - (sine + sine) * sine
    is_even_count = is_even(count)
    double_sine, cosine = (pt.switch(is_even_count, of, -of) for of in (double_sine, cosine))

    power = _power(order, a, m, by_series, is_negative)
    near_count, near_x = (pt.switch(is_near, of, zero) for of in (count, a))
    is_large = is_near & ~is_upwards & (count >= constant(x, _LARGE))
    above = pt.switch(is_large, order_above(count, a), zero)
    far, far_second = ifelse(
        pt.any(is_far | is_large),
        list(expansions(order + above, a, by_hankel, by_debye | is_large)),
        [order, order],
    )
    of_order, first, first_of_next = first_kind(m, near_count, near_x, power, is_large, above, far)
    # Half of a subnormal number may be zero.
    is_tiny = order < constant(x, 1e-300)
    quotient = pt.switch(is_tiny, one, double_sine / (constant(x, math.pi) * order))
    value = _by_series(order, a, power, is_negative, quotient)
    value = pt.switch(by_series, value, of_order)
    value = pt.switch(is_far, far, value)
    second = second_kind(m, pt.switch(is_upwards, count, zero), a, first, first_of_next)
    second = pt.switch(is_far, far_second, second)
    value = where_any(is_reflected, cosine * value - double_sine * second, value)

    is_odd = is_integer & ~is_even_count & pt.neq(v < zero, x < zero)
    value = pt.switch(is_odd, -value, value)
    return pt.switch((x < zero) & ~is_integer, nan, value)


def _power(
    v: TensorVariable,
    x: TensorVariable,
    m: TensorVariable,
    by_series: TensorVariable,
    is_negative: TensorVariable,
) -> TensorVariable:
    """Return the only power that each element takes, equal in every bit in all runtimes.

    With ``y = v + 1`` that is ``(e x / (2 y))**v`` for the power series, of negative orders the
    root of the reciprocal, and ``(x/2)**m`` for recurrences.
    """
    zero, one, half = (constant(x, n) for n in (0.0, 1.0, 0.5))
    of_series = pt.switch(is_negative, -(half * v), v)
    exponent = pt.switch(by_series, of_series, m)
    shift = pt.switch(by_series, of_series, zero)
    # Scaled by 2**100, since half of a subnormal argument may be zero.
    base = x * constant(x, 2.0**99) / pt.switch(by_series, v + one, one)
    bounded = pt.clip(base, constant(x, 1e-300), constant(x, 1e270))
    logarithm = log_of_normal_with_rest(bounded, constant(x, -100.0))
    value = exp(*exponent_with_rest(exponent, *logarithm, shift))
    # Powers of zero and infinity are equal in all runtimes.
    is_finite = (base > zero) & (base < constant(x, math.inf))
    return pt.switch(is_finite, value, pt.pow(base, exponent))


def _by_series(
    v: TensorVariable,
    x: TensorVariable,
    power: TensorVariable,
    is_negative: TensorVariable,
    quotient: TensorVariable,
) -> TensorVariable:
    """Power series (DLMF 10.2.2) for an order of size ``v``, and below 2 for a negative one.

    The gamma function of that is reflected; ``quotient`` is ``sin(pi v) / (pi v)``.
    """
    half, one = constant(x, 0.5), constant(x, 1.0)
    y = v + one
    total = bessel_series(pt.switch(is_negative, -v, v), -(half * x) * (half * x), _TERMS)
    gamma = pt.sqrt(y) * scaled_gamma(y) * constant(x, 1 / math.e)
    factor = pt.switch(is_negative, quotient * gamma * power, one / gamma)
    return total * power * factor
