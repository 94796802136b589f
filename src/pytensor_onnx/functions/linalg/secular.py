"""Roots of secular equations, all at once, each as its distance to the nearest pole."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import SecularRoots

_STEPS = 80
_EPS = np.finfo("float64").eps


def differences(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return ``y[j]**2 - x[i]**2`` in row ``i`` and column ``j``, without cancellation.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> differences(x, x).eval({x: np.array([[1.0, 2.0]])}, mode="ONNX")
    array([[[ 0.,  3.],
            [-3.,  0.]]])
    """
    x, y = x[:, :, None], y[:, None, :]
    return (y - x) * (y + x)


@define(SecularRoots, SecularRoots.gufunc_signature)
def roots(poles: TensorVariable, z: TensorVariable) -> list[TensorVariable]:
    """Return the roots ``s**2`` of ``1 + sum(z[i]**2 / (poles[i]**2 - s**2))``.

    Each root is the zero of a rational function that interpolates the sums over the poles to its
    left and to its right, again and again (R.-C. Li, Solving secular equations stably and
    efficiently, LAPACK working note 89, 1994, the "middle way"), and a bisection where that
    leaves the bracket. All roots of all equations take a step together.

    Parameters
    ----------
    poles
        Matrix of nonnegative numbers, in each row strictly ascending.
    z
        Matrix of numbers other than zero.

    Returns
    -------
    list of TensorVariable
        The pole next to each root, and the difference of the root and the squared pole, accurate
        as a number of its own; NaN where it has not been found in 80 steps.
    """
    equations, count = poles.shape[0], poles.shape[1]
    square = z * z
    rows = pt.arange(count)
    is_last = pt.eq(rows, count - 1)
    next_pole, next_square = (pt.concatenate([x[:, 1:], x[:, :1]], axis=1) for x in (poles, square))
    next_square = pt.switch(is_last, 0.0, next_square)
    gap = (next_pole - poles) * (next_pole + poles)
    # Beyond the last pole all squares bound the distance of the root.
    bound = 1.0625 * square.sum(axis=1, keepdims=True)
    width = pt.switch(is_last, bound, gap)
    middle = 0.5 * width
    terms = square[:, None, :] / (differences(poles, poles) - middle[:, :, None])
    at_middle = 1.0 + terms.sum(axis=2)
    at_right = pt.lt(at_middle, 0.0) & ~is_last
    pole = pt.switch(at_right, next_pole, poles)
    low = pt.switch(at_right, -middle, pt.switch(is_last & pt.lt(at_middle, 0.0), middle, 0.0))
    high = pt.switch(at_right, 0.0, pt.switch(is_last & pt.lt(at_middle, 0.0), width, middle))
    rest = at_middle + (square - next_square) / middle
    signed_width = pt.switch(at_right, -width, width)
    start = _quadratic_root(
        rest,
        rest * signed_width + square + next_square,
        pt.switch(at_right, next_square, square) * signed_width,
    )
    left = pt.switch(at_right, -width, 0.0)
    shift, found = _refined(
        differences(pole, poles),
        square[:, None, :],
        [_inside(start, low, high, is_last), low, high],
        [left, left + width],
        rows,
        pt.zeros((equations, count), "bool"),
    )
    return [pole, pt.switch(found, shift, np.nan)]


def _refined(
    delta: TensorVariable,
    square: TensorVariable,
    start: Sequence[TensorVariable],
    ends: Sequence[TensorVariable],
    rows: TensorVariable,
    none: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return the shifts of the roots, and whether they have been found.

    Parameters
    ----------
    delta
        Differences of the squared poles and the one next to a root.
    square
        Squares of ``z``, with an axis for the roots.
    start
        The first shifts, and their lower and upper bounds.
    ends
        The poles around each root, relative to the one next to it.
    rows
        Positions of the roots.
    none
        Array that is false for all roots.
    """
    is_below = pt.le(rows[None, :], rows[:, None]).astype("float64")
    is_last = pt.eq(rows, rows.shape[0] - 1)

    def step(
        shift: TensorVariable,
        low: TensorVariable,
        high: TensorVariable,
        _: TensorVariable,
        *constants: TensorVariable,
    ) -> tuple[list[TensorVariable], Any]:
        delta, square, is_below, is_last, left, right = constants
        distance = delta - shift[:, :, None]
        terms = square / distance
        slopes = terms / distance
        value = 1.0 + terms.sum(axis=2)
        size = 1.0 + pt.abs(terms).sum(axis=2)
        slope = slopes.sum(axis=2)
        slope_below = (slopes * is_below).sum(axis=2)
        slope_above = slope - slope_below
        low = pt.switch(pt.lt(value, 0.0), shift, low)
        high = pt.switch(pt.lt(value, 0.0), high, shift)
        nearest = pt.minimum(pt.abs(low), pt.abs(high))
        found = pt.le(pt.abs(value), 2 * _EPS * size) | pt.le(high - low, 4 * _EPS * nearest)
        to_left = left - shift
        # The last root has no pole to its right: the pole is at infinity.
        reciprocal = pt.switch(is_last, 0.0, 1.0 / (right - shift))
        change = _quadratic_root(
            (value - to_left * slope_below) * reciprocal - slope_above,
            (to_left * reciprocal + 1.0) * value - to_left * slope,
            to_left * value,
        )
        proposal = _inside(shift + change, low, high, is_last)
        return [pt.switch(found, shift, proposal), low, high, found], until(pt.all(found))

    shift, _, _, found = pytensor.scan(
        step,
        [],
        [*start, none],
        [delta, square, is_below, is_last, *ends],
        n_steps=_STEPS,
        return_updates=False,
        strict=True,
    )
    return shift[-1], found[-1]


def _quadratic_root(a: TensorVariable, b: TensorVariable, c: TensorVariable) -> TensorVariable:
    """Return the root of ``a x**2 - b x + c`` that stays finite for a small ``a``."""
    root = pt.sqrt(pt.maximum(b * b - 4.0 * a * c, 0.0))
    is_positive = pt.gt(b, 0.0)
    top = pt.switch(is_positive, 2.0 * c, b - root)
    return top / pt.switch(is_positive, b + root, 2.0 * a)


def _inside(
    x: TensorVariable, low: TensorVariable, high: TensorVariable, is_last: TensorVariable
) -> TensorVariable:
    """Return a number, or one between the bounds if it is not inside of them.

    The bounds may differ by many magnitudes, whose geometric mean halves that range.
    """
    product = low * high
    mean = pt.sign(low + high) * pt.sqrt(pt.abs(product))
    near_zero = (low + high) * pt.switch(is_last, 0.5, 1 / 64)
    between = pt.switch(pt.gt(product, 0.0), mean, near_zero)
    return pt.switch(pt.gt(x, low) & pt.lt(x, high), x, between)
