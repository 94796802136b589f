"""Line search: the length of a step after which a function and its slope are low enough."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate

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
