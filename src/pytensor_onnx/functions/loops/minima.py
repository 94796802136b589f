"""Minima of functions of one and several variables."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.loops.search_options import Found, Function, Point, choose, swap

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


_FALL, _SLOPE = 1e-4, 0.9
"""The constants of the Wolfe conditions, for the fall of the value and the slope after the step."""
_SHORTEST, _LONGEST = np.float64(1e-100), np.float64(1e100)
_RELATIVE_WIDTH = 1e-14
"""A search ends in an interval of this width, relative to its upper end."""
_LARGEST_PART = 0.66
"""An interval that two steps narrow by less is halved."""
_STEPS = 100


class Trial(NamedTuple):
    """A length of the step, with the value and the slope after it."""

    length: TensorVariable
    value: TensorVariable
    slope: TensorVariable


def low_enough(
    evaluate: Callable[..., tuple[TensorVariable, TensorVariable]],
    value: TensorVariable,
    slope: TensorVariable,
    first: TensorVariable,
    constants: Sequence[TensorVariable],
) -> tuple[TensorVariable, TensorVariable]:
    """Return a length that satisfies the strong Wolfe conditions, and whether one was found.

    J. J. Moré and D. J. Thuente, Line search algorithms with guaranteed sufficient decrease, ACM
    Transactions on Mathematical Software 20, 1994: cubic and quadratic polynomials through the best
    trial, the other end of the interval and the last trial. A trial that is not finite is a
    tenth as long the next time.

    Parameters
    ----------
    evaluate
        Function of the length and the constants that returns the value and the slope.
    value, slope
        Those before the step; the slope is negative.
    first
        The first length to try.
    constants
        Further operands of the function.

    Examples
    --------
    >>> parabola = lambda t: ((t - 3.0) ** 2, 2 * (t - 3.0))
    >>> start = [pt.as_tensor(x) for x in (9.0, -6.0, 1.0)]
    >>> length, ok = low_enough(parabola, *start, [])
    >>> 0.3 <= float(length.eval(mode="FAST_COMPILE")) <= 5.7, ok.eval(mode="FAST_COMPILE")
    (True, array(True))
    """
    zero, no = pt.zeros((), "float64"), pt.zeros((), "bool")
    first, value, slope = (x.astype("float64") for x in (first, value, slope))
    origin = Trial(zero, value, slope)

    def step(*state):  # type: ignore[no-untyped-def]
        search, rising, (value, slope, *constants) = _gathered(state[:12]), state[12], state[15:]
        length, best = search.length, search.best
        trial = Trial(length, *evaluate(length, *constants))
        finite = pt.isfinite(trial.value) & pt.isfinite(trial.slope)
        falls = finite & pt.le(trial.value, value + _FALL * slope * length)
        rising |= falls & pt.ge(trial.slope, 0)
        ok = falls & pt.le(pt.abs(trial.slope), -_SLOPE * slope)
        tilt = pt.switch(~rising & pt.le(trial.value, best.value) & ~falls, _FALL * slope, 0.0)
        ended = ok | (_is_stuck(search) & finite)
        new, old = _flat(_moved(search, trial, tilt)), _flat(search)
        # Of a trial that is not finite nothing is kept.
        kept = [pt.switch(finite & ~ended, a, b) for a, b in zip(new, old, strict=True)]
        shorter = best.length + (length - best.length) / 10
        kept[0] = pt.switch(finite, kept[0], shorter)
        return [*kept, rising, ok, ended], until(ended)

    width = pt.constant(_LONGEST - _SHORTEST)
    search = _Search(first, origin, origin, zero, 5 * first, width, 2 * width, no)
    state = [*_flat(search), no, no, no]
    found = iterate(step, state, [value, slope, *constants], n_steps=_STEPS)
    return found[0], found[-2]


class _Search(NamedTuple):
    """The next length to try, and the interval that it is in.

    ``best`` and ``other`` are the ends of the interval, which encloses a minimum once it is
    ``bracketed``. Lengths are from ``low`` to ``high``. The last are the widths of the interval
    after the last step and after the one before.
    """

    length: TensorVariable
    best: Trial
    other: Trial
    low: TensorVariable
    high: TensorVariable
    width: TensorVariable
    width_before: TensorVariable
    bracketed: TensorVariable


def _flat(search: _Search) -> list[TensorVariable]:
    """Return the states of a loop for a search."""
    length, best, other, *rest = search
    return [length, *best, *other, *rest]


def _gathered(state: Sequence[TensorVariable]) -> _Search:
    """Return the search for the states of a loop."""
    return _Search(state[0], Trial(*state[1:4]), Trial(*state[4:7]), *state[7:])


def _is_stuck(search: _Search) -> TensorVariable:
    """Return whether rounding errors leave no further length in the interval."""
    length, low, high = search.length, search.low, search.high
    outside = pt.le(length, low) | pt.ge(length, high)
    return search.bracketed & (outside | pt.le(high - low, _RELATIVE_WIDTH * high))


def _moved(search: _Search, trial: Trial, tilt: TensorVariable) -> _Search:
    """Return the search after a trial; the tilt is the slope of a line that is subtracted."""
    best, other, trial = (_tilted(t, -tilt) for t in (search.best, search.other, trial))
    tilted = search._replace(best=best, other=other)
    length, crossed = _next_length(tilted, trial)
    best, other = (_tilted(t, tilt) for t in _narrowed(best, other, trial))
    bracketed = search.bracketed | crossed
    size = pt.abs(other.length - best.length)
    too_wide = bracketed & pt.ge(size, _LARGEST_PART * search.width_before)
    middle = best.length + (other.length - best.length) / 2
    length = pt.switch(too_wide, middle, length)
    ends, growth = (best.length, other.length), length - best.length
    low = pt.switch(bracketed, pt.minimum(*ends), length + 1.1 * growth)
    high = pt.switch(bracketed, pt.maximum(*ends), length + 4 * growth)
    width = pt.switch(bracketed, size, search.width)
    width_before = pt.switch(bracketed, search.width, search.width_before)
    length = pt.clip(length, _SHORTEST, _LONGEST)
    moved = _Search(length, best, other, low, high, width, width_before, bracketed)
    return moved._replace(length=pt.switch(_is_stuck(moved), best.length, length))


def _tilted(trial: Trial, tilt: TensorVariable) -> Trial:
    """Return the trial of a function to which a line through zero is added."""
    return Trial(trial.length, trial.value + tilt * trial.length, trial.slope + tilt)


def _narrowed(best: Trial, other: Trial, trial: Trial) -> tuple[Trial, Trial]:
    """Return the new best trial, and that at the other end of the interval."""
    higher, turns = pt.gt(trial.value, best.value), pt.lt(trial.slope * pt.sign(best.slope), 0)
    other = _choose(higher, trial, _choose(turns, best, other))
    return _choose(higher, best, trial), other


def _next_length(search: _Search, trial: Trial) -> tuple[TensorVariable, TensorVariable]:
    """Return the next length to try, and whether the interval now encloses a minimum.

    ``between`` is the length if the value rises, ``turned`` if the slope changes its sign, and
    ``inside`` and ``ahead`` if the slope becomes flatter: the cases of section 4 of the paper.
    """
    best, low, high = search.best, search.low, search.high
    x, t = best.length, trial.length
    higher, turns = pt.gt(trial.value, best.value), pt.lt(trial.slope * pt.sign(best.slope), 0)
    flatter = pt.lt(pt.abs(trial.slope), pt.abs(best.slope))
    rise = (best.value - trial.value) / (t - x)
    by_values = x + best.slope / (rise + best.slope) / 2 * (t - x)
    by_slopes = t + trial.slope / (trial.slope - best.slope) * (x - t)
    cubic, _ = _cubic(best, trial)
    between = pt.switch(
        pt.le(pt.abs(cubic - x), pt.abs(by_values - x)), cubic, cubic + (by_values - cubic) / 2
    )
    beyond, _ = _cubic(trial, best)
    farther = pt.gt(pt.abs(beyond - t), pt.abs(by_slopes - t))
    turned = pt.switch(farther, beyond, by_slopes)
    end = pt.switch(pt.gt(t, x), high, low)
    flat, is_beyond = _cubic(trial, best, has_minimum=False)
    flat = pt.switch(is_beyond, flat, end)
    nearer = pt.lt(pt.abs(flat - t), pt.abs(by_slopes - t))
    inside = pt.switch(nearer, flat, by_slopes)
    limit = t + _LARGEST_PART * (search.other.length - t)
    inside = pt.switch(pt.gt(t, x), pt.minimum(limit, inside), pt.maximum(limit, inside))
    farther = pt.gt(pt.abs(flat - t), pt.abs(by_slopes - t))
    ahead = pt.clip(pt.switch(farther, flat, by_slopes), low, high)
    steep = pt.switch(search.bracketed, _cubic(trial, search.other)[0], end)
    falling = pt.switch(flatter, pt.switch(search.bracketed, inside, ahead), steep)
    return pt.switch(higher, between, pt.switch(turns, turned, falling)), higher | turns


def _cubic(
    near: Trial, far: Trial, *, has_minimum: bool = True
) -> tuple[TensorVariable, TensorVariable]:
    """Return the minimum of the cubic through two trials, and whether it is beyond the near one.

    Unless the trials are known to enclose a minimum, a negative radicand counts as zero.
    """
    theta = 3 * (near.value - far.value) / (far.length - near.length) + near.slope + far.slope
    size = pt.maximum(pt.abs(theta), pt.maximum(pt.abs(near.slope), pt.abs(far.slope)))
    radicand = (theta / size) ** 2 - (near.slope / size) * (far.slope / size)
    gamma = size * pt.sqrt(radicand if has_minimum else pt.maximum(radicand, 0.0))
    gamma = pt.switch(pt.lt(far.length, near.length), -gamma, gamma)
    ratio = (gamma - near.slope + theta) / (gamma - near.slope + gamma + far.slope)
    return near.length + ratio * (far.length - near.length), pt.lt(ratio, 0) & pt.neq(gamma, 0)


def _choose(condition: TensorVariable, yes: Trial, no: Trial) -> Trial:
    return Trial(*(pt.switch(condition, a, b) for a, b in zip(yes, no, strict=True)))


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
