"""Roots of a function of one number, between two points of opposite sign or next to a point."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.loops.optimize.search_types import (
    Found,
    Function,
    Point,
    Stop,
    choose,
    swap,
)

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
