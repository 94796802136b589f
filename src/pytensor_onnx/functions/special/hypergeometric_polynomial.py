"""Hypergeometric functions that are polynomials: a recurrence over the degree, and finite sums."""

import math

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, rows_of
from pytensor_onnx.functions.special.evaluation import of_few

_DEGREE = 1000
# The most that terms of a sum may cancel, so that five digits are left, and where the recurrence
# would lose less.
_CANCELLATION, _LOSS = 1e11, 1e3


def hypergeometric_polynomial(
    n: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> TensorVariable:
    """Hypergeometric function for ``a = -n``, of degrees ``n`` below 1,000, else NaN.

    The recurrence is stable for positive `c` and ``z < 1``. For negative ones, next to integers
    above all, the sums lose fewer digits, and beyond one where their terms hardly cancel.
    """
    is_known = n < constant(n, _DEGREE)
    degree = pt.switch(is_known, n, constant(n, 0.0))
    is_negative = c < constant(c, 0.0)
    steps = pt.switch(is_negative, constant(n, 0.0), degree)
    value = _by_recurrence(steps, b, c, z)
    by_sums = (is_negative | (z > constant(z, 1.0))) & (degree > constant(n, 0.0))
    [value] = of_few(by_sums, _by_sums, [value], [degree, b, c, z], as_rows=True)
    return pt.switch(is_known, value, constant(n, math.nan))


def _by_recurrence(
    n: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> TensorVariable:
    """Follow the recurrence over the first parameter (DLMF 15.5.11)."""

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
    _, _, value = iterate(step, [constant(z, 0.0), start, start], [n, b, c, z], n_steps=_DEGREE)
    return value


def _by_sums(
    before: TensorVariable,
    n: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
) -> list[TensorVariable]:
    """Return the sum of two whose terms cancel less, for matrices of one row.

    One is the series itself, the other one that of ``z / (z - 1)``, or of ``1 - z`` for
    ``z >= 1`` (DLMF 15.8.1 and 15.8.7). Where terms of both cancel too much, the value is NaN for
    negative ``c``, and else the one before.
    """
    one = constant(z, 1.0)
    is_above = z >= one
    rest = one - z
    # The difference of parameters with its rounding error, which counts next to integers.
    d, error = add_with_error(c, -b)
    points = pt.concatenate([z, pt.switch(is_above, rest, -z / rest)])

    def step(
        k: TensorVariable,
        terms: TensorVariable,
        totals: TensorVariable,
        sizes: TensorVariable,
        factor: TensorVariable,
        n: TensorVariable,
        b: TensorVariable,
        c: TensorVariable,
        points: TensorVariable,
        d: TensorVariable,
        error: TensorVariable,
        rest: TensorVariable,
    ) -> tuple:
        zero, one = constant(k, 0.0), constant(k, 1.0)
        is_above = rest <= zero
        own, bottom, difference = b + k, c + k, (d + k) + error
        turned = -((d + (n - one - k)) + error)
        tops = pt.concatenate([own, pt.switch(is_above, own, difference)])
        bottoms = pt.concatenate([bottom, pt.switch(is_above, turned, bottom)])
        # After the last term parameters below may vanish.
        ratios = pt.switch(k < n, (k - n) * tops / ((k + one) * bottoms), zero)
        terms = terms * (ratios * points)
        change = pt.switch(is_above, difference / bottom, rest)
        factor = factor * pt.switch(k < n, change, one)
        after = (k + one, terms, totals + terms, sizes + pt.abs(terms), factor)
        return after, until(pt.all(k + one >= n))

    ones = pt.ones_like(points)
    _, _, totals, sizes, factor = iterate(
        step,
        [constant(z, 0.0), ones, ones, ones, pt.ones_like(z)],
        [n, b, c, points, d, error, rest],
        n_steps=_DEGREE,
    )
    total, other = rows_of(totals, 2)
    loss, other_loss = rows_of(sizes / pt.abs(totals), 2)
    is_better = other_loss < loss
    loss = pt.switch(is_better, other_loss, loss)
    value = pt.switch(is_better, other * factor, total)
    is_negative = c < constant(c, 0.0)
    most = pt.switch(is_negative, constant(loss, _CANCELLATION), constant(loss, _LOSS))
    # A sum of zero is exact.
    is_lost = ((loss > most) & pt.neq(value, constant(z, 0.0))) | (pt.isnan(loss) & ~is_negative)
    return [pt.switch(is_lost, pt.switch(is_negative, constant(z, math.nan), before), value)]
