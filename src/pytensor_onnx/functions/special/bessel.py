"""Bessel functions of the first and second kind."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import J0, J1, Jv
from pytensor.scan.utils import until
from pytensor.tensor.math import Max
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    in_float64,
    of_few,
    polynomial,
    polynomials,
    where_any,
    with_an_axis,
)
from pytensor_onnx.functions.special.bessel_coefficients import (
    J0_MODULUS_BOTTOM,
    J0_MODULUS_TOP,
    J0_NEAR_ROOT,
    J0_PHASE_BOTTOM,
    J0_PHASE_TOP,
    J0_SMALL,
    J1_MODULUS_BOTTOM,
    J1_MODULUS_TOP,
    J1_NEAR_ROOT,
    J1_PHASE_BOTTOM,
    J1_PHASE_TOP,
    J1_SMALL,
    LONG_SINE,
)
from pytensor_onnx.functions.special.exponential import (
    exp,
    exponent_with_rest,
    log_of_normal_with_rest,
)
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.modified_bessel import (
    bessel_series,
    debye_sums,
    decay,
    temme_coefficients,
)
from pytensor_onnx.functions.special.psi import is_even, sine_pi
from pytensor_onnx.functions.special.trigonometric import (
    HALF_PI,
    arctan,
    in_quadrant,
    quarter_turns,
    sine_and_cosine,
    subtract_many_turns,
)

# The first roots, as rounded, and the rest of each.
_ROOT_0 = 2.404825557695773, -1.176691651530894e-16
_ROOT_1 = 3.8317059702075125, -1.5269184090088067e-16
# The last arguments from which quarter turns are subtracted exactly, in one way and another.
_LIMIT, _FAR_LIMIT = 2.0**19, 2.0**39
_INVERSE_ROOT_PI = 0.5641895835477563
# Polynomials of one length: numerators and denominators of modulus and phase in the inverse square,
# one around zero in the square, and even and odd powers around the first root in the square of the
# distance from it.
_J0_TABLES = (J0_MODULUS_TOP, J0_PHASE_TOP, J0_MODULUS_BOTTOM, J0_PHASE_BOTTOM, J0_SMALL)
_J1_TABLES = (J1_MODULUS_TOP, J1_PHASE_TOP, J1_MODULUS_BOTTOM, J1_PHASE_BOTTOM, J1_SMALL)
_J0_ROWS = [table["float64"] for table in _J0_TABLES]
_J0_ROWS += [J0_NEAR_ROOT["float64"][parity::2] for parity in (0, 1)]
_J1_ROWS = [table["float64"] for table in _J1_TABLES]
_J1_ROWS += [J1_NEAR_ROOT["float64"][parity::2] for parity in (0, 1)]


@define(J0)
@in_float64
@with_an_axis
def j0(x: TensorVariable) -> TensorVariable:
    """Compute the Bessel function of the first kind of order 0; NaN at infinity, as in SciPy.

    Notes
    -----
    A polynomial in ``x**2`` up to 1.5, one around the first root up to 4, and beyond
    ``M(x) cos(x - pi/4 + phi(x))`` with slowly varying functions ``M`` and ``phi`` (DLMF 10.18).
    The error is small beside ``M``, next to roots too. Computed in float64 also for float32.
    """
    a = pt.abs(x)
    small, near, modulus, phase = _parts(a, _ROOT_0, _J0_ROWS)
    far = modulus * _shifted_sine(a, phase, 1)
    near = pt.switch(a > constant(a, 1.5), near, constant(a, 1.0) + small)
    return pt.switch(a > constant(a, 4.0), far, near)


@define(J1)
@in_float64
@with_an_axis
def j1(x: TensorVariable) -> TensorVariable:
    """Bessel function of the first kind of order 1, computed as `j0`."""
    a = pt.abs(x)
    small, near, modulus, phase = _parts(a, _ROOT_1, _J1_ROWS)
    far = modulus * _shifted_sine(a, phase, -1)
    small = (constant(a, 1.0) + small) * (x * constant(x, 0.5))
    large = pt.sign(x) * pt.switch(a > constant(a, 5.0), far, near)
    return pt.switch(a > constant(a, 2.0), large, small)


def _parts(
    a: TensorVariable, root: tuple[float, float], rows: Sequence[Sequence[float]]
) -> list[TensorVariable]:
    """Return the excess around zero, the values around the first root, modulus and phase."""
    half = a * constant(a, 0.5)
    square = half * half
    distance = (a - constant(a, root[0])) - constant(a, root[1])
    reciprocal = constant(a, 1.0) / a
    t, distance_square = reciprocal * reciprocal, distance * distance
    points = [t, t, t, t, square, distance_square, distance_square]
    excess, phase, below, below_phase, small, even, odd = polynomials(points, rows)
    near = distance * (even + distance * odd)
    modulus = (constant(a, _INVERSE_ROOT_PI) + t * (excess / below)) / pt.sqrt(half)
    return [square * small, near, modulus, phase / (below_phase * a)]


def _shifted_sine(a: TensorVariable, phase: TensorVariable, quarters: float) -> TensorVariable:
    """Sine of ``a + phase + quarters * pi/4`` for a small phase, and an odd number of quarters.

    Half turns are subtracted in parts, multiples of the parts of pi/2; the last part joins the
    phase. Arguments that are too large for that are seldom; beyond the second limit
    `quarter_turns` answers, with errors small beside one.
    """
    half = constant(a, 0.5 * quarters)
    count = pt.round((a + phase) * constant(a, 1 / math.pi) + half * constant(a, 0.5))
    turns = count + count - half
    first, second, third = (constant(a, part) for part in HALF_PI[:3])
    # Next to a root, where the sum vanishes, it is exact.
    near = _sine_of_rest((a - turns * first) - turns * second, phase - turns * third, count)
    r, rest = subtract_many_turns(a, turns)
    far = _sine_of_rest(r, phase + rest, count)
    [far] = of_few(
        a > constant(a, _FAR_LIMIT),
        lambda _, a, phase: [_sine_of_large(a, phase, quarters)],
        [far],
        [a, phase],
    )
    return where_any(a > constant(a, _LIMIT), far, near)


def _sine_of_large(a: TensorVariable, phase: TensorVariable, quarters: float) -> TensorVariable:
    coarse, fine = quarter_turns(a)
    half = constant(a, 0.5)
    turns = coarse + constant(a, 0.5 * quarters)
    count = pt.round(turns * half)
    r = ((turns - (count + count)) + fine) * constant(a, math.pi / 2)
    return _sine_of_rest(r, phase, count)


def _sine_of_rest(r: TensorVariable, rest: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Sine of ``r + rest`` and a count of half turns, for a sum of at most pi/2."""
    r = r + rest
    square = r * r
    sine = r + r * (square * polynomial(square, LONG_SINE))
    pairs = count * constant(r, 0.5)
    return pt.switch(pt.eq(pairs, pt.floor(pairs)), sine, -sine)


