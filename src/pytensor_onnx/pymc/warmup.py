"""The warm-up of a chain: its step size and the scales of its coordinates adapt after each step.

The scale of a coordinate comes from the draws and from the gradients there, and is estimated anew
at each step, as in nutpie (arXiv:2603.18845): the square root of the ratio of their standard
deviations, which is the standard deviation itself for independent normal coordinates.
"""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import leaves, mapped
from pytensor_onnx.pymc.low_rank import (
    Points,
    Updates,
    correction_of,
    no_correction,
    no_points,
    updates_of,
    with_point,
)
from pytensor_onnx.pymc.nuts import Correction, Scaling, State

EARLY, LAST = 30, 15
"""Percentages of the warm-up with short windows, and at its end with fixed scales."""

SHORT, LONG, GROWTH = 10, 80, 1.5
"""Steps of an early window and of the first later one, and its ratio to the one before it."""

SHRINKAGE, SHIFT = 0.05, 10.0
"""The constants gamma and t0 of dual averaging; kappa is 3/4."""

LEAST, LARGEST = 1e-30, 1e30
"""Ratios of sums of squares beyond which a scale stays as it is."""


class StepSize(NamedTuple):
    """State of dual averaging.

    Attributes
    ----------
    log_step
        Logarithm of the step size.
    mean_log_step
        Its weighted mean, which becomes the step size after the warm-up.
    target
        Value that the logarithm shrinks to.
    error
        Weighted mean of the errors of the acceptance.
    """

    log_step: TensorVariable
    mean_log_step: TensorVariable
    target: TensorVariable
    error: TensorVariable


class Scale(NamedTuple):
    """Scales of coordinates, and sums over the points of two windows.

    The first window gives the scales. The second one is younger, and takes its place when it ends.

    Attributes
    ----------
    scale
        Scales in use.
    means, squares
        Means and sums of squared deviations, of shape (window, 2, ..., coordinate): of draws and of
        gradients.
    """

    scale: TensorVariable
    means: TensorVariable
    squares: TensorVariable


class Metric(NamedTuple):
    """The metric of a chain: its scales, and their correction with the points that it comes from.

    A diagonal metric has empty tuples for the last two. With a correction, the scales change when
    it changes.

    Attributes
    ----------
    scale
        Scales that are estimated at each step.
    correction
        The correction, for the scales in ``used``.
    used
        Scales in use.
    points
        The last draws.
    """

    scale: Scale
    correction: Correction | tuple[()] = ()
    used: TensorVariable | tuple[()] = ()
    points: Points | tuple[()] = ()

    @property
    def scaling(self) -> Scaling:
        """The scales in use, with their correction."""
        return Scaling(self.used, self.correction) if self.correction else Scaling(self.scale.scale)


class Schedule(NamedTuple):
    """Adaptation after each step of a chain.

    Attributes
    ----------
    is_warmup, ends_warmup
        Whether the step size adapts, and whether it becomes its mean.
    is_in_window, ends_window
        Whether the scales adapt, and whether the second window takes the place of the first.
    window_shares
        Shares of the draw in the means of both windows, of shape (step, 2).
    error_share, gain, weight
        Factors of dual averaging: share of an error in their mean, effect of this mean on the
        logarithm of the step size, and weight of the logarithm in its mean.
    updates
        When a low-rank correction changes; an empty tuple without one.
    """

    is_warmup: TensorVariable
    ends_warmup: TensorVariable
    is_in_window: TensorVariable
    ends_window: TensorVariable
    window_shares: TensorVariable
    error_share: TensorVariable
    gain: TensorVariable
    weight: TensorVariable
    updates: Updates | tuple[()] = ()


def first_step_size(log_step: TensorVariable) -> StepSize:
    """Return the state of dual averaging that starts from the logarithm of a step size."""
    zeros = pt.zeros_like(log_step)
    return StepSize(log_step, zeros, log_step + np.log(10.0), zeros)


def first_scale(x: TensorVariable, gradient: TensorVariable) -> Scale:
    """Return the scales from the gradient at the start of a chain, and sums of this one point.

    A density that is steep in a coordinate is narrow there: at the distance of one standard
    deviation from its mode, a normal density has the gradient 1/sd, and at a random start on the
    scale of one about 1/sd**2. Scales are at most one, so that a start near a mode is no wide one.
    """
    slope = pt.abs(gradient)
    scale = pt.switch(slope > 1.0, 1.0 / pt.sqrt(slope), 1.0)
    points = pt.stack([x, gradient])
    means = pt.stack([points, points])
    return Scale(scale, means, pt.zeros_like(means))


def first_metric(x: TensorVariable, gradient: TensorVariable, *, low_rank: bool) -> Metric:
    """Return the metric at the start of a chain."""
    scale = first_scale(x, gradient)
    if not low_rank:
        return Metric(scale)
    return Metric(scale, no_correction(x), scale.scale, no_points(x))


