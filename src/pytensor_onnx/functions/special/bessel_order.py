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
from pytensor_onnx.functions.special.bessel_recurrence import first_kind, second_kind
from pytensor_onnx.functions.special.bessel_series import bessel_series
from pytensor_onnx.functions.special.debye import debye, is_debye
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.reflection import is_even, sine_pi

# Terms of the power series, enough for x**2 / 4 <= 2 (v + 1).
_TERMS = 24


@define(Jv)
@in_float64
def jv(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Compute the Bessel function of the first kind, in float64 for float32 too.

    Notes
    -----
    Integer orders are reflected by ``J(-v) = (-1)**v J(v)``, other ones by ``J(-v) = cos(pi v) J(v)
    - sin(pi v) Y(v)`` (DLMF 10.2.3). Negative arguments are NaN for orders that are no integers,
    as in SciPy. So are arguments beyond 1e150, or ``2**39`` where the square of the order is more
    than 100 times as large, and orders beyond about 9,000 that are nearly equal to the argument.
    """
    zero, half, one, nan = (constant(x, n) for n in (0.0, 0.5, 1.0, math.nan))
    order, a = pt.abs(v), pt.abs(x)
    count = pt.round(order)
    m = order - count
    is_integer = pt.eq(m, zero)
    by_series = a * a <= constant(x, 8.0) * (order + one)
    # Beyond this the square of the order would overflow, and results are zero anyway.
    far_order = pt.minimum(order, constant(x, 1e154))
    is_far = is_debye(far_order, a)
    is_near = ~(by_series | is_far) & ~pt.isnan(order)

    # Elements of the recurrence for their value, or for the function of the second kind.
    by_second = (v < zero) & ~is_integer & ~pt.isinf(v)
    near_x = pt.switch(is_near | (by_second & ~is_far), a, zero)
    of_order, first, first_of_next = first_kind(m, pt.switch(is_near, count, zero), near_x)
    value = pt.switch(by_series, _by_series(order, a), of_order)
    far, far_second = ifelse(pt.any(is_far), list(debye(far_order, a)), [value, value])
    value = pt.switch(is_far, far, value)

    # The sine of pi m / 2, and the sine and the cosine of pi m.
    sine = constant(x, math.pi) * sine_pi(m * half)
    double_sine = (sine + sine) * pt.sqrt(one - sine * sine)
    cosine = one - (sine + sine) * sine
    second = second_kind(m, count, a, first, first_of_next, sine)
    second = pt.switch(is_far, far_second, second)
    second = pt.switch(pt.eq(a, zero), constant(x, -math.inf), second)
    is_even_count = is_even(count)
    reflected = cosine * value - double_sine * second
    reflected = pt.switch(is_even_count, reflected, -reflected)
    value = where_any(by_second, reflected, value)

    is_odd = is_integer & ~is_even_count & pt.neq(v < zero, x < zero)
    value = pt.switch(is_odd, -value, value)
    return pt.switch((x < zero) & ~is_integer, nan, value)


def _by_series(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Power series (DLMF 10.2.2), after a factor of which no part overflows."""
    half, one = constant(x, 0.5), constant(x, 1.0)
    y = v + one
    z = -(half * x) * (half * x)
    total = bessel_series(v, z, _TERMS)
    power = pt.pow(x * constant(x, math.e / 2) / y, v)
    return total * (power * constant(x, math.e)) / (pt.sqrt(y) * scaled_gamma(y))
