"""Ascent of a log-density by L-BFGS, and the normal approximation that its steps imply.

The inverse of the negative Hessian is a diagonal and some pairs of steps and changes of the
gradient, in the product form of J. Nocedal, S. J. Wright, Numerical Optimization (2006), chapter 7;
the diagonal is that of J. C. Gilbert, C. Lemaréchal, Mathematical Programming 45 (1989) 407, as in
L. Zhang, B. Carpenter, A. Gelman, A. Vehtari, "Pathfinder: parallel quasi-Newton variational
inference", JMLR 23 (2022) 306.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.pymc.nuts import Density, State

PAIRS = 10
"""Pairs that the inverse of the Hessian has."""

MOST_STEPS = 1000
"""Steps after which the ascent ends."""

_TRIALS = 40
"""Lengths of a step to try."""

_RISE, _FLATTENING = 1e-4, 0.9
"""Constants of the Wolfe conditions: for the rise of the value, and for the slope."""

ROUNDING = 1e-12
"""Fall of a log-density that counts as none, relative to it."""

_LEAST_CURVATURE = 1e-12
"""Curvature of a pair that counts, relative to the square of the change of the gradient."""

DISTANCE = 1e-4
"""Distance to the maximum at which the ascent ends, in standard deviations of the approximation."""


class Inverse(NamedTuple):
    """The inverse of the negative Hessian of a log-density, from the last steps to a maximum.

    Attributes
    ----------
    diagonal
        Diagonal of the matrix before the pairs.
    steps, turns
        Steps, and falls of the gradient along them, of shape (pair, coordinate), the oldest first.
    weights
        Reciprocals of the products of both, zero for a pair that is missing.
    """

    diagonal: TensorVariable
    steps: TensorVariable
    turns: TensorVariable
    weights: TensorVariable


class Pair(NamedTuple):
    """One pair of an `Inverse`, or all of them."""

    step: TensorVariable
    turn: TensorVariable
    weight: TensorVariable


class Lengths(NamedTuple):
    """The length of a step to try, and the lengths between which a good one is."""

    trial: TensorVariable
    low: TensorVariable
    high: TensorVariable


class Line(NamedTuple):
    """A point, a direction, and the slope of the log-density along it."""

    origin: State
    direction: TensorVariable
    slope: TensorVariable


class Squares(NamedTuple):
    """The inverse of an `Inverse`: vectors whose squares are added and removed, and its volume."""

    added: TensorVariable
    removed: TensorVariable
    log_volume: TensorVariable


Visit = Callable[..., Any]
"""Function of a state, the inverse there, what was seen before and constants: what is seen now."""


def first_inverse(gradient: TensorVariable) -> Inverse:
    """Return the inverse at the start, with which the first step has at most the length one."""
    rows = pt.zeros((PAIRS, gradient.shape[0]), dtype="float64")
    length = pt.sqrt((gradient * gradient).sum())
    diagonal = pt.zeros_like(gradient) + 1.0 / pt.maximum(length, 1.0)
    return Inverse(diagonal, rows, rows, pt.zeros(PAIRS, dtype="float64"))


def ascend(
    density: Density,
    data: Sequence[TensorVariable],
    start: State,
    visit: Visit | None = None,
    seen: Any = (),
    constants: Sequence[Any] = (),
) -> tuple[State, TensorVariable, Any]:
    """Ascend to a maximum of a log-density.

    Parameters
    ----------
    density, data
        The log-density of a point with its gradient, and the further variables that it takes.
    start
        The point to start from.
    visit
        Function of the state after a step, the inverse there, what earlier calls returned, the
        constants and the data.
    seen
        What the first call gets.
    constants
        Variables that it takes.

    Returns
    -------
    State
        The last point.
    TensorVariable
        Number of steps.
    Any
        Result of the last call of ``visit``.

    Examples
    --------
    >>> x = pt.constant(np.zeros(2))
    >>> density = lambda x: [-pt.sum((x - [1.0, 2.0]) ** 4), -4 * (x - [1.0, 2.0]) ** 3]
    >>> last, n_steps, _ = ascend(density, [], State(x, *density(x)))
    >>> last.x.eval(mode="FAST_COMPILE").round(1)
    array([1., 2.])
    """
    n_constants = len(constants)

    def step(
        now: State, inverse: Inverse, count: TensorVariable, seen: Any, *given: Any
    ) -> tuple[list, until]:
        data = given[n_constants:]
        direction = times(inverse, now.gradient)
        after = higher_point(density, data, now, direction)
        moved = after.log_density > now.log_density
        inverse = updated(inverse, after.x - now.x, now.gradient - after.gradient)
        found = seen if visit is None else visit(after, inverse, seen, *given)
        decrement = (after.gradient * times(inverse, after.gradient)).sum()
        goes_on = moved & (decrement > DISTANCE**2)
        return [after, inverse, count + 1, found], until(~goes_on)

    zero = pt.constant(np.int64(0))
    states = [start, first_inverse(start.gradient), zero, seen]
    last, _, count, found = iterate(step, states, [*constants, *data], n_steps=MOST_STEPS)
    return last, count, found


def higher_point(
    density: Density, data: Sequence[TensorVariable], origin: State, direction: TensorVariable
) -> State:
    """Return a point on a line that satisfies the Wolfe conditions, or else the last higher one.

    The length is halved while the value does not rise enough, and doubled while the slope is as
    steep as before, until both ends are known, and then bisected.
    """
    slope = (origin.gradient * direction).sum()
    lengths = Lengths(*(pt.constant(np.float64(x)) for x in (1.0, 0.0, np.inf)))
    line = Line(origin, direction, slope)
    _, best = iterate(
        partial(_try_length, density), [lengths, origin], [line, *data], n_steps=_TRIALS
    )
    return best


def _try_length(
    density: Density, lengths: Lengths, best: State, line: Line, *data: TensorVariable
) -> tuple[list, until]:
    """Return the states of a search after a trial, and the condition for the end."""
    (length, low, high), (origin, direction, slope) = lengths, line
    x = origin.x + length * direction
    value, gradient = density(x, *data)
    after = (gradient * direction).sum()
    least = origin.log_density - ROUNDING * pt.abs(origin.log_density)
    rises = (value >= least + _RISE * slope * length) & pt.isfinite(value + after)
    is_flat = after <= _FLATTENING * slope
    low, high = pt.switch(rises, length, low), pt.switch(rises, high, length)
    following = pt.switch(high < np.inf, 0.5 * (low + high), 2.0 * length)
    kept = [pt.switch(rises, a, b) for a, b in zip((x, value, gradient), best, strict=True)]
    return [Lengths(following, low, high), State(*kept)], until(rises & is_flat)


def updated(inverse: Inverse, step: TensorVariable, turn: TensorVariable) -> Inverse:
    """Return the inverse after a step; one along which the gradient does not fall changes none."""
    diagonal = inverse.diagonal
    product = (step * turn).sum()
    fits = product > _LEAST_CURVATURE * (turn * turn).sum()
    of_turn, of_step = (turn * turn * diagonal).sum(), (step * step / diagonal).sum()
    curvatures = of_turn / (product * diagonal) + turn * turn / product
    curvatures -= of_turn * step * step / (product * of_step * diagonal * diagonal)
    weight = 1.0 / product
    rows = [
        pt.concatenate([old[1:], new[None]])
        for old, new in zip(inverse[1:], (step, turn, weight), strict=True)
    ]
    new = [1.0 / curvatures, *rows]
    return Inverse(*(pt.switch(fits, a, b) for a, b in zip(new, inverse, strict=True)))


def times(inverse: Inverse, vector: TensorVariable) -> TensorVariable:
    """Return the product of the inverse with a vector."""
    diagonal, pairs = inverse.diagonal, Pair(*inverse[1:])

    def backwards(pair: Pair, x: TensorVariable) -> list[TensorVariable]:
        share = pair.weight * (pair.step * x).sum()
        return [x - share * pair.turn, share]

    def forwards(pair: Pair, share: TensorVariable, x: TensorVariable) -> list[TensorVariable]:
        return [x + (share - pair.weight * (pair.turn * x).sum()) * pair.step]

    reverse = Pair(*(rows[::-1] for rows in pairs))
    x, shares = iterate(backwards, [vector], sequences=[reverse], n_steps=PAIRS)
    (x,) = iterate(forwards, [diagonal * x], sequences=[pairs, shares[::-1]], n_steps=PAIRS)
    return x


def normal_draws(inverse: Inverse, normals: TensorVariable) -> TensorVariable:
    """Return draws from a normal distribution around zero with the inverse as its covariance.

    With a pair, the covariance C becomes (I - w s y') C (I - w y s') + w s s', which is that of a
    draw from the former, minus w s y' times it, plus √w s times another normal number.

    Parameters
    ----------
    inverse
        The covariance.
    normals
        Standard normal numbers, of shape (draw, coordinate + `PAIRS`).
    """
    size = inverse.diagonal.shape[0]

    def add_pair(pair: Pair, normal: TensorVariable, x: TensorVariable) -> list[TensorVariable]:
        shares = pt.sqrt(pair.weight) * normal - pair.weight * (x @ pair.turn)
        return [x + shares[:, None] * pair.step]

    (draws,) = iterate(
        add_pair,
        [pt.sqrt(inverse.diagonal) * normals[:, :size]],
        sequences=[Pair(*inverse[1:]), normals[:, size:].T],
        n_steps=PAIRS,
    )
    return draws


def normal_log_densities(inverse: Inverse, draws: TensorVariable) -> TensorVariable:
    """Return the log-densities of draws from `normal_draws`.

    The inverse of the covariance is the diagonal's, and for each pair plus the square of one vector
    minus that of another (Nocedal and Wright, procedure 7.6).

    Parameters
    ----------
    inverse
        The covariance.
    draws
        Of shape (draw, coordinate).
    """
    diagonal = inverse.diagonal
    size = diagonal.shape[0].astype("float64")

    def add_pair(
        place: TensorVariable, pair: Pair, squares: Squares, diagonal: TensorVariable
    ) -> list[Squares]:
        (step, turn, weight), (added, removed, log_volume) = pair, squares
        image = step / diagonal + (added @ step) @ added - (removed @ step) @ removed
        length = (step * image).sum()
        exists = weight > 0.0
        unit = pt.switch(exists, image / pt.sqrt(length), 0.0)
        growth = pt.switch(exists, pt.log(length * weight), 0.0)
        added = added + place[:, None] * (pt.sqrt(weight) * turn)
        return [Squares(added, removed + place[:, None] * unit, log_volume + growth)]

    none = pt.zeros_like(inverse.steps)
    (squares,) = iterate(
        add_pair,
        [Squares(none, none, pt.log(diagonal).sum())],
        [diagonal],
        sequences=[pt.constant(np.eye(PAIRS)), Pair(*inverse[1:])],
        n_steps=PAIRS,
    )
    distances = (draws * draws / diagonal).sum(axis=1)
    distances += pt.sqr(draws @ squares.added.T).sum(axis=1)
    distances -= pt.sqr(draws @ squares.removed.T).sum(axis=1)
    return -0.5 * (size * np.log(2.0 * np.pi) + squares.log_volume + distances)