# With so many terms Debye's expansions are exact to 1e-16 where `is_debye` holds, and Hankel's to
# 6e-17 from this argument on.
_DEBYE_TERMS, _HANKEL_TERMS, _HANKEL = 11, 29, 21.0
# Arguments from which quarter turns are subtracted first, where Debye's expansions end, as squares
# of arguments must be finite, and where Hankel's end, as six times an argument must be less than
# the square of the largest order of `jv`.
_FAR, _FARTHEST, _LAST = 2.0**39, 1e150, 1e300
# The largest quotient of the square of the order by an argument beyond `_FAR`, where phases are
# small.
_MOST = 100.0


def is_hankel(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Tell where Hankel's expansion serves, whose terms are at most 4.5."""
    is_large = (x >= constant(x, _HANKEL)) & (x < constant(x, _LAST))
    return is_large & (v * v <= constant(x, 6.0) * x)


def is_debye(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Tell where the first term that is left out is negligible, for ``v >= 0`` and ``x >= 0``.

    The k-th term is about ``gamma(k) / (2 pi (2 F)**k)``, where ``F`` is the phase or the exponent.
    That is about 50 or more here: with ``w**2 = |v**2 - x**2|`` at least ``5 w**3 / (15 v**2 +
    9 w**2)`` where the functions oscillate, and ``w**3 / (3 v**2)`` elsewhere.
    """
    w = distance(v, x)
    ratio = v / w
    is_small = (x < constant(x, _FARTHEST)) & (v * v < constant(x, _MOST) * x)
    is_exact = w - constant(w, 60.0) > constant(w, 150.0) * ratio * ratio
    return is_exact & (is_small | (x < constant(x, _FAR)))


def distance(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return the root of ``|v**2 - x**2|``."""
    return pt.sqrt(pt.abs((v - x) * (v + x)))


def expansions(
    v: TensorVariable, x: TensorVariable, by_hankel: TensorVariable, by_debye: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Bessel functions of the first and the second kind, by Hankel's or else Debye's expansion.

    That is DLMF 10.17.3-4, or 10.19.3-6.
    """
    one, half = constant(x, 1.0), constant(x, 0.5)
    z = one / ((v - x) * (v + x))
    w = pt.sqrt(pt.abs(one / z))
    even, odd = debye_sums(v * v * z, z, _DEBYE_TERMS)
    sums = zip(_hankel_sums(v, x), (even, odd / w), strict=True)
    even, odd = (pt.switch(by_hankel, of, other) for of, other in sums)
    amplitude = pt.sqrt(constant(x, 2 / math.pi) / pt.switch(by_hankel, x, w))

    sine, cosine = _waves(v, x, w, by_hankel)
    is_oscillating = x > v
    root = where_any(by_debye & ~is_oscillating, decay(v, x, w).root, w)
    small = half * amplitude * (even + odd) * root * root
    large = amplitude * (odd - even) / root / root
    first = pt.switch(is_oscillating, amplitude * (cosine * even + sine * odd), small)
    return first, pt.switch(is_oscillating, amplitude * (sine * even - cosine * odd), large)


def _hankel_sums(v: TensorVariable, x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Real and imaginary part of ``1 + i t(1) (1 + i t(2) (1 + ...))`` (DLMF 10.17.1).

    Here ``t(k) = ((2 k - 1)**2 - 4 v**2) / (8 k x)``.
    """

    def step(
        first: TensorVariable,
        second: TensorVariable,
        real: TensorVariable,
        imaginary: TensorVariable,
        square: TensorVariable,
        reciprocal: TensorVariable,
    ) -> list[TensorVariable]:
        t = (first - second * square) * reciprocal
        return [constant(t, 1.0) - t * imaginary, t * real]

    k = np.arange(_HANKEL_TERMS - 1, 0, -1.0)
    sequences = [pt.constant((2 * k - 1) ** 2 / (8 * k)), pt.constant(0.5 / k)]
    start = [pt.ones_like(x), pt.zeros_like(x)]
    real, imaginary = iterate(
        step, start, [v * v, constant(x, 1.0) / x], sequences=sequences, n_steps=len(k)
    )
    return real, imaginary


def _waves(
    v: TensorVariable, x: TensorVariable, w: TensorVariable, by_hankel: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Sine and cosine of ``x + v (2 arctan(s) - s) - pi/2 (v + 1/2)`` for ``s = v / (x + w)``.

    That is ``w - v arccos(v / x) - pi/4``, without the cancellation of large numbers. Hankel's
    expansion is without the second term.
    """
    half, turn = constant(x, 0.5), constant(x, math.pi / 2)
    s = pt.minimum(v / (x + w), constant(x, 1.0))
    angle = arctan(s)
    moved = pt.switch(by_hankel, constant(x, 0.0), v * (angle + angle - s))
    quarters = pt.round(v)
    phase = moved - turn * (v - quarters)
    x, quarters = of_few(x >= constant(x, _FAR), _subtract_quarters, [x, quarters], [])
    turns = pt.round((x + phase) * constant(x, 2 / math.pi) - half)
    r, rest = subtract_many_turns(x, turns + half)
    sine, cosine = sine_and_cosine(r + phase, rest)
    turns = turns - quarters
    one = constant(x, 1.0)
    return in_quadrant(turns, sine, cosine), in_quadrant(turns + one, sine, cosine)


def _subtract_quarters(x: TensorVariable, quarters: TensorVariable) -> list[TensorVariable]:
    """Subtract the nearest number of quarter turns from both, and whole turns."""
    coarse, fine = quarter_turns(x)
    turns, four = pt.round(coarse), constant(x, 4.0)
    # Numbers of quarters from 2**53 on would swallow the turns.
    quarters = quarters - four * pt.floor(quarters / four)
    return [((coarse - turns) + fine) * constant(x, math.pi / 2), quarters - turns]


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


# Bessel functions of the first kind of any real order.
#
# The power series serves where its terms hardly cancel, Debye's expansions where order or argument
# are large and not nearly equal, and recurrences over the order elsewhere.

# Terms of the power series, enough for x**2 / 4 <= 2 (v + 1).
_TERMS_OF_ORDER = 24
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
    total = bessel_series(pt.switch(is_negative, -v, v), -(half * x) * (half * x), _TERMS_OF_ORDER)
    gamma = pt.sqrt(y) * scaled_gamma(y) * constant(x, 1 / math.e)
    factor = pt.switch(is_negative, quotient * gamma * power, one / gamma)
    return total * power * factor
