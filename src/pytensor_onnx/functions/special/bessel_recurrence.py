"""Bessel functions of any order by recurrences over the order, for moderate arguments."""

import math
from typing import NamedTuple

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


class _Orders(NamedTuple):
    """Orders of the recurrence of `first_kind`, in pairs.

    Attributes
    ----------
    is_odd, pair
        The place of the wanted order in its pair, and the number of the pair.
    pairs
        Number of pairs, where the recurrence starts.
    coarse, rest
        The lowest order, as a part with few digits, and the rest divided by ``middle``.
    middle
        Half of the argument.
    """

    is_odd: TensorVariable
    pair: TensorVariable
    pairs: TensorVariable
    coarse: TensorVariable
    middle: TensorVariable
    rest: TensorVariable


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
        at: _Orders,
    ) -> tuple:
        one = constant(k, 1.0)
        lower = pt.switch(pt.eq(at.pairs, k), constant(k, _SMALLEST), lower)
        order = at.coarse + (k + k)
        odd = (order / at.middle + at.rest) * lower - upper
        even = ((order - one) / at.middle + at.rest) * odd - lower
        total = total * ((m + k) * (one / (k + one))) + order * lower
        found = pt.switch(pt.eq(at.pair, k), pt.switch(at.is_odd, odd, even), found)
        return (k - one, odd, even, total, found), until(k <= one)

    start, middle = pt.zeros_like(x), half * x
    reach = pt.switch(is_large, above, pairs + pairs)
    coarse = ((m + lowest) + reach) - reach
    left = (m + lowest) - coarse
    wanted = pt.switch(is_large, above, count)
    before = pt.floor(half * wanted)
    orders = _Orders(
        is_odd=before + before < wanted,
        pair=before + constant(x, 1.0),
        pairs=pairs,
        coarse=coarse,
        middle=middle,
        rest=pt.switch(is_large, zero, left / middle),
    )
    _, odd, even, total, found = iterate(
        step,
        [last, start, start, start, start],
        [m, orders],
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


class _Complex(NamedTuple):
    """A complex number."""

    real: TensorVariable
    imag: TensorVariable


def _steed(m: TensorVariable, x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Real and imaginary part of ``H'(x) / H(x)`` for the first Hankel function, ``x >= 2``.

    That is ``i - 1/(2x) + i a(1) / (x t)`` with the continued fraction ``t = 2(x+i) + a(2) /
    (2(x+2i) + a(3) / ...`` and ``a(k) = (k - 1/2)**2 - m**2``, by Lentz's method.
    """
    one, two, quarter = (constant(x, n) for n in (1.0, 2.0, 0.25))

    def step(
        b: TensorVariable,
        a: TensorVariable,
        c: _Complex,
        d: _Complex,
        t: _Complex,
        change: TensorVariable,
        real: TensorVariable,
    ) -> tuple:
        one = constant(a, 1.0)
        size = a / (c.real * c.real + c.imag * c.imag)
        c = _Complex(real + size * c.real, b - size * c.imag)
        d = _Complex(real + a * d.real, b + a * d.imag)
        size = one / (d.real * d.real + d.imag * d.imag)
        d = _Complex(d.real * size, -(d.imag * size))
        u = c.real * d.real - c.imag * d.imag
        v = c.real * d.imag + c.imag * d.real
        t = _Complex(t.real * u - t.imag * v, t.real * v + t.imag * u)
        change = pt.abs(u - one) + pt.abs(v)
        after = (b + constant(a, 2.0), a + b, c, d, t, change)
        return after, until(pt.all(change <= constant(a, 8 * _PRECISION)))

    zero, square = pt.zeros_like(x), m * m
    start = _Complex(x + x, zero + two)
    parts = [start, _Complex(zero, zero), start]
    first = [constant(x, 4.0), constant(x, 2.25) - square, *parts, zero]
    *_, t, change = iterate(step, first, [start.real], n_steps=_TERMS)
    size = (quarter - square) / (x * (t.real * t.real + t.imag * t.imag))
    size = pt.switch(change <= constant(x, 64 * _PRECISION), size, constant(x, math.nan))
    return size * t.imag - constant(x, 0.5) / x, one + size * t.real


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