def schedule(
    n_warmup: TensorVariable,
    n_steps: TensorVariable,
    begin: TensorVariable | int = 0,
    *,
    low_rank: bool = False,
) -> Schedule:
    """Return the schedule of steps of a chain, the first one or later ones, as vectors.

    The scales come from the window before the present one and from this together. Windows have ten
    steps in the first 30 per cent of a warm-up, and then 80, 120, 180, … steps. A window ends only
    if the next one ends before the last 15 per cent, in which the scales are fixed; the start
    counts as a draw of the first window.

    Examples
    --------
    >>> plan = schedule(pt.constant(1000), pt.constant(1010))
    >>> np.flatnonzero(plan.ends_window.eval(mode="FAST_COMPILE"))[27:].tolist()
    [279, 289, 299, 379, 499]
    >>> np.flatnonzero(plan.ends_warmup.eval(mode="FAST_COMPILE")).tolist()
    [999]
    """
    n_fixed = n_warmup * LAST // 100
    early = n_warmup * EARLY // 100 // SHORT * SHORT
    sizes = np.round(LONG * GROWTH ** np.arange(40)).astype("int64")
    ends = np.cumsum(sizes)[:-1]
    fits = early + ends + sizes[1:] <= n_warmup - n_fixed
    bounds = pt.constant(np.append(0, ends))

    def begin_of_window(steps: TensorVariable) -> TensorVariable:
        count = ((early + ends <= steps[:, None]) & fits).sum(axis=1)
        return pt.switch(steps < early, steps // SHORT * SHORT, early + bounds[count])

    steps = begin + pt.arange(n_steps)
    second = begin_of_window(steps)
    first = begin_of_window(pt.maximum(second - 1, 0))
    starts = pt.stack([first, second], axis=1)
    counts = steps[:, None] + 1 - starts + pt.eq(starts, 0)
    count = (steps + 1).astype("float64")
    root = pt.sqrt(count)
    ends_window = pt.eq(begin_of_window(steps + 1), steps + 1) & (steps < n_warmup)
    is_in_window = (steps > 0) & (steps < n_warmup - n_fixed)
    return Schedule(
        is_warmup=steps < n_warmup,
        ends_warmup=pt.eq(steps + 1, n_warmup),
        is_in_window=is_in_window,
        ends_window=ends_window,
        window_shares=1.0 / counts.astype("float64"),
        error_share=1.0 / (count + SHIFT),
        gain=root / SHRINKAGE,
        # Roots are equal in all runtimes, and powers are not.
        weight=1.0 / (root * pt.sqrt(root)),
        updates=updates_of(steps, starts, ends_window, is_in_window) if low_rank else (),
    )


def adapt_step_size(
    state: StepSize, acceptance: TensorVariable, plan: Schedule, target_acceptance: float
) -> StepSize:
    """Return the state after a draw (M. D. Hoffman, A. Gelman, JMLR 15 (2014) 1593, eq. 6)."""
    error = state.error + plan.error_share * (target_acceptance - acceptance - state.error)
    log_step = state.target - plan.gain * error
    mean = state.mean_log_step + plan.weight * (log_step - state.mean_log_step)
    return StepSize(log_step, mean, state.target, error)


def adapt_scale(state: Scale, x: TensorVariable, gradient: TensorVariable, plan: Schedule) -> Scale:
    """Return the state after a draw; sums as by B. P. Welford, Technometrics 4 (1962) 419."""
    points = pt.stack([x, gradient])
    shares = plan.window_shares[(slice(None), *[None] * points.type.ndim)]
    difference = points - state.means
    means = state.means + shares * difference
    squares = state.squares + difference * (points - means)
    is_first = np.array([1.0, 0.0]).reshape((2, *[1] * points.type.ndim))
    means = pt.switch(plan.ends_window, means[1:], means)
    squares = pt.switch(plan.ends_window, squares[1:] * is_first, squares)
    ratio = squares[0, 0] / squares[0, 1]
    # A chain that has not moved has no ratio.
    is_known = plan.is_in_window & (ratio > LEAST) & (ratio < LARGEST)
    return Scale(pt.switch(is_known, pt.sqrt(pt.sqrt(ratio)), state.scale), means, squares)


def adapt_metric(
    metric: Metric, x: TensorVariable, gradient: TensorVariable, plan: Schedule
) -> Metric:
    """Return the metric after a draw."""
    scale = adapt_scale(metric.scale, x, gradient, plan)
    if not (metric.correction and metric.points and plan.updates):
        return Metric(scale)
    points = with_point(metric.points, x, gradient, plan.updates.row)
    correction = correction_of(points, scale.scale, plan.updates, metric.correction)
    now = [*metric.correction, metric.used]
    *changed, used = ifelse(plan.updates.is_due, [*correction, scale.scale], now)
    return Metric(scale, Correction(*changed), used, points)


def after_draw(
    step_size: StepSize,
    metric: Metric,
    draw: State,
    acceptance: TensorVariable,
    plan: Schedule,
    target_acceptance: float,
) -> tuple[StepSize, Metric]:
    """Return the states of the adaptation after a draw, by its row of the schedule.

    The step size is relative to the metric.
    """
    now = leaves([step_size, metric])
    step_size = adapt_step_size(step_size, acceptance, plan, target_acceptance)
    settled = pt.switch(plan.ends_warmup, step_size.mean_log_step, step_size.log_step)
    metric = adapt_metric(metric, draw.x, draw.gradient, plan)
    step_size = step_size._replace(log_step=settled)
    states = iter(ifelse(plan.is_warmup, leaves([step_size, metric]), now))
    return tuple(mapped(lambda _: next(states), part) for part in (step_size, metric))
