"""Hypergeometric series in twice the working precision, for values next to roots."""

import math
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, rows_of
from pytensor_onnx.functions.special.power import product_with_rest

# Most terms of a series, and the last argument of one that does not end.
_TERMS, LAST = 2_000, 0.9
_PRECISION = 2.0**-60
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
    _, found = iterate(_add_term, [zero, start], [series, factors], n_steps=_TERMS)
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
    is_left = (pt.abs(term) > constant(k, _PRECISION) * pt.abs(total)) | is_before
    return (following, after), until(~pt.any(is_left))
