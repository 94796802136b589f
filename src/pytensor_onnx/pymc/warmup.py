"""Warm-up of a sampler: the step size by dual averaging, the scale of coordinates in windows."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

FIRST, WINDOW, LAST = 75, 25, 50
"""Steps before, in the first of, and after the windows, as in Stan."""

SHRINKAGE, SHIFT, DECAY = 0.05, 10.0, 0.75
"""The constants gamma, t0 and kappa of dual averaging."""


class StepSize(NamedTuple):
    """State of dual averaging.

    Attributes
    ----------
    log_step
        Logarithm of the step size.
    mean_log_step
        Its weighted mean, which becomes the step size after the warm-up.
    target
        Where the logarithm shrinks to.
    error
        Weighted mean of the errors of the acceptance.
    count
        Number of steps since the start.
    """

    log_step: TensorVariable
    mean_log_step: TensorVariable
    target: TensorVariable
    error: TensorVariable
    count: TensorVariable


class Scale(NamedTuple):
    """Standard deviations of coordinates, and the running sums for the next estimate.

    Attributes
    ----------
    scale
        Standard deviations in use.
    mean, squares
        Mean and sum of squared deviations of the draws in the present window.
    count
        Number of these draws.
    """

    scale: TensorVariable
    mean: TensorVariable
    squares: TensorVariable
    count: TensorVariable


class Schedule(NamedTuple):
    """Adaptation after each step of a chain.

    Attributes
    ----------
    is_warmup
        Whether the step size adapts.
    is_in_window
        Whether the draw counts for the next scale.
    ends_window
        Whether the scale becomes that of the window.
    ends_first_window
        Whether the adaptation of the step size restarts, since the scale is no longer one.
    ends_warmup
        Whether the step size becomes its mean.
    """

    is_warmup: TensorVariable
    is_in_window: TensorVariable
    ends_window: TensorVariable
    ends_first_window: TensorVariable
    ends_warmup: TensorVariable


def first_step_size(log_step: TensorVariable) -> StepSize:
    """Return the state of dual averaging that starts from the logarithm of a step size."""
    zeros, count = pt.zeros_like(log_step), pt.constant(np.float64(0.0))
    return StepSize(log_step, zeros, log_step + np.log(10.0), zeros, count)


def first_scale(gradient: TensorVariable) -> Scale:
    """Return the scales from the gradient at the start of a chain.

    A density that is steep in a coordinate is narrow there: at the distance of one standard
    deviation from its mode, a normal density has the gradient 1/sd, and at a random start on the
    scale of one about 1/sd**2. Scales are at most one, so that a start near a mode is no wide one.
    """
    slope, zeros = pt.abs(gradient), pt.zeros_like(gradient)
    scale = pt.switch(slope > 1.0, 1.0 / pt.sqrt(slope), 1.0)
    return Scale(scale, zeros, zeros, pt.constant(np.float64(0.0)))


def schedule(n_warmup: TensorVariable, n_steps: TensorVariable) -> Schedule:
    """Return the schedule of the steps of a chain, as vectors.

    The scale is that of windows of 25, 50, 100, … steps, after 75 steps in which the chain finds
    the bulk of the distribution and before 50 in which the step size settles. The last window is
    longer, so that all fit; warm-ups below 150 steps spend 15 and 10 per cent of them before and
    after one window, those below 20 have none (Stan Reference Manual, section "HMC algorithm
    parameters").

    Examples
    --------
    >>> plan = schedule(pt.constant(1000), pt.constant(1010))
    >>> np.flatnonzero(plan.ends_window.eval(mode="FAST_COMPILE")).tolist()
    [99, 149, 249, 449, 949]
    >>> np.flatnonzero(plan.ends_warmup.eval(mode="FAST_COMPILE")).tolist()
    [999]
    """
    is_short = n_warmup < FIRST + WINDOW + LAST
    first = pt.switch(is_short, (n_warmup * 15) // 100, FIRST)
    end = n_warmup - pt.switch(is_short, n_warmup // 10, LAST)
    steps = pt.arange(n_steps)
    has_window = n_warmup >= 20
    # A window ends early enough for one of twice its size, or it is joined to the next.
    sizes = WINDOW * 2 ** np.arange(40)
    ends = first + np.cumsum(sizes)
    is_kept = ~is_short & ((ends + 2 * sizes <= end) | pt.eq(pt.arange(40), 0))
    ends = pt.switch(is_kept, pt.minimum(ends, end), end)
    return Schedule(
        is_warmup=steps < n_warmup,
        is_in_window=(steps >= first) & (steps < end) & has_window,
        ends_window=pt.eq(steps[:, None] + 1, ends).any(axis=1) & has_window,
        ends_first_window=pt.eq(steps + 1, ends[0]) & has_window,
        ends_warmup=pt.eq(steps + 1, n_warmup),
    )


def adapt_step_size(
    state: StepSize, acceptance: TensorVariable, target_acceptance: float
) -> StepSize:
    """Return the state after a draw (M. D. Hoffman, A. Gelman, JMLR 15 (2014) 1593, eq. 6)."""
    count = state.count + 1.0
    share = 1.0 / (count + SHIFT)
    error = (1.0 - share) * state.error + share * (target_acceptance - acceptance)
    log_step = state.target - pt.sqrt(count) / SHRINKAGE * error
    weight = count**-DECAY
    mean = weight * log_step + (1.0 - weight) * state.mean_log_step
    return StepSize(log_step, mean, state.target, error, count)


def adapt_scale(state: Scale, x: TensorVariable) -> Scale:
    """Return the state after a draw (B. P. Welford, Technometrics 4 (1962) 419)."""
    count = state.count + 1.0
    difference = x - state.mean
    mean = state.mean + difference / count
    return Scale(state.scale, mean, state.squares + difference * (x - mean), count)


def window_scale(state: Scale) -> Scale:
    """Return the state after a window, with the scale of its draws.

    Variances shrink to 0.001 as if five more draws had it, as in Stan.
    """
    n = state.count
    variance = state.squares / (n - 1.0)
    regular = (n * variance + 1e-3 * 5.0) / (n + 5.0)
    zeros = pt.zeros_like(state.mean)
    return Scale(pt.sqrt(regular), zeros, zeros, pt.constant(np.float64(0.0)))


def after_draw(
    step_size: StepSize,
    scale: Scale,
    x: TensorVariable,
    acceptance: TensorVariable,
    plan: Schedule,
    target_acceptance: float,
) -> tuple[StepSize, Scale]:
    """Return the states of the adaptation after a draw, by its row of the schedule.

    The step size is relative to the scale. Its adaptation restarts after the first window, and not
    after each as in Stan, which leaves 50 steps for the last mean, and acceptance 0.1 above target.
    """
    now = [*step_size, *scale]
    step_size = adapt_step_size(step_size, acceptance, target_acceptance)
    scale = _chosen(plan.is_in_window, adapt_scale(scale, x), scale)
    scale = _chosen(plan.ends_window, window_scale(scale), scale)
    restarted = first_step_size(step_size.log_step)
    step_size = _chosen(plan.ends_first_window, restarted, step_size)
    settled = pt.switch(plan.ends_warmup, step_size.mean_log_step, step_size.log_step)
    adapted = [*step_size._replace(log_step=settled), *scale]
    states = ifelse(plan.is_warmup, adapted, now)
    return StepSize(*states[: len(step_size)]), Scale(*states[len(step_size) :])


def _chosen[T: tuple](condition: TensorVariable, first: T, second: T) -> T:
    """Select `first` for chains where a condition holds, and `second` for the other chains."""
    return type(first)(*(pt.switch(condition, a, b) for a, b in zip(first, second, strict=True)))
