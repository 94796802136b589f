"""Gauss's hypergeometric function: series, connection formula and differential equation.

Polynomials are computed by themselves (`hypergeometric_polynomial`). The expansion around one
serves next to one and far below zero (`hypergeometric_connection`). Elsewhere, and where a
difference of parameters is an integer or nearly so, the differential equation is followed from zero
to the argument (`hypergeometric_equation`). Where terms of both signs cancel for negative `c`, and
next to roots of polynomials, sums in twice the precision serve (`hypergeometric_sums`).
"""

import math
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.math import Hyp2F1
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    in_float64,
    of_few,
    rows_of,
    split_rows,
)
from pytensor_onnx.functions.special.exponential import (
    expm1,
    log_of_normal_with_rest,
    power_of_logarithm,
    product_with_rest,
)
from pytensor_onnx.functions.special.gamma import gamma_plus_one

_CONNECTED_TERMS, _CONNECTED_ROUNDS = 2, 200
# The sizes of parameters add up to less.
_CONNECTED_STEPS = 202
_PRECISION_OF_CONNECTION = 2.0**-56


class Rounded(NamedTuple):
    """Rounded numbers, and the exact ones less these."""

    value: TensorVariable
    error: TensorVariable


def by_expansion_around_one(
    a: Rounded,
    b: Rounded,
    c: TensorVariable,
    d: TensorVariable,
    w: TensorVariable,
    power: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``F(a, b; c; 1 - w)`` for ``w <= 1/2`` and the factor by which its terms cancel.

    The parts are ``F(a, b; 1 - d; w)`` and ``w**d F(c - a, c - b; 1 + d; w)`` with factors of gamma
    functions (DLMF 15.8.4, and 15.4.20 for ``w = 0``).

    Parameters
    ----------
    a, b
        Parameters in a first row, and ``c - a`` and ``c - b`` in a second one.
    c, d, w, power
        Matrices of one row. ``d = c - a - b`` is positive and no integer unless ``w`` is zero, and
        ``power = w**d``.
    """
    zero = constant(w, 0.0)
    is_inside, none = w > zero, pt.zeros_like(w)
    minus_d = -pt.switch(is_inside, d, constant(d, 0.5))
    arguments = pt.concatenate([c, minus_d, d, a.value, b.value])
    gammas = _gammas(arguments, pt.concatenate([none, none, none, a.error, b.error]))
    whole, top, of_a, of_b = pt.split(gammas, [1, 2, 2, 2], n_splits=4, axis=0)
    other, factor = rows_of((whole / of_a) * (top / of_b), 2)
    other = pt.switch(is_inside, other * power, zero)
    totals, sizes = _series(a.value, b.value, pt.concatenate([minus_d, -minus_d]), w)
    factors = pt.concatenate([factor, other])
    value = pt.add(*rows_of(totals * factors, 2))
    size = pt.add(*rows_of(sizes * pt.abs(factors), 2))
    return value, size / pt.maximum(pt.abs(value), constant(value, 1e-300))


def _gammas(x: TensorVariable, error: TensorVariable) -> TensorVariable:
    """Gamma of ``x + error``, infinite at poles, by steps to between one and two (DLMF 5.5.1).

    The error is that of a rounding, which counts next to poles.
    """

    def step(
        k: TensorVariable,
        factor: TensorVariable,
        product: TensorVariable,
        direction: TensorVariable,
        count: TensorVariable,
        error: TensorVariable,
    ) -> tuple:
        one, is_before = constant(k, 1.0), k < count
        product = product * pt.switch(is_before, factor + error, one)
        return (k + one, factor + direction, product), until(~pt.any(is_before))

    zero, one, two = (constant(x, n) for n in (0.0, 1.0, 2.0))
    is_below = x < one
    direction = pt.switch(is_below, one, -one)
    count = pt.ceil(pt.maximum(pt.switch(is_below, one - x, x - two), zero))
    first = pt.switch(is_below, x, x - one)
    _, _, product = iterate(
        step, [zero, first, pt.ones_like(x)], [direction, count, error], n_steps=_CONNECTED_STEPS
    )
    value = gamma_plus_one((x + direction * count) - one)
    return pt.switch(is_below, value / product, value * product)


class _Sums(NamedTuple):
    """The last term of a series, the sum of the terms and that of their sizes."""

    term: TensorVariable
    total: TensorVariable
    size: TensorVariable


def _series(
    a: TensorVariable, b: TensorVariable, d: TensorVariable, w: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Power series of ``F(a, b; 1 + d; w)``, and the series of the sizes of its terms.

    The number of a term is added to ``d`` at once, which is exact where both nearly cancel.
    """

    def step(
        k: TensorVariable,
        sums: _Sums,
        a: TensorVariable,
        b: TensorVariable,
        d: TensorVariable,
        w: TensorVariable,
    ) -> tuple:
        term, total, size = sums
        for _ in range(_CONNECTED_TERMS):
            following = k + constant(k, 1.0)
            term = term * ((a + k) * (b + k) / ((d + following) * following) * w)
            k, total, size = following, total + term, size + pt.abs(term)
        is_done = ~pt.any(pt.abs(term) > constant(term, _PRECISION_OF_CONNECTION) * size)
        return (k, _Sums(term, total, size)), until(is_done)

    start = _Sums(*[pt.ones_like(a)] * 3)
    _, sums = iterate(step, [constant(w, 0.0), start], [a, b, d, w], n_steps=_CONNECTED_ROUNDS)
    # An infinite size, where the series has not converged, tells the caller that digits are lost.
    is_left = pt.abs(sums.term) > constant(sums.term, _PRECISION_OF_CONNECTION) * sums.size
    return sums.total, pt.switch(is_left, constant(w, math.inf), sums.size)


# Terms between tests of convergence, most tests in a series, and most series after the first one.
_TERMS, _ROUNDS, _STEPS = 2, 1200, 200
_PRECISION = 2.0**-56
# The binary logarithm of the distance from one up to which steps are made.
_NEXT_TO_ONE = -57
# Up to this product of both signs the power series of a negative `c` loses no digits.
_MIXED = 8.0


class Parameters(NamedTuple):
    """Parameters of the hypergeometric function."""

    a: TensorVariable
    b: TensorVariable
    c: TensorVariable


class Place(NamedTuple):
    """An argument ``z`` and ``w = 1 - z``."""

    z: TensorVariable
    w: TensorVariable


def follow_equation(
    of: Parameters,
    end: Place,
    logarithm: TensorVariable,
    d: TensorVariable,
    product: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return the function for ``0 <= z <= 1`` and the factor by which terms of its series cancel.

    The logarithm is that of ``w``, ``d`` is ``c - a - b``, and ``product`` is `largest_product`.

    The power series (DLMF 15.2.1) serves up to 0.65 or 0.9, up to one where it converges well
    there, and only as far as its terms do not grow where they have both signs. Then the value and
    its derivative are moved by Taylor series, of steps that are at most half the distance to the
    singularities and short beside the waves of the solution. Next to one the solution is
    ``p + q w**d``, with numbers ``p`` and ``q``.
    """
    c, z = of.c, end.z
    zero, half, one = (constant(z, n) for n in (0.0, 0.5, 1.0))
    is_negative = c < zero
    size = one + product
    positive = pt.maximum(c, one)
    has_waves = (product > positive) & ~is_negative
    reach = pt.switch(c > constant(c, 25.0), constant(z, 0.9), constant(z, 0.65))
    reach = pt.switch(d > constant(d, 8.0), one, reach)
    # For negative `c` another solution grows faster, and errors with it.
    is_mixed = (product > constant(z, _MIXED)) & (z > constant(z, LAST))
    reach = pt.switch(is_negative, pt.switch(is_mixed, half, constant(z, LAST)), reach)
    near = pt.minimum(half, positive / size)
    reach = pt.switch(has_waves, near, reach)
    z0 = pt.minimum(z, reach)
    value, slope, of_terms = _power_series(of, z0)
    loss = of_terms / pt.abs(value)
    # The squared length of a step along a wave, by the distances to both singularities.
    wave = pt.switch(has_waves, constant(z, 4.0) / size, constant(z, math.inf))

    # The few elements that go on.
    way = _Way(z0, end, logarithm, wave)
    [value] = of_few(z0 < z, _follow, [value], [slope, of, d, way])
    return value, loss


def largest_product(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return the largest ``-(a + k) (b + k)``, zero if it is negative for all integers ``k >= 0``.

    Where it is positive, terms of the power series have both signs.
    """
    zero, half, one = (constant(a, n) for n in (0.0, 0.5, 1.0))
    lower, upper = pt.minimum(-a, -b), pt.maximum(-a, -b)
    first = pt.maximum(zero, pt.floor(lower) + one)
    middle = pt.maximum(zero, half * (lower + upper))
    product = (middle - lower) * (upper - middle)
    return pt.switch(first < upper, product, zero)


class _Limits(NamedTuple):
    """Bounds of a step: its squared length along a wave, and its parts of the distances."""

    wave: TensorVariable
    near_zero: TensorVariable
    near_one: TensorVariable


class _Way(NamedTuple):
    """The way from ``z0`` to the end, whose ``w`` has this logarithm, along waves or not."""

    z0: TensorVariable
    end: Place
    logarithm: TensorVariable
    wave: TensorVariable


def _follow(
    value: TensorVariable, slope: TensorVariable, of: Parameters, d: TensorVariable, way: _Way
) -> list[TensorVariable]:
    """Move the value from ``z0`` to the end by Taylor series."""
    z0, (z, w), logarithm, wave = way
    zero, one, eight, last = (constant(z, n) for n in (0.0, 1.0, 8.0, 2.0**_NEXT_TO_ONE))
    start, end = Place(z0, one - z0), Place(z, pt.maximum(w, last))
    # Steps shorten where the other solution falls steeply: its terms would cancel.
    limits = _Limits(
        wave,
        near_zero=eight / (eight + pt.maximum(of.c, eight)),
        near_one=eight / (eight + pt.maximum(d, eight)),
    )

    def step(
        value: TensorVariable,
        slope: TensorVariable,
        at: Place,
        of: Parameters,
        end: Place,
        limits: _Limits,
    ) -> tuple:
        h = pt.minimum(at.z * limits.near_zero, at.w * limits.near_one)
        h = pt.minimum(h, pt.sqrt(at.z * at.w * limits.wave))
        left = _distance(at, end)
        is_moving = left > constant(left, 0.0)
        is_last = is_moving & (left <= h)
        h = pt.switch(is_moving, pt.minimum(h, left), constant(left, 0.0))
        moved, rise = _taylor_series(value, slope, of, at, h)
        value = pt.switch(is_moving, moved, value)
        slope = pt.switch(is_moving, rise / h, slope)
        at = Place(pt.switch(is_last, end.z, at.z + h), pt.switch(is_last, end.w, at.w - h))
        return (value, slope, at), until(~pt.any(is_moving))

    value, slope, at = iterate(step, [value, slope, start], [of, end, limits], n_steps=_STEPS)
    nan = constant(z, math.nan)
    value = pt.switch(_distance(at, end) > zero, nan, value)
    # Logarithm of the ratio of the distance from one to the last distance.
    logarithm = logarithm - constant(z, _NEXT_TO_ONE * math.log(2))
    logarithm = pt.switch(w > zero, logarithm, constant(z, -math.inf))
    is_zero = pt.eq(d, zero)
    growth = expm1(d * logarithm) / pt.switch(is_zero, one, d)
    jump = slope * last * pt.switch(is_zero, logarithm, growth)
    return [pt.switch(w < last, value - jump, value)]


def _distance(at: Place, end: Place) -> TensorVariable:
    """``end.z - at.z``, by the smaller distances from zero or one."""
    return pt.switch(at.z < constant(end.z, 0.5), end.z - at.z, at.w - end.w)


def _power_series(
    of: Parameters, z: TensorVariable
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return value and derivative by the series around zero, and the sum of sizes of its terms."""

    def step(
        k: TensorVariable,
        term: TensorVariable,
        total: TensorVariable,
        rise: TensorVariable,
        size: TensorVariable,
        of: Parameters,
        z: TensorVariable,
    ) -> tuple:
        one = constant(k, 1.0)
        for _ in range(_TERMS):
            # The term times its number.
            product = term * ((of.a + k) * (of.b + k) / (of.c + k) * z)
            k = k + one
            term = product / k
            total, rise, size = total + term, rise + product, size + pt.abs(term)
        # Next to a zero of the parameter below, terms grow again.
        is_left = _matters(k * term, total) | (k < -of.c)
        return (k, term, total, rise, size), until(~pt.any(is_left))

    start, zeros = pt.ones_like(z), pt.zeros_like(z)
    k, term, total, rise, size = iterate(
        step, [constant(z, 0.0), start, start, zeros, start], [of, z], n_steps=_ROUNDS
    )
    total = pt.switch(_matters(k * term, total), constant(z, math.nan), total)
    return total, rise / pt.switch(z > constant(z, 0.0), z, constant(z, 1.0)), size


class _Recurrence(NamedTuple):
    """Coefficients of the recurrence of the terms of a Taylor series."""

    a: TensorVariable
    b: TensorVariable
    factor: TensorVariable
    change: TensorVariable
    high: TensorVariable


def _taylor_series(
    value: TensorVariable,
    slope: TensorVariable,
    of: Parameters,
    at: Place,
    h: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Value at ``z + h`` and ``h`` times the derivative, from those at ``z``."""
    (a, b, c), (z, w) = of, at
    one = constant(z, 1.0)
    q = h / (z * w)

    def step(
        k: TensorVariable,
        before: TensorVariable,
        term: TensorVariable,
        total: TensorVariable,
        rise: TensorVariable,
        of: _Recurrence,
    ) -> tuple:
        one = constant(k, 1.0)
        for _ in range(_TERMS):
            # The term times its number.
            low = (k + of.a) * (k + of.b) * (of.factor * before)
            product = low / (k + one) - (k * of.change + of.high) * term
            k = k + one
            before, term = term, product / (k + one)
            total, rise = total + term, rise + product
        left = pt.abs(term) + pt.abs(before)
        return (k, before, term, total, rise), until(~pt.any(_matters(left, total, rise)))

    first = slope * h
    high = (c - (a + b + one) * z) * q
    _, before, term, total, rise = iterate(
        step,
        [constant(z, 0.0), value, first, value + first, first],
        [_Recurrence(a, b, h * q, (w - z) * q, high)],
        n_steps=_ROUNDS,
    )
    left = pt.abs(term) + pt.abs(before)
    nan = constant(z, math.nan)
    return pt.switch(_matters(left, total, rise), nan, total), rise


def _matters(term: TensorVariable, *sums: TensorVariable) -> TensorVariable:
    """Tell terms that are not negligible; NaN does not matter."""
    size = pt.abs(sums[0]) if len(sums) == 1 else pt.abs(sums[0]) + pt.abs(sums[1])
    return pt.abs(term) > constant(term, _PRECISION) * size


# Most terms of a series, and the last argument of one that does not end.
_SUMMED_TERMS, LAST = 2_000, 0.9
_PRECISION_OF_SUMS = 2.0**-60
# The most that terms may cancel, so that eleven digits are left, and of terms of one part fourteen.
_CANCELLATION, _CANCELLATION_OF_SINGLE = 1e19, 16.0


class _Series(NamedTuple):
    """Parameters and argument in two parts, and the number of a term that does not end a series."""

    a: TensorVariable
    b: TensorVariable
    b_rest: TensorVariable
    c: TensorVariable
    c_rest: TensorVariable
    z: TensorVariable
    z_rest: TensorVariable
    last: TensorVariable


class _Factors(NamedTuple):
    """The quotients ``(d + k) / (c + k)`` of the factor before the series of ``1 - z``."""

    d: TensorVariable
    d_rest: TensorVariable
    c: TensorVariable


class _Sum(NamedTuple):
    term: TensorVariable
    term_rest: TensorVariable
    total: TensorVariable
    total_rest: TensorVariable
    size: TensorVariable
    factor: TensorVariable


def by_sums(
    value: TensorVariable,
    exponent: TensorVariable,
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
    is_polynomial: TensorVariable,
) -> list[TensorVariable]:
    """Return a function and the exponent of ``1 - z`` in the factor before it, for one row.

    The series is that of ``z``, or that of ``z / (z - 1)`` (DLMF 15.8.1) for ``z < 0`` and for
    polynomials of positive ``c``, or for those with ``z >= 1`` that of ``1 - z`` (DLMF 15.8.7).
    Where terms cancel too much, the function is NaN for negative ``c``, and else remains as it is.
    """
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_negative, is_above = c < zero, z >= one
    turns = (is_polynomial & ~is_negative) | (~is_polynomial & (z < zero))
    turns, is_above = turns & ~is_above, turns & is_above
    d, d_rest = add_with_error(c, -b)
    rest, rest_error = add_with_error(one, -z)
    ratio = -z / rest
    product, error = product_with_rest(ratio, rest, rest_error)
    ratio_error = ((-z - product) - error) / rest
    other, other_rest = add_with_error(one + a, -d)
    series = _Series(
        a,
        pt.switch(turns, d, b),
        pt.switch(turns, d_rest, zero),
        pt.switch(is_above, other, c),
        pt.switch(is_above, other_rest - d_rest, zero),
        pt.switch(is_above, rest, pt.switch(turns, ratio, z)),
        pt.switch(is_above, rest_error, pt.switch(turns, ratio_error, zero)),
        pt.switch(is_polynomial, -a, -c),
    )
    ones, zeros = pt.ones_like(z), pt.zeros_like(z)
    start, factors = _Sum(ones, zeros, ones, zeros, ones, ones), _Factors(d, d_rest, c)
    _, found = iterate(_add_term, [zero, start], [series, factors], n_steps=_SUMMED_TERMS)
    # Terms beyond 1e300 have no second part. For positive c the function has another value.
    is_single = pt.isnan(found.total_rest) & is_negative
    total = found.total + pt.switch(is_single, zero, found.total_rest)
    most = pt.switch(is_single, constant(z, _CANCELLATION_OF_SINGLE), constant(z, _CANCELLATION))
    # A sum of zero is exact if it has both parts.
    is_exact = pt.eq(total, zero) & ~is_single
    is_known = (found.size / pt.abs(total) < most) | is_exact | pt.isinf(total)
    value = pt.switch(is_negative, constant(z, math.nan), value)
    total = pt.switch(is_above, total * found.factor, total)
    power = pt.switch(turns, -a, zero)
    return [pt.switch(is_known, total, value), pt.switch(is_known, power, exponent)]


def _add_term(k: TensorVariable, before: _Sum, series: _Series, factors: _Factors) -> tuple:
    """Multiply the term by ``(a + k) (b + k) z / ((c + k) (k + 1))``, and add it."""
    zero, following = constant(k, 0.0), k + constant(k, 1.0)
    shifted, errors = add_with_error(pt.concatenate([series.b, series.c, series.a]), k)
    lower, first = pt.split(shifted, [2, 1], n_splits=2, axis=0)
    lower_rest, first_rest = pt.split(errors, [2, 1], n_splits=2, axis=0)
    none = pt.zeros_like(first)
    # Both factors above, both below, and the term with the argument.
    left = pt.concatenate([lower, before.term])
    left_rest = pt.concatenate([lower_rest, before.term_rest])
    left_rest = left_rest + pt.concatenate([series.b_rest, series.c_rest, none])
    right = pt.concatenate([first, none + following, series.z])
    right_rest = pt.concatenate([first_rest, none, series.z_rest])
    product, rest = product_with_rest(left, right, right_rest)
    top, bottom, scaled = rows_of(product, 3)
    top_rest, bottom_rest, scaled_rest = rows_of(rest + left_rest * right, 3)
    product, rest = product_with_rest(scaled, top, top_rest)
    # After the last term the parameter below may vanish, and a power of the argument overflow.
    is_over = pt.eq(top, zero) | pt.eq(product, zero)
    product = pt.switch(is_over, zero, product)
    rest = pt.switch(is_over, zero, rest + scaled_rest * top)
    bottom = pt.switch(is_over, constant(k, 1.0), bottom)
    term = product / bottom
    back, error = product_with_rest(term, bottom, bottom_rest)
    term_rest = ((product - back) + (rest - error)) / bottom
    total, error = add_with_error(before.total, term)
    total_rest = before.total_rest + (error + term_rest)
    is_before = k < series.last
    change = ((factors.d + k) + factors.d_rest) / (factors.c + k)
    factor = before.factor * pt.switch(is_before, change, constant(k, 1.0))
    after = _Sum(term, term_rest, total, total_rest, before.size + pt.abs(term), factor)
    # Next to a zero of the parameter below, terms grow again.
    is_left = (pt.abs(term) > constant(k, _PRECISION_OF_SUMS) * pt.abs(total)) | is_before
    return (following, after), until(~pt.any(is_left))


# Beyond them terms cancel so much that the result has too few digits.
_NEGATIVE, _PRODUCT = 5.0, 2500.0
# Where the expansion around one serves, up to a size of parameters and from a distance of their
# difference to integers on, unless terms cancel by more than a factor. For negative `c` the
# series in twice the precision loses less, where it converges, and steps along the equation more.
_FAR, _NEAR, _MODEST, _BETWEEN = -1.0, 0.5, 200.0, 2.0**-30
_NEXT, _LOSS, _FAR_LOSS = 1 / 128, 50.0, 1000.0


@define(Hyp2F1)
@in_float64
def hyp2f1(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> TensorVariable:
    """Compute the Gaussian hypergeometric function, in float64 for float32 too.

    Notes
    -----
    Infinite, as in SciPy, for ``z > 1`` and where ``c`` is a pole, unless the series ends before.
    Pfaff's and Euler's transformations (DLMF 15.8.1) lead to ``0 <= z <= 1``, and where possible
    to terms of one sign. NaN where many digits would cancel: for parameters beyond about 20, or 5
    for ``z < -9``, if ``c`` is negative, and where terms have both signs and parameters are beyond
    about 50, unless the function is a polynomial; and for polynomials of degrees of 1,000 and more.
    """
    zero, one, nan = (constant(z, n) for n in (0.0, 1.0, math.nan))
    is_first, is_second = _is_pole(a), _is_pole(b)
    is_polynomial = is_first | is_second
    swaps = is_second & ~(is_first & (a > b))
    a, b = pt.switch(swaps, b, a), pt.switch(swaps, a, b)
    is_pole, is_above = _is_pole(c), z > one
    is_infinite = is_pole & ~(is_polynomial & (a >= c))
    is_infinite = is_infinite | (~is_polynomial & is_above)

    # A polynomial after Euler's transformation, of a lower degree, or else the parameters here.
    a_rest, b_rest = c - a, c - b
    is_first, is_second = _is_pole(a_rest), _is_pole(b_rest)
    by_euler = (is_first | is_second) & ~is_pole & (z < one)
    # A recurrence to the higher one of two degrees would cancel.
    is_first = is_first & ~(is_second & (b_rest > a_rest))
    degree, other = pt.switch(is_first, a - c, b - c), pt.switch(is_first, b_rest, a_rest)
    by_euler = by_euler & ~(is_polynomial & (-a <= degree))
    degree, other = pt.switch(by_euler, degree, -a), pt.switch(by_euler, other, b)
    is_finite = pt.abs(a) + pt.abs(b) + pt.abs(c) + pt.abs(z) < constant(z, math.inf)
    is_regular = is_finite & ~is_infinite
    is_polynomial_here = is_polynomial | by_euler
    is_short = is_polynomial_here & is_regular
    is_long = is_regular & ~is_polynomial_here
    polynomial, has_roots = hypergeometric_polynomial(
        pt.switch(is_short, degree, zero), other, c, z
    )

    base = one - pt.minimum(z, one)
    scaled = base * constant(z, 2.0**-60)
    logarithm, rest = log_of_normal_with_rest(scaled, constant(z, 60.0))
    of = Parameters(a, b, c)
    value, exponent = _by_expansion(of, z, logarithm, rest, is_long)
    is_left, loss = is_long & pt.isnan(value), pt.zeros_like(value)
    value, exponent, loss = of_few(
        is_left, _by_equation, [value, exponent, loss], [of, z, logarithm]
    )
    value, exponent = pt.switch(is_short, polynomial, value), pt.switch(is_short, zero, exponent)
    is_lost = (is_short & has_roots) | (is_long & (loss > constant(z, _LOSS)))
    first, second = pt.switch(is_short, -degree, a), pt.switch(is_short, other, b)
    value, exponent = of_few(
        is_lost, by_sums, [value, exponent], [first, second, c, z, is_short], as_rows=True
    )
    exponent = pt.switch(by_euler, exponent + (c - a - b), exponent)
    # The factor in two parts, of which none vanishes before the result does.
    half = constant(z, 0.5) * exponent
    root = power_of_logarithm(half, logarithm, rest)
    root = pt.switch(pt.eq(base, zero), pt.pow(zero, half), root)
    # What overflows on the way may have a finite product.
    is_lost = pt.isinf(value) & (root < one)
    value = pt.switch(is_lost, nan, value * root * root)
    value = pt.switch(is_infinite & ~pt.isnan(z), constant(z, math.inf), value)
    return pt.switch(is_finite & pt.eq(z, zero), one, value)


def _is_pole(x: TensorVariable) -> TensorVariable:
    """Tell integers that are not positive."""
    return pt.eq(x, pt.minimum(pt.round(x), constant(x, 0.0)))


def _by_expansion(
    of: Parameters,
    z: TensorVariable,
    logarithm: TensorVariable,
    log_rest: TensorVariable,
    is_wanted: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return a function and the exponent of ``1 - z`` in the factor before it.

    They serve next to one and far below zero, where a difference of parameters is no integer nor
    nearly so. Elsewhere, and where terms cancel, the function is NaN.

    Parameters
    ----------
    of, z
        Parameters and argument.
    logarithm, log_rest
        The logarithm of ``1 - z`` in two parts.
    is_wanted
        Where neither a polynomial nor an infinity is the result.
    """
    a, b, c = of
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_far, rest = z <= constant(z, _FAR), one - z
    a_rest, error = add_with_error(c, -a)
    d = pt.switch(is_far, b - a, (a_rest - b) + error)
    exponent = pt.switch(is_far, -pt.switch(d < zero, b, a), pt.minimum(d, zero))
    # At one itself only the part remains that does not depend on the difference.
    is_end = pt.eq(rest, zero) & (d > zero)
    is_near = (rest > zero) & (rest < constant(z, _NEAR))
    is_modest = pt.abs(a) + pt.abs(b) + pt.abs(c) < constant(z, _MODEST)
    is_between = pt.abs(d - pt.round(d)) > constant(d, _BETWEEN)
    is_wanted = is_wanted & (is_end | (is_far | is_near) & is_between) & is_modest
    nan = pt.full_like(z, math.nan)
    operands = [of, d, z, logarithm, log_rest]
    [value] = of_few(is_wanted, _expanded, [nan], operands, as_rows=True)
    return value, exponent


def _expanded(
    _: TensorVariable,
    of: Parameters,
    d: TensorVariable,
    z: TensorVariable,
    logarithm: TensorVariable,
    log_rest: TensorVariable,
) -> list[TensorVariable]:
    """Return the function by the expansion around one, NaN where terms cancel."""
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_far, swaps, rest = z <= constant(z, _FAR), d < zero, one - z
    a, b = _with_complement(of.a, of.c, swaps), _with_complement(of.b, of.c, is_far ^ swaps)
    w = pt.switch(is_far, one / rest, rest)
    size = pt.abs(d)
    power = power_of_logarithm(pt.switch(is_far, -size, size), logarithm, log_rest)
    value, loss = by_expansion_around_one(a, b, of.c, size, w, power)
    # Steps along the equation lose more the farther they go, and nothing next to integers.
    most = pt.clip(constant(z, -10.0) * z, constant(z, _LOSS), constant(z, _FAR_LOSS))
    is_next = pt.abs(d - pt.round(d)) < constant(d, _NEXT)
    most = pt.switch(is_next, constant(z, _LOSS), most)
    return [pt.switch(loss < most, value, constant(z, math.nan))]


def _with_complement(a: TensorVariable, c: TensorVariable, swaps: TensorVariable) -> Rounded:
    """Return rows of ``a`` and ``c - a``, in this order or the other, and their errors."""
    rest, error = add_with_error(c, -a)
    none = pt.zeros_like(a)
    return Rounded(
        pt.switch(swaps, pt.concatenate([rest, a]), pt.concatenate([a, rest])),
        pt.switch(swaps, pt.concatenate([error, none]), pt.concatenate([none, error])),
    )


def _by_equation(
    _: TensorVariable,
    __: TensorVariable,
    ___: TensorVariable,
    of: Parameters,
    z: TensorVariable,
    logarithm: TensorVariable,
) -> list[TensorVariable]:
    """Return a function, the exponent of ``1 - z`` in the factor before it, and the loss.

    The loss is the factor by which terms cancel where `by_sums` loses less, and else zero. The
    logarithm is that of ``1 - z``.
    """
    a, b, c = of
    zero, one = constant(z, 0.0), constant(z, 1.0)
    largest = pt.maximum(pt.maximum(pt.abs(a), pt.abs(b)), -c)
    is_negative = z < zero
    swaps = is_negative & (pt.abs(a) > pt.abs(b))
    a, b = pt.switch(swaps, b, a), pt.switch(swaps, a, b)
    rest = one - z
    w = pt.switch(is_negative, one / rest, rest)
    logarithm = pt.switch(is_negative, -logarithm, logarithm)
    exponent = pt.switch(is_negative, a, zero)
    z = pt.switch(is_negative, -z * w, z)
    b = pt.switch(is_negative, c - b, b)

    d = c - a - b
    products = largest_product(pt.stack([a, c - a]), pt.stack([b, c - b]))
    product, turned = split_rows(products, 2)
    turns = (product > pt.maximum(c, one)) & ((c - a) * (c - b) >= zero) & (c > zero)
    turns = turns & ((pt.abs(d * logarithm) < constant(d, 500.0)) | (d < zero))
    a, b = pt.switch(turns, c - a, a), pt.switch(turns, c - b, b)
    exponent = pt.switch(turns, exponent + d, exponent)
    d = pt.switch(turns, -d, d)

    product = pt.switch(turns, turned, product)
    is_near = (c < zero) & (z <= constant(z, LAST))
    cancels = (c < zero) & ~is_near & (largest > constant(z, _NEGATIVE))
    cancels = cancels | (product > constant(z, _PRODUCT))
    z, w = pt.switch(cancels, zero, z), pt.switch(cancels, one, w)
    value, loss = follow_equation(Parameters(a, b, c), Place(z, w), logarithm, d, product)
    value = pt.switch(cancels, constant(z, math.nan), value)
    loss = pt.switch(is_near, pt.switch(cancels, constant(z, math.inf), loss), zero)
    return [value, pt.switch(is_negative, -exponent, exponent), loss]


_DEGREE = 1000
# A value so much smaller than that of the degree below is next to a root.
_SMALL = 1 / 16


def hypergeometric_polynomial(
    n: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the hypergeometric function for ``a = -n``, and where it has lost digits.

    NaN for degrees of 1,000 and more. The recurrence is stable for positive `c` and ``z < 1``, but
    for values next to roots.
    """
    is_known = n < constant(n, _DEGREE)
    is_other = (c < constant(c, 0.0)) | (z > constant(z, 1.0))
    zero = constant(n, 0.0)
    value, before = _by_recurrence(pt.switch(is_known & (c > zero), n, zero), b, c, z)
    is_lost = is_other | (pt.abs(value) < constant(z, _SMALL) * pt.abs(before))
    return pt.switch(is_known, value, constant(n, math.nan)), is_lost & is_known & (n > zero)


def _by_recurrence(
    n: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Follow the recurrence over the first parameter (DLMF 15.5.11) to the degrees n and n - 1."""

    def step(
        k: TensorVariable,
        before: TensorVariable,
        value: TensorVariable,
        n: TensorVariable,
        b: TensorVariable,
        c: TensorVariable,
        z: TensorVariable,
    ) -> tuple:
        one = constant(k, 1.0)
        change = k * (one - z) * (value - before)
        following = value + (change - b * z * value) / (c + k)
        is_before = k < n
        before, value = pt.switch(is_before, value, before), pt.switch(is_before, following, value)
        return (k + one, before, value), until(pt.all(k + one >= n))

    start = pt.ones_like(z)
    _, before, value = iterate(
        step, [constant(z, 0.0), start, start], [n, b, c, z], n_steps=_DEGREE
    )
    return value, before
