"""Solution of the hypergeometric equation that is one at zero, by steps of Taylor series."""

import math
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.expm1 import expm1
from pytensor_onnx.functions.special.hypergeometric_sums import LAST
from pytensor_onnx.functions.special.wide_evaluation import of_few

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
