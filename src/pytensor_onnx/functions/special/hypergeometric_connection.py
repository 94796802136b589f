"""Hypergeometric function next to one and far below zero, by its expansion around one."""

import math
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant, rows_of
from pytensor_onnx.functions.special.gamma import gamma_plus_one

_TERMS, _ROUNDS = 2, 200
# The sizes of parameters add up to less.
_STEPS = 202
_PRECISION = 2.0**-56


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
        step, [zero, first, pt.ones_like(x)], [direction, count, error], n_steps=_STEPS
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
        for _ in range(_TERMS):
            following = k + constant(k, 1.0)
            term = term * ((a + k) * (b + k) / ((d + following) * following) * w)
            k, total, size = following, total + term, size + pt.abs(term)
        is_done = ~pt.any(pt.abs(term) > constant(term, _PRECISION) * size)
        return (k, _Sums(term, total, size)), until(is_done)

    start = _Sums(*[pt.ones_like(a)] * 3)
    _, sums = iterate(step, [constant(w, 0.0), start], [a, b, d, w], n_steps=_ROUNDS)
    # An infinite size, where the series has not converged, tells the caller that digits are lost.
    is_left = pt.abs(sums.term) > constant(sums.term, _PRECISION) * sums.size
    return sums.total, pt.switch(is_left, constant(w, math.inf), sums.size)
