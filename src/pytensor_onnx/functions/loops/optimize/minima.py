"""Minima of functions of many numbers, by the method of Broyden, Fletcher, Goldfarb and Shanno."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.loops.optimize.line_search import low_enough
from pytensor_onnx.functions.loops.optimize.search_types import Found, Function

_LONGER = 1.01
"""A first step is this much longer than one with the same fall as the last."""


def by_bfgs(
    function: Function,
    gradient: Function,
    start: TensorVariable,
    constants: Sequence[TensorVariable],
    tolerance: float,
    steps: TensorVariable,
) -> Found:
    """Return a minimum of a function of a vector.

    J. Nocedal and S. J. Wright, Numerical Optimization, 2006, algorithm 6.1, with the identity as
    the first inverse of the Hessian and the first lengths of equation 3.60, as SciPy has them.

    Parameters
    ----------
    function
        Takes a vector of float64 and the constants.
    gradient
        Its gradient.
    start
        A vector of float64.
    constants
        Further operands of the functions.
    tolerance
        Largest element of the gradient at the minimum.
    steps
        Largest number of steps.

    Examples
    --------
    >>> value, slope = lambda x: pt.sum((x - [1.0, 2.0]) ** 4), lambda x: 4 * (x - [1.0, 2.0]) ** 3
    >>> point, done = by_bfgs(value, slope, pt.as_tensor([0.0, 0.0]), [], 1e-8, 100)
    >>> point.eval(mode="FAST_COMPILE").round(2), done.eval(mode="FAST_COMPILE")
    (array([1., 2.]), array(True))
    """
    value, slopes = function(start, *constants), gradient(start, *constants)
    done = pt.le(pt.max(pt.abs(slopes)), tolerance)
    before = value + pt.sqrt(pt.sum(slopes**2)) / 2

    def step(x, value, before, slopes, inverse, done, *constants):  # type: ignore[no-untyped-def]
        def along(length, x, direction, *constants):  # type: ignore[no-untyped-def]
            point = x + length * direction
            return function(point, *constants), pt.sum(gradient(point, *constants) * direction)

        direction = -(inverse @ slopes)
        slope = pt.sum(slopes * direction)
        first = pt.minimum(1.0, _LONGER * 2 * (value - before) / slope)
        first = pt.switch(pt.gt(first, 0), first, 1.0)
        known = [x, direction, *constants]
        length, ok = low_enough(along, value, slope, first, known)
        change = pt.switch(ok, length, 0.0) * direction
        moved = x + change
        new_value, new_slopes = function(moved, *constants), gradient(moved, *constants)
        turn = new_slopes - slopes
        inverse = pt.switch(ok, _updated(inverse, change, turn, pt.sum(change * turn)), inverse)
        done = pt.le(pt.max(pt.abs(new_slopes)), tolerance)
        return [moved, new_value, value, new_slopes, inverse, done], until(done | ~ok)

    count = pt.switch(done, 0, steps)
    state = [start, value, before, slopes, pt.eye(start.shape[0]), done]
    found = iterate(step, state, constants, n_steps=count)
    return Found(found[0], found[-1])


def _updated(
    inverse: TensorVariable,
    change: TensorVariable,
    turn: TensorVariable,
    curvature: TensorVariable,
) -> TensorVariable:
    """Return the inverse of the Hessian after an update (equation 6.17 of the book).

    It maps the change of the gradient, ``turn``, to the change of the point.
    """
    image = inverse @ turn
    mixed = pt.outer(change, image) / curvature
    factor = (1 + pt.sum(turn * image) / curvature) / curvature
    return inverse + factor * pt.outer(change, change) - mixed - mixed.T
