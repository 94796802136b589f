"""Roots of systems of equations, by Powell's steps between Newton's and the gradient's."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.loops.optimize.search_types import Found, Function

_FIRST_RADIUS = 100.0
"""The first radius, relative to the scaled length of the start."""
_POOR, _GOOD, _CLOSE = 0.1, 0.5, 0.1
_LEAST_GAIN = 1e-4
_FAILURES = 2
"""Number of bad steps in a row after which the Jacobian is computed anew."""
_SLOW, _SLOW_FALL = 10, 1e-3
_SLOW_WITH_FRESH, _SLOW_FRESH_FALL = 5, 0.1
"""A search has failed after so many steps in a row that reduce the values by less than a part.

The first pair is for all steps, the second for steps with a new Jacobian.
"""


def by_dogleg(
    equations: Function,
    jacobian: Function,
    start: TensorVariable,
    constants: Sequence[TensorVariable],
    tolerance: float,
    steps: TensorVariable,
) -> Found:
    """Return a root of a system of equations.

    M. J. D. Powell, A hybrid method for nonlinear equations, in Numerical Methods for Nonlinear
    Algebraic Equations, 1970, with the constants of MINPACK: the step goes towards Newton's as far
    as a trusted radius allows. Lengths are scaled by the columns of the Jacobian, which follows the
    values that are seen and is computed anew after two bad steps.

    Parameters
    ----------
    equations
        Vector of values to become zero, of a vector in float64 and the constants.
    jacobian
        Their square matrix of derivatives.
    start
        A vector of float64 next to the root.
    constants
        Further operands of the functions.
    tolerance
        Largest last radius, relative to the root.
    steps
        Largest number of steps.

    Examples
    --------
    >>> square, slope = lambda x: x**2 - [2.0, 9.0], lambda x: pt.diag(2 * x)
    >>> root, done = by_dogleg(square, slope, pt.as_tensor([1.0, 1.0]), [], 1e-8, 100)
    >>> root.eval(mode="FAST_COMPILE").round(8), done.eval(mode="FAST_COMPILE")
    (array([1.41421356, 3.        ]), array(True))
    """

    def step(*state):  # type: ignore[no-untyped-def]
        x, values, slopes, scale, radius, counts, is_first, _, *constants = state
        fresh = pt.ge(counts[1], _FAILURES)
        slopes = ifelse(fresh, jacobian(x, *constants), slopes)
        columns = _length(slopes, axis=0)
        columns = pt.switch(is_first & pt.eq(columns, 0), 1.0, columns)
        scale = pt.switch(fresh, pt.maximum(scale, columns), scale)
        size = _length(scale * x)
        start = _FIRST_RADIUS * pt.switch(pt.gt(size, 0), size, 1.0)
        radius = pt.switch(pt.gt(radius, 0), radius, start)
        move = _dogleg(values, slopes, scale, radius)
        moved, new_values = x + move, equations(x + move, *constants)
        step_size, before, after = _length(scale * move), _length(values), _length(new_values)
        radius = pt.switch(is_first, pt.minimum(radius, step_size), radius)
        fallen = pt.switch(pt.lt(after, before), 1 - (after / before) ** 2, -1.0)
        expected = 1 - (_length(values + slopes @ move) / before) ** 2
        ratio = pt.switch(pt.gt(expected, 0), fallen / expected, 0.0)
        counts = _counted(counts, fresh, ratio, fallen)
        radius = _next_radius(radius, step_size, ratio, counts[0])
        accepted = pt.ge(ratio, _LEAST_GAIN)
        # Broyden's update: the slopes along the step become those seen.
        seen = (new_values - values - slopes @ move) / step_size**2
        slopes = slopes + pt.outer(seen, scale**2 * move)
        x, values = pt.switch(accepted, moved, x), pt.switch(accepted, new_values, values)
        rest = _length(values)
        # Without a way to go, where all slopes are zero, the radius says nothing.
        close = pt.gt(step_size, 0) & pt.le(radius, tolerance * _length(scale * x))
        done = pt.eq(rest, 0) | (pt.isfinite(rest) & close)
        slow = pt.eq(counts[2], _SLOW) | pt.eq(counts[3], _SLOW_WITH_FRESH)
        return [x, values, slopes, scale, radius, counts, ~accepted & is_first, done], until(
            done | slow
        )

    values, slopes = equations(start, *constants), jacobian(start, *constants)
    done = pt.eq(_length(values), 0)
    counts = pt.constant(np.array([0, _FAILURES, 0, 0]))
    yes = pt.ones((), "bool")
    state = [start, values, slopes, pt.zeros_like(start), pt.zeros(()), counts, yes, done]
    found = iterate(step, state, constants, n_steps=pt.switch(done, 0, steps))
    return Found(found[0], found[-1])


def _next_radius(
    radius: TensorVariable, step_size: TensorVariable, ratio: TensorVariable, good: TensorVariable
) -> TensorVariable:
    """Return the radius after a step, by the ratio of its fall to the expected fall.

    Several good steps in a row widen it too.
    """
    larger = pt.ge(ratio, _GOOD) | pt.gt(good, 1)
    widened = pt.switch(larger, pt.maximum(radius, 2 * step_size), radius)
    widened = pt.switch(pt.le(pt.abs(ratio - 1), _CLOSE), 2 * step_size, widened)
    return pt.switch(pt.ge(ratio, _POOR), widened, radius / 2)


def _counted(
    counts: TensorVariable, fresh: TensorVariable, ratio: TensorVariable, fallen: TensorVariable
) -> TensorVariable:
    """Return the numbers of good, bad, slow, and slow steps with fresh slopes, each in a row."""
    good, bad, slow, slow_with_fresh = (counts[i] for i in range(4))
    poor, bad = pt.lt(ratio, _POOR), pt.switch(fresh, 0, bad)
    return pt.stack(
        [
            pt.switch(poor, 0, good + 1),
            pt.switch(poor, bad + 1, 0),
            pt.switch(pt.ge(fallen, _SLOW_FALL), 0, slow + 1),
            pt.switch(pt.ge(fallen, _SLOW_FRESH_FALL), 0, slow_with_fresh + fresh),
        ]
    )


def _dogleg(
    values: TensorVariable,
    slopes: TensorVariable,
    unit: TensorVariable,
    radius: TensorVariable,
) -> TensorVariable:
    """Return the dogleg step: the last point within a radius on the path to Newton's step.

    The path leads straight to the minimum along the gradient, and from there to Newton's step.
    Lengths are those of steps multiplied by ``unit``.
    """
    newton = -pt.linalg.solve(slopes, values, b_ndim=1)
    gradient = (slopes.T @ values) / unit
    fall = -gradient / unit
    squares = pt.sum((slopes @ fall) ** 2)
    cauchy = pt.switch(pt.gt(squares, 0), pt.sum(gradient**2) / squares, 0.0) * fall
    length = _length(unit * cauchy)
    shortened = cauchy * pt.switch(pt.gt(length, radius), radius / length, 1.0)
    rest = newton - cauchy
    a, b = pt.sum((unit * rest) ** 2), pt.sum(unit * cauchy * unit * rest)
    c = length**2 - radius**2
    root = pt.sqrt(pt.maximum(b**2 - a * c, 0.0))
    between = cauchy + pt.switch(pt.gt(b, 0), -c / (b + root), (root - b) / a) * rest
    usable = pt.all(pt.isfinite(newton))
    inside = usable & pt.le(_length(unit * newton), radius)
    towards = pt.switch(usable & pt.lt(length, radius), between, shortened)
    return pt.switch(inside, newton, towards)


def _length(x: TensorVariable, axis: int | None = None) -> TensorVariable:
    return pt.sqrt(pt.sum(x**2, axis=axis))
