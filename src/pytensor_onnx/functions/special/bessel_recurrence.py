"""Bessel functions of any order by recurrences over the order, for moderate arguments."""

import math

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.math import Max
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.temme import temme_coefficients

# Orders, and terms of the continued fraction, after which NaN stands for the result.
_ORDERS, _TERMS = 10_000, 200
_PRECISION = 2.0**-53
_SMALLEST, _LARGEST = 1e-290, 1.79e308


def order_above(count: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return how far above a large order functions are tiny and `is_debye` holds: an even number.

    The exponent of the decay is about 58 or more there.
    """
    half, highest = constant(x, 0.5), pt.maximum(count, x)
    pairs = pt.ceil(half * ((highest - count) + constant(x, 11.0) * _root(highest)))
    return pairs + pairs


def _root(x: TensorVariable) -> TensorVariable:
    """``x**(3/8)``. A cube root would do, but roots of squares are equal in all runtimes."""
    return pt.sqrt(pt.sqrt(x * pt.sqrt(x)))


def first_kind(
    m: TensorVariable,
    count: TensorVariable,
    x: TensorVariable,
    power: TensorVariable,
    is_large: TensorVariable,
    above: TensorVariable,
    of_above: TensorVariable,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Bessel functions of the first kind of the orders ``m + count``, ``m`` and ``m + 1``.

    Notes
    -----
    J. C. P. Miller's algorithm: the recurrence is stable downwards, from an order where the
    function is negligible. Its scale follows from ``(x/2)**m = sum_k (m + 2k) gamma(m + k) / k!
    J_{m+2k}(x)`` (DLMF 10.23.15). All elements share the index ``k``; each starts at its own. For
    large orders the recurrence ends at ``m + count``, and the scale follows from a higher order.

    Parameters
    ----------
    m
        Fraction of the order, at most one half in size.
    count
        Integer part of the order, so small that `is_debye` does not hold.
    x
        Arguments from 2 on; elements with other ones are NaN.
    power
        ``(x/2)**m``.
    is_large
        Whether the order is large. Then the second and third result are of other orders.
    above, of_above
        The `order_above` a large order, and the function of the sum of both.
    """
    zero, two, half = (constant(x, n) for n in (0.0, 2.0, 0.5))
    lowest = pt.switch(is_large, count, zero)
    highest = pt.maximum(count, x)
    width = pt.switch(is_large, constant(x, 15.0), constant(x, 8.5))
    highest = (highest - lowest) + (constant(x, 13.5) + width * _root(highest))
    is_here = (x >= two) & (highest < constant(x, _ORDERS))
    pairs = pt.switch(is_here, pt.ceil(half * highest), zero)
    # Of integers the maximum is one operator.
    last = Max(axis=None, initial=True)(pairs.astype("int32")).astype(x.dtype)

    # The sum, by Horner's rule, and orders without rounding errors, which would be equal in many
    # steps: the integer joins a part of ``m`` that has as few digits as the highest order.
    def step(
        k: TensorVariable,
        upper: TensorVariable,
        lower: TensorVariable,
        total: TensorVariable,
        found: TensorVariable,
        m: TensorVariable,
        is_odd: TensorVariable,
        pair: TensorVariable,
        pairs: TensorVariable,
        coarse: TensorVariable,
        middle: TensorVariable,
        rest: TensorVariable,
    ) -> tuple:
        one = constant(k, 1.0)
        lower = pt.switch(pt.eq(pairs, k), constant(k, _SMALLEST), lower)
        order = coarse + (k + k)
        odd = (order / middle + rest) * lower - upper
        even = ((order - one) / middle + rest) * odd - lower
        total = total * ((m + k) * (one / (k + one))) + order * lower
        found = pt.switch(pt.eq(pair, k), pt.switch(is_odd, odd, even), found)
        return (k - one, odd, even, total, found), until(k <= one)

    start, middle = pt.zeros_like(x), half * x
    reach = pt.switch(is_large, above, pairs + pairs)
    coarse = ((m + lowest) + reach) - reach
    left = (m + lowest) - coarse
    wanted = pt.switch(is_large, above, count)
    before = pt.floor(half * wanted)
    parts = [coarse, middle, pt.switch(is_large, zero, left / middle)]
    _, odd, even, total, found = iterate(
        step,
        [last, start, start, start, start],
        [m, before + before < wanted, before + constant(x, 1.0), pairs, *parts],
        n_steps=_ORDERS // 2,
    )
    difference, mean = temme_coefficients(m)
    scale = power * (mean - m * difference) / (even + total)
    scale = pt.switch(is_large, of_above / found, scale)
    scale = pt.switch(is_here, scale, constant(x, math.nan))
    # Of large orders the function is almost linear in so small a part.
    large = even + left * (odd - even)
    return pt.switch(is_large, large, found) * scale, even * scale, odd * scale


def second_kind(
    m: TensorVariable,
    count: TensorVariable,
    x: TensorVariable,
    first: TensorVariable,
    first_of_next: TensorVariable,
) -> TensorVariable:
    """Bessel function of the second kind of order ``m + count``, from the first kind's for ``m``.

    Steed's continued fraction serves for ``H'/H``, for arguments from 2 on (W. H. Press et al.,
    Numerical Recipes, section 6.6); the recurrence is stable upwards.
    """
    p, q = _steed(m, pt.maximum(x, constant(x, 2.0)))
    ratio = m / x
    value = (first_of_next + (p - ratio) * first) / q
    return _upwards(m, count, x, value, (ratio - p) * value - q * first)


def _steed(m: TensorVariable, x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Real and imaginary part of ``H'(x) / H(x)`` for the first Hankel function, ``x >= 2``.

    That is ``i - 1/(2x) + i a(1) / (x t)`` with the continued fraction ``t = 2(x+i) + a(2) /
    (2(x+2i) + a(3) / ...`` and ``a(k) = (k - 1/2)**2 - m**2``, by Lentz's method.
    """
    one, two, quarter = (constant(x, n) for n in (1.0, 2.0, 0.25))

    def step(
        b: TensorVariable,
        a: TensorVariable,
        c_real: TensorVariable,
        c_imag: TensorVariable,
        d_real: TensorVariable,
        d_imag: TensorVariable,
        t_real: TensorVariable,
        t_imag: TensorVariable,
        change: TensorVariable,
        real: TensorVariable,
    ) -> tuple:
        one = constant(a, 1.0)
        size = a / (c_real * c_real + c_imag * c_imag)
        c_real, c_imag = real + size * c_real, b - size * c_imag
        d_real, d_imag = real + a * d_real, b + a * d_imag
        size = one / (d_real * d_real + d_imag * d_imag)
        d_real, d_imag = d_real * size, -(d_imag * size)
        u = c_real * d_real - c_imag * d_imag
        v = c_real * d_imag + c_imag * d_real
        t_real, t_imag = t_real * u - t_imag * v, t_real * v + t_imag * u
        change = pt.abs(u - one) + pt.abs(v)
        after = (b + constant(a, 2.0), a + b, c_real, c_imag, d_real, d_imag, t_real, t_imag)
        return (*after, change), until(pt.all(change <= constant(a, 8 * _PRECISION)))

    real, zero = x + x, pt.zeros_like(x)
    imag, square = zero + two, m * m
    first = [constant(x, 4.0), constant(x, 2.25) - square, real, imag, zero, zero, real, imag, zero]
    *_, t_real, t_imag, change = iterate(step, first, [real], n_steps=_TERMS)
    size = (quarter - square) / (x * (t_real * t_real + t_imag * t_imag))
    size = pt.switch(change <= constant(x, 64 * _PRECISION), size, constant(x, math.nan))
    return size * t_imag - constant(x, 0.5) / x, one + size * t_real


def _upwards(
    m: TensorVariable,
    count: TensorVariable,
    x: TensorVariable,
    lower: TensorVariable,
    upper: TensorVariable,
) -> TensorVariable:
    """Go on from the orders ``m`` and ``m + 1`` to ``m + count``; minus infinity on overflow."""
    is_here = count < constant(x, _ORDERS)
    count = pt.switch(is_here, count, constant(x, 0.0))

    def step(
        k: TensorVariable,
        lower: TensorVariable,
        upper: TensorVariable,
        m: TensorVariable,
        count: TensorVariable,
        half: TensorVariable,
    ) -> tuple:
        higher = pt.maximum(((m + k) / half) * upper - lower, constant(upper, -_LARGEST))
        is_before = k <= count
        lower, upper = pt.switch(is_before, upper, lower), pt.switch(is_before, higher, upper)
        return (k + constant(k, 1.0), lower, upper), until(pt.all(k >= count))

    start = [constant(x, 1.0), lower, upper]
    _, value, _ = iterate(step, start, [m, count, constant(x, 0.5) * x], n_steps=_ORDERS)
    value = pt.switch(value > constant(x, -_LARGEST), value, constant(x, -math.inf))
    return pt.switch(is_here & ~pt.isnan(value), value, constant(x, math.nan))
