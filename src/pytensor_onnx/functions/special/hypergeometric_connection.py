"""Hypergeometric function next to one and far below zero, by its expansion around one."""

import math

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant, rows_of
from pytensor_onnx.functions.special.gamma import gamma_of_parts, parts_of_gamma
from pytensor_onnx.functions.special.power import power_of_normal

_TERMS, _ROUNDS = 2, 200
_PRECISION = 2.0**-56


def by_expansion_around_one(
    a: TensorVariable,
    b: TensorVariable,
    a_error: TensorVariable,
    b_error: TensorVariable,
    c: TensorVariable,
    d: TensorVariable,
    w: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``F(a, b; c; 1 - w)`` for ``w <= 1/2`` and the factor by which its terms cancel.

    The parts are ``F(a, b; 1 - d; w)`` and ``w**d F(c - a, c - b; 1 + d; w)`` with factors of gamma
    functions (DLMF 15.8.4, and 15.4.20 for ``w = 0``).

    Parameters
    ----------
    a, b
        Parameters in a first row, and ``c - a`` and ``c - b`` in a second one.
    a_error, b_error
        Exact parameters less the rounded ones.
    c, d, w
        Matrices of one row. ``d = c - a - b`` is positive and no integer unless ``w`` is zero.
    """
    zero = constant(w, 0.0)
    is_inside = w > zero
    minus_d = -pt.switch(is_inside, d, constant(d, 0.5))
    arguments = pt.concatenate([c, minus_d, d, a, b])
    parts = parts_of_gamma(arguments)
    # One call computes the powers of the gamma functions and of w.
    powers = power_of_normal(pt.concatenate([parts.base, w]), pt.concatenate([parts.exponent, d]))
    of_gamma, of_w = pt.split(powers, [7, 1], n_splits=2, axis=0)
    gammas = gamma_of_parts(arguments, parts, of_gamma)
    whole, top, bottoms = pt.split(gammas, [1, 2, 4], n_splits=3, axis=0)
    errors = pt.concatenate([a_error, b_error])
    bottoms = bottoms / _change_by_error(pt.concatenate([a, b]), errors)
    bottom = pt.mul(*pt.split(bottoms, [2, 2], n_splits=2, axis=0))
    # Gamma is NaN at its poles, where its reciprocal vanishes.
    factor = pt.switch(pt.isnan(bottom), zero, whole * top / bottom)
    other, factor = rows_of(factor, 2)
    other = pt.switch(is_inside, other * of_w, zero)
    totals, sizes = _series(a, b, pt.concatenate([minus_d, -minus_d]), w)
    factors = pt.concatenate([factor, other])
    value = pt.add(*rows_of(totals * factors, 2))
    size = pt.add(*rows_of(sizes * pt.abs(factors), 2))
    return value, size / pt.maximum(pt.abs(value), constant(value, 1e-300))


def _change_by_error(x: TensorVariable, error: TensorVariable) -> TensorVariable:
    """Return ``gamma(x) / gamma(x + error)``, which differs from one next to the poles of gamma."""
    one = constant(x, 1.0)
    return pt.switch(x < constant(x, 0.0), one + error / (x - pt.round(x)), one)


def _series(
    a: TensorVariable, b: TensorVariable, d: TensorVariable, w: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Power series of ``F(a, b; 1 + d; w)``, and that of the sizes of its terms.

    The number of a term is added to ``d`` at once, which is exact where both nearly cancel.
    """

    def step(
        k: TensorVariable,
        term: TensorVariable,
        total: TensorVariable,
        size: TensorVariable,
        a: TensorVariable,
        b: TensorVariable,
        d: TensorVariable,
        w: TensorVariable,
    ) -> tuple:
        for _ in range(_TERMS):
            following = k + constant(k, 1.0)
            term = term * ((a + k) * (b + k) / ((d + following) * following) * w)
            k, total, size = following, total + term, size + pt.abs(term)
        is_done = ~pt.any(pt.abs(term) > constant(term, _PRECISION) * size)
        return (k, term, total, size), until(is_done)

    start = pt.ones_like(a)
    _, term, total, size = iterate(
        step, [constant(w, 0.0), start, start, start], [a, b, d, w], n_steps=_ROUNDS
    )
    # An infinite size, where the series has not converged, tells the caller that digits are lost.
    is_left = pt.abs(term) > constant(term, _PRECISION) * size
    return total, pt.switch(is_left, constant(w, math.inf), size)
