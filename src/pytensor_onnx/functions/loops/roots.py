"""Roots of functions and of systems."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.loops.search_options import Found, Function, Point, Stop, choose, swap

# The second point of the secant method, relative to the first.
_NEIGHBOUR = 1e-4


def between(
    function: Function,
    bracket: TensorVariable,
    constants: Sequence[TensorVariable],
    stop: Stop,
) -> Found:
    """Return a root between two points where the signs of a function differ.

    R. P. Brent, Algorithms for Minimization without Derivatives, 1973, chapter 4: inverse quadratic
    interpolation or a secant, and bisection where these are slow.

    Parameters
    ----------
    function
        Takes the point and the constants.
    bracket
        Vector of two points.
    constants
        Further operands of the function.
    stop
        Tolerances of the root, and the largest number of steps.

    Raises
    ------
    ValueError
        When run, if the signs are equal or there are not two points.

    Examples
    --------
    >>> stop = Stop(2e-12, 1e-15, 100)
    >>> root, converged = between(lambda x: x**2 - 2, pt.as_tensor([0.0, 2.0]), [], stop)
    >>> float(root.eval(mode="FAST_COMPILE").round(8)), converged.eval(mode="FAST_COMPILE")
    (1.41421356, array(True))
    """
    before, best = _ends(function, bracket, constants)
    nothing = pt.zeros((), "float64")

    def step(*state: TensorVariable):  # type: ignore[no-untyped-def]
        a, b, c = (Point(*state[i : i + 2]) for i in (0, 2, 4))
        (moved, moved_before), constants = state[6:8], state[9:]
        opposite = pt.neq(a.value, 0) & pt.neq(b.value, 0)
        opposite &= pt.neq(pt.sign(a.value), pt.sign(b.value))
        c = choose(opposite, a, c)
        moved, moved_before = (pt.switch(opposite, b.x - a.x, d) for d in (moved, moved_before))
        other_is_better = pt.lt(pt.abs(c.value), pt.abs(b.value))
        a = choose(other_is_better, b, a)
        b, c = swap(other_is_better, b, c)
        tolerance, half = stop.tolerance(b.x) / 2, (c.x - b.x) / 2
        lost = _is_lost(a, b)
        done = ~lost & (pt.eq(b.value, 0) | pt.lt(pt.abs(half), tolerance))
        ended = done | lost
        guess = pt.switch(pt.eq(a.x, c.x), _by_line(a, b), _by_parabola(a, b, c))
        limit = pt.minimum(pt.abs(moved_before), 3 * pt.abs(half) - tolerance)
        good = pt.lt(2 * pt.abs(guess), limit) & pt.lt(pt.abs(b.value), pt.abs(a.value))
        good &= pt.gt(pt.abs(moved_before), tolerance)
        moved_before, moved = pt.switch(good, moved, half), pt.switch(good, guess, half)
        least = pt.switch(pt.gt(half, 0), tolerance, -tolerance)
        x = b.x + pt.switch(pt.gt(pt.abs(moved), tolerance), moved, least)
        after = choose(ended, b, Point(x, function(x, *constants)))
        return [*choose(ended, a, b), *after, *c, moved, moved_before, done], until(ended)

    start = [*before, *best, *before, nothing, nothing, pt.zeros((), "bool")]
    found = iterate(step, start, constants, n_steps=stop.steps)
    return Found(found[2], found[-1])


def by_halving(
    function: Function,
    bracket: TensorVariable,
    constants: Sequence[TensorVariable],
    stop: Stop,
) -> Found:
    """Return a root between two points where the signs of a function differ, by bisection.

    Parameters
    ----------
    function
        Takes the point and the constants.
    bracket
        Vector of two points.
    constants
        Further operands of the function.
    stop
        Tolerances of the root, and the largest number of steps.

    Raises
    ------
    ValueError
        When run, if the signs are equal or there are not two points.

    Examples
    --------
    >>> stop = Stop(2e-12, 1e-15, 100)
    >>> root, converged = by_halving(lambda x: x**2 - 2, pt.as_tensor([0.0, 2.0]), [], stop)
    >>> float(root.eval(mode="FAST_COMPILE").round(8)), converged.eval(mode="FAST_COMPILE")
    (1.41421356, array(True))
    """
    first, second = _ends(function, bracket, constants)

    def step(x, width, middle, done, at_first, *constants):  # type: ignore[no-untyped-def]
        width = width / 2
        middle = x + width
        value = function(middle, *constants)
        lost = pt.isnan(value)
        done = ~lost & (pt.eq(value, 0) | pt.lt(pt.abs(width), stop.tolerance(middle)))
        same = pt.eq(pt.lt(value, 0), pt.lt(at_first, 0))
        return [pt.switch(same, middle, x), width, middle, done], until(done | lost)

    start = [first.x, second.x - first.x, first.x, pt.zeros((), "bool")]
    _, _, root, done = iterate(step, start, [first.value, *constants], n_steps=stop.steps)
    for end in (second, first):
        root = pt.switch(pt.eq(end.value, 0), end.x, root)
        done |= pt.eq(end.value, 0)
    return Found(root, done & ~_is_lost(first, second))


def by_secants(
    function: Function,
    start: TensorVariable,
    constants: Sequence[TensorVariable],
    stop: Stop,
    second: float | None = None,
) -> Found:
    """Return a root next to a point, by the secant method.

    Parameters
    ----------
    function
        Takes the point and the constants.
    start
        A point next to the root.
    constants
        Further operands of the function.
    stop
        Tolerances of the root, and the largest number of steps.
    second
        A second point; without one it is next to the first.

    Examples
    --------
    >>> root, _ = by_secants(lambda x: x**2 - 2, pt.as_tensor(1.0), [], Stop(1e-8, 0.0, 50))
    >>> float(root.eval(mode="FAST_COMPILE").round(8))
    1.41421356
    """
    start = start.astype("float64")
    near = start * (1 + _NEIGHBOUR)
    near = near + pt.switch(pt.ge(near, 0), _NEIGHBOUR, -_NEIGHBOUR)
    other = near if second is None else pt.constant(second, dtype="float64")
    a, b = (Point(x, function(x, *constants)) for x in (start, other))
    a, b = swap(pt.lt(pt.abs(b.value), pt.abs(a.value)), a, b)

    def step(*state: TensorVariable):  # type: ignore[no-untyped-def]
        a, b, constants = Point(*state[:2]), Point(*state[2:4]), state[6:]
        flat = pt.eq(a.value, b.value)
        x = pt.switch(flat, (a.x + b.x) / 2, _crossing(a, b))
        done = pt.isfinite(x) & pt.switch(flat, pt.eq(a.x, b.x), stop.are_close(x, b.x))
        ended = flat | done
        value = pt.switch(ended, b.value, function(x, *constants))
        return [*b, x, value, done, ended], until(ended)

    no = pt.zeros((), "bool")
    found = iterate(step, [*a, *b, no, no], constants, n_steps=stop.steps)
    return Found(found[2], found[4])


def by_tangents(
    derivatives: Sequence[Function],
    start: TensorVariable,
    constants: Sequence[TensorVariable],
    stop: Stop,
) -> Found:
    """Return a root next to a point, by Newton's or, with a second derivative, Halley's method.

    Parameters
    ----------
    derivatives
        The function, its first derivative and possibly the second.
    start
        A point next to the root.
    constants
        Further operands of the functions.
    stop
        Tolerances of the root, and the largest number of steps.

    Examples
    --------
    >>> functions = [lambda x: x**2 - 2, lambda x: 2 * x]
    >>> root, _ = by_tangents(functions, pt.as_tensor(1.0), [], Stop(1e-8, 0.0, 50))
    >>> float(root.eval(mode="FAST_COMPILE").round(8))
    1.41421356
    """

    def step(x, done, ended, *constants):  # type: ignore[no-untyped-def]
        value, slope, *curvature = (f(x, *constants) for f in derivatives)
        move = value / slope
        if curvature:
            bend = move * curvature[0] / slope / 2
            move = pt.switch(pt.lt(pt.abs(bend), 1), move / (1 - bend), move)
        is_root, is_flat = pt.eq(value, 0), pt.eq(slope, 0)
        new = pt.switch(is_root | is_flat, x, x - move)
        done = is_root | (~is_flat & stop.are_close(new, x))
        ended = is_flat | done
        return [new, done, ended], until(ended)

    no = pt.zeros((), "bool")
    first = [start.astype("float64"), no, no]
    root, done, _ = iterate(step, first, constants, n_steps=stop.steps)
    return Found(root, done)


def _ends(
    function: Function, bracket: TensorVariable, constants: Sequence[TensorVariable]
) -> tuple[Point, Point]:
    """Return the two ends of a bracket, whose values differ in sign or contain a zero."""
    two = CheckAndRaise(ValueError, "a bracket of a root has two points")
    bracket = two(bracket.astype("float64"), pt.eq(bracket.shape[0], 2))
    first, second = (Point(x, function(x, *constants)) for x in (bracket[0], bracket[1]))
    differ = CheckAndRaise(ValueError, "f(a) and f(b) must have different signs")
    sign = pt.sign(first.value) * pt.sign(second.value)
    return first._replace(value=differ(first.value, ~pt.gt(sign, 0))), second


def _is_lost(*points: Point) -> TensorVariable:
    """Return whether the function is not a number at a point, where no sign tells the way."""
    return pt.any(pt.isnan(pt.stack([point.value for point in points])))


def _by_line(a: Point, b: Point) -> TensorVariable:
    """Return the step from b to where the line through two points is zero."""
    return -b.value * (b.x - a.x) / (b.value - a.value)


def _by_parabola(a: Point, b: Point, c: Point) -> TensorVariable:
    """Return the step from b to where the inverse parabola through three points is zero."""
    to_a, to_c = ((p.value - b.value) / (p.x - b.x) for p in (a, c))
    return -b.value * (c.value * to_c - a.value * to_a) / (to_c * to_a * (c.value - a.value))


def _crossing(a: Point, b: Point) -> TensorVariable:
    """Return where the line through two points is zero, with a quotient of at most one."""
    of_b, of_a = a.value / b.value, b.value / a.value
    return pt.switch(
        pt.gt(pt.abs(b.value), pt.abs(a.value)),
        (a.x - of_b * b.x) / (1 - of_b),
        (b.x - of_a * a.x) / (1 - of_a),
    )


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
