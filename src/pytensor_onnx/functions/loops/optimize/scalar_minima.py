"""Minima of a function of one number: a bracket, and Brent's search within it."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.loops.optimize.search_types import Found, Function, Point, choose, swap

_GOLDEN_GROWTH = 1.618034
_GOLDEN_PART = 0.3819660112501051
"""The smaller part of the golden section, ``(3 - sqrt(5)) / 2``."""
_LARGEST_GROWTH = 110.0
_GROWING_STEPS = 1000
_TINY = 1e-21
_ROOT_OF_EPS = 2.0**-26
_REQUIREMENT = "Bracketing values (xa, xb, xc) do not fulfill this requirement: ({}) and ({})"


class Bracket(NamedTuple):
    """Three points; the one between the others has the least value."""

    first: Point
    middle: Point
    last: Point


def downhill(
    function: Function,
    first: TensorVariable,
    second: TensorVariable,
    constants: Sequence[TensorVariable],
) -> tuple[Bracket, TensorVariable]:
    """Return a bracket of a minimum, and whether one was found, going downhill from two points.

    Parabolas through the last three points, at most 110 times the last step, and golden sections
    (Press et al., Numerical Recipes, 2007, section 10.1).

    Parameters
    ----------
    function
        Takes the point and the constants.
    first, second
        The two points, numbers in any order.
    constants
        Further operands of the function.

    Examples
    --------
    >>> found, ok = downhill(lambda x: (x - 9) ** 2, pt.as_tensor(0.0), pt.as_tensor(1.0), [])
    >>> first, last = (point.x.eval(mode="FAST_COMPILE") for point in (found.first, found.last))
    >>> bool(first < 9 < last), ok.eval(mode="FAST_COMPILE")
    (True, array(True))
    """
    a, b = (_evaluated(function, x.astype("float64"), constants) for x in (first, second))
    a, b = swap(pt.lt(a.value, b.value), a, b)
    c = _evaluated(function, b.x + _GOLDEN_GROWTH * (b.x - a.x), constants)
    ready = ~pt.lt(c.value, b.value)

    def step(*state: TensorVariable):  # type: ignore[no-untyped-def]
        (a, b, c), constants = (Point(*state[i : i + 2]) for i in (0, 2, 4)), state[7:]
        vertex, limit = _vertex_downhill(a, b, c), b.x + _LARGEST_GROWTH * (c.x - b.x)
        inside = pt.gt((vertex - c.x) * (b.x - vertex), 0)
        too_far = ~inside & pt.ge((vertex - limit) * (limit - c.x), 0)
        beyond = ~inside & ~too_far & pt.gt((vertex - limit) * (c.x - vertex), 0)
        golden = c.x + _GOLDEN_GROWTH * (c.x - b.x)
        x = pt.switch(too_far, limit, pt.switch(inside | beyond, vertex, golden))
        new = _evaluated(function, x, constants)
        lowest, highest = inside & pt.lt(new.value, c.value), inside & pt.gt(new.value, b.value)
        done = lowest | highest
        ends = choose(lowest, b, a), choose(lowest, new, b), choose(lowest, c, new)
        falls = beyond & pt.lt(new.value, c.value)
        b, c = choose(falls, c, b), choose(falls, new, c)
        further = _evaluated(function, c.x + _GOLDEN_GROWTH * (c.x - b.x), constants)
        moved = b, c, choose(falls | inside, further, new)
        a, b, c = (choose(done, end, on) for end, on in zip(ends, moved, strict=True))
        done |= ~pt.lt(c.value, b.value)
        return [*a, *b, *c, done], until(done)

    count = pt.switch(ready, 0, _GROWING_STEPS)
    found = iterate(step, [*a, *b, *c, ready], constants, n_steps=count)
    a, b, c = (Point(*found[i : i + 2]) for i in (0, 2, 4))
    below = pt.lt(b.value, c.value) & pt.le(b.value, a.value)
    below |= pt.lt(b.value, a.value) & pt.le(b.value, c.value)
    return Bracket(a, b, c), found[-1] & below


def given_bracket(
    function: Function, points: TensorVariable, constants: Sequence[TensorVariable]
) -> Bracket:
    """Return three given points as a bracket of a minimum.

    Parameters
    ----------
    function
        Takes the point and the constants.
    points
        Vector of three points in any order.
    constants
        Further operands of the function.

    Raises
    ------
    ValueError
        When run, if the points are not in order or the middle one is not the least.

    Examples
    --------
    >>> found = given_bracket(lambda x: (x - 1) ** 2, pt.as_tensor([0.0, 1.5, 5.0]), [])
    >>> found.middle.value.eval(mode="FAST_COMPILE")
    array(0.25)
    """
    three = CheckAndRaise(ValueError, "Bracketing interval must be length 2 or 3 sequence.")
    points = pt.sort(three(points.astype("float64"), pt.eq(points.shape[0], 3)))
    a, b, c = (_evaluated(function, points[i], constants) for i in range(3))
    between = CheckAndRaise(ValueError, _REQUIREMENT.format("xa < xb", "xb < xc"))
    below = CheckAndRaise(ValueError, _REQUIREMENT.format("f(xb) < f(xa)", "f(xb) < f(xc)"))
    x = between(b.x, pt.gt(b.x, a.x) & pt.lt(b.x, c.x))
    x = below(x, pt.lt(b.value, a.value) & pt.lt(b.value, c.value))
    return Bracket(a, Point(x, b.value), c)


def within(
    function: Function,
    bracket: Bracket,
    constants: Sequence[TensorVariable],
    tolerance: Callable[[TensorVariable], TensorVariable],
    steps: int,
) -> Found:
    """Return a minimum within a bracket.

    R. P. Brent, Algorithms for Minimization without Derivatives, 1973, chapter 5: parabolas through
    the three best points, and golden sections where these are slow.

    Parameters
    ----------
    function
        Takes the point and the constants.
    bracket
        Where the minimum is; the middle point is the first guess.
    constants
        Further operands of the function.
    tolerance
        Function of a point that returns the smallest step from it.
    steps
        Largest number of steps.

    Examples
    --------
    >>> parabola, near = lambda x: (x - 1) ** 2, lambda x: 1e-8 * pt.abs(x)
    >>> bracket = given_bracket(parabola, pt.as_tensor([0.0, 1.5, 5.0]), [])
    >>> point, done = within(parabola, bracket, [], near, 100)
    >>> float(point.eval(mode="FAST_COMPILE").round(6)), done.eval(mode="FAST_COMPILE")
    (1.0, array(True))
    """
    start = bracket.middle
    low, high = (f(bracket.first.x, bracket.last.x) for f in (pt.minimum, pt.maximum))

    def step(low, high, *state):  # type: ignore[no-untyped-def]
        x, w, v = (Point(*state[i : i + 2]) for i in (0, 2, 4))
        (move, move_before), constants = state[6:8], state[9:]
        least, middle = tolerance(x.x), (low + high) / 2
        done = pt.lt(pt.abs(x.x - middle), 2 * least - (high - low) / 2)
        p, q = _vertex(x, w, v)
        parabola = pt.gt(pt.abs(move_before), least) & pt.lt(pt.abs(p), abs(q * move_before / 2))
        parabola &= pt.gt(p, q * (low - x.x)) & pt.lt(p, q * (high - x.x))
        to_vertex = p / pt.switch(parabola, q, 1.0)
        at_edge = pt.lt(pt.minimum(x.x + to_vertex - low, high - x.x - to_vertex), 2 * least)
        to_vertex = pt.switch(at_edge, pt.switch(pt.ge(middle, x.x), least, -least), to_vertex)
        longer = pt.switch(pt.ge(x.x, middle), low - x.x, high - x.x)
        move_before = pt.switch(parabola, move, longer)
        move = pt.switch(parabola, to_vertex, _GOLDEN_PART * longer)
        sign = pt.switch(pt.ge(move, 0), 1.0, -1.0)
        u = _evaluated(function, x.x + sign * pt.maximum(pt.abs(move), least), constants)
        worse = pt.gt(u.value, x.value)
        cut, is_low = pt.switch(worse, u.x, x.x), pt.eq(worse, pt.lt(u.x, x.x))
        second = worse & (pt.le(u.value, w.value) | pt.eq(w.x, x.x))
        third = worse & (pt.le(u.value, v.value) | pt.eq(v.x, x.x) | pt.eq(v.x, w.x))
        ends = [pt.switch(~done & is_low, cut, low), pt.switch(~done & ~is_low, cut, high)]
        points = (
            choose(worse, x, u),
            choose(worse, choose(second, u, w), x),
            choose(second | ~worse, w, choose(third, u, v)),
        )
        kept = (choose(done, old, new) for old, new in zip((x, w, v), points, strict=True))
        return [*ends, *chain(*kept), move, move_before, done], until(done)

    nothing = pt.zeros((), "float64")
    first = [low, high, *start, *start, *start, nothing, nothing, pt.zeros((), "bool")]
    found = iterate(step, first, constants, n_steps=steps)
    return Found(found[2], found[-1] & ~pt.isnan(found[3]))


def in_bounds(
    function: Function,
    bounds: TensorVariable,
    constants: Sequence[TensorVariable],
    tolerance: float,
    steps: int,
) -> Found:
    """Return a minimum between two bounds.

    Parameters
    ----------
    function
        Takes the point and the constants.
    bounds
        Vector of the two bounds.
    constants
        Further operands of the function.
    tolerance
        Largest error of the point.
    steps
        Largest number of steps.

    Raises
    ------
    ValueError
        When run, if there are not two finite bounds in order.

    Examples
    --------
    >>> bounds = pt.as_tensor([0.0, 5.0])
    >>> point, _ = in_bounds(lambda x: (x - 1) ** 2, bounds, [], 1e-5, 100)
    >>> float(point.eval(mode="FAST_COMPILE").round(4))
    1.0
    """
    bounds = bounds.astype("float64")
    two = CheckAndRaise(ValueError, "bounds must have two elements.")
    bounds = two(bounds, pt.eq(bounds.shape[0], 2))
    low, high = bounds[0], bounds[1]
    finite = CheckAndRaise(ValueError, "Optimization bounds must be finite scalars.")
    low = finite(low, pt.all(pt.isfinite(bounds)))
    low = CheckAndRaise(ValueError, "The lower bound exceeds the upper bound.")(low, low <= high)
    first = _evaluated(function, low + _GOLDEN_PART * (high - low), constants)
    nowhere = pt.zeros((), "float64")
    bracket = Bracket(Point(low, nowhere), first, Point(high, nowhere))

    def least(x: TensorVariable) -> TensorVariable:
        return _ROOT_OF_EPS * pt.abs(x) + tolerance / 3

    return within(function, bracket, constants, least, steps)


def _evaluated(function: Function, x: TensorVariable, constants: Sequence[TensorVariable]) -> Point:
    return Point(x, function(x, *constants))


def _vertex_downhill(a: Point, b: Point, c: Point) -> TensorVariable:
    """Return the vertex of the parabola through three points."""
    to_c, to_a = (b.x - a.x) * (b.value - c.value), (b.x - c.x) * (b.value - a.value)
    twice = 2 * (to_a - to_c)
    twice = pt.switch(pt.lt(pt.abs(twice), 2 * _TINY), 2 * _TINY, twice)
    return b.x - ((b.x - c.x) * to_a - (b.x - a.x) * to_c) / twice


def _vertex(x: Point, w: Point, v: Point) -> tuple[TensorVariable, TensorVariable]:
    """Return the step from x to the vertex of the parabola through three points, as a quotient."""
    to_w, to_v = (x.x - w.x) * (x.value - v.value), (x.x - v.x) * (x.value - w.value)
    p, q = (x.x - v.x) * to_v - (x.x - w.x) * to_w, 2 * (to_v - to_w)
    return pt.switch(pt.gt(q, 0), -p, p), pt.abs(q)
