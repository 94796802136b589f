"""Chains and their warm-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.random.draws import NormalPairs, StandardUniform
from pytensor_onnx.pymc.nuts import Density, Randomness, State, draw
from pytensor_onnx.pymc.posterior import state_of_seed

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


def schedule(
    n_warmup: TensorVariable, n_steps: TensorVariable, begin: TensorVariable | int = 0
) -> Schedule:
    """Return the schedule of steps of a chain, the first one or later ones, as vectors.

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
    steps = begin + pt.arange(n_steps)
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


ATTEMPTS = 100
"""Starts to try until the density and its gradient are finite, as in Stan."""

_UNIFORMS, _STARTS = 2**30, 2**31
"""Streams of uniform numbers and of starts; normal numbers have stream zero."""

POSITION = "x"
OUTPUTS = (
    *(POSITION, "lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging"),
    *("step_size", "finite_start"),
)
"""Results of `sample_chains`, named as in ArviZ."""


class Numbers(NamedTuple):
    """Random numbers of one chain, or of several chains along the last axis but one.

    Attributes
    ----------
    normals
        Standard normal numbers of shape (step, coordinate).
    uniforms
        Numbers in [0, 1) of shape (step, doubling, 3); several chains have the last axis.
    jitters
        Numbers in (-1, 1) of shape (attempt, coordinate).
    """

    normals: TensorVariable
    uniforms: TensorVariable
    jitters: TensorVariable


class ChainState(NamedTuple):
    """The last draw of a chain, or of several, and the state of its adaptation."""

    draw: State
    step_size: StepSize
    scale: Scale


class Chains(NamedTuple):
    """Variables that chains are computed from, as in `sample_chains`, and their schedule."""

    center: TensorVariable
    seed: TensorVariable
    n_warmup: TensorVariable
    plan: Schedule
    data: Sequence[TensorVariable]
    starts: TensorVariable | None


Sampler = Callable[..., tuple[list[TensorVariable], TensorVariable]]
"""Function that returns the traces of all steps, and whether the starts are finite."""


class Requested(NamedTuple):
    """Arguments of a call of a sampler.

    Attributes
    ----------
    seed
        int64 vector, one number for each chain. The random numbers of a chain depend on its own
        seed only, and a longer chain begins with the draws of a shorter one of equal warm-up.
    n_warmup, n_draws
        Numbers of steps, 0-d integers.
    starts
        Matrix of a start for each chain, used as it is.
    """

    seed: TensorVariable
    n_warmup: TensorVariable
    n_draws: TensorVariable
    starts: TensorVariable | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of the sampler, which are fixed in the file.

    Attributes
    ----------
    lockstep
        Whether the chains take each leapfrog step together, or run one after another.
    max_depth
        Largest number of doublings of a trajectory.
    target_acceptance
        Acceptance that the step size is adapted to.
    """

    lockstep: bool = True
    max_depth: int = 10
    target_acceptance: float = 0.8


def sample_chains(
    density: Density,
    center: TensorVariable,
    requested: Requested,
    data: Sequence[TensorVariable] = (),
    settings: Settings = Settings(),
) -> dict[str, TensorVariable]:
    """Return the draws of chains, one for each seed, and their statistics.

    Parameters
    ----------
    density
        Function of a point, or of a matrix of a point for each chain if they run in lockstep, and
        of the variables in ``data``. It returns the log-density and its gradient.
    center
        Vector around which chains start, each coordinate moved by a uniform number in (-1, 1).
    requested
        Seeds, numbers of steps, and starts.
    data
        Variables that the density uses.
    settings
        How the chains are sampled.
    """
    seed, n_warmup, n_draws, starts = requested
    plan = schedule(n_warmup, n_warmup + n_draws)
    sample = partial(_sample, density, settings)
    run = _in_lockstep if settings.lockstep else _in_turn
    results = run(sample, Chains(center, seed, n_warmup, plan, data, starts), settings.max_depth)
    return dict(zip(OUTPUTS, results, strict=True))


def _in_turn(sample: Sampler, chains: Chains, max_depth: int) -> list[TensorVariable]:
    """Return the results of chains that run one after another."""
    center, seed, n_warmup, plan, data, starts = chains

    def chain(seed: TensorVariable, *variables: TensorVariable) -> list[TensorVariable]:
        rest = list(variables)
        start = None if starts is None else rest.pop(0)
        center, n_warmup, *fixed = rest
        rows, data = Schedule(*fixed[: len(plan)]), fixed[len(plan) :]
        drawn = _numbers(seed, rows.is_warmup.shape[0], center.shape[0], max_depth)
        traces, is_finite = sample(data, center, start, drawn, rows)
        return [*(trace[n_warmup:] for trace in traces), is_finite]

    sequences = [seed] if starts is None else [seed, starts]
    fixed = [center, n_warmup, *plan, *data]
    return pytensor.scan(chain, sequences, non_sequences=fixed, return_updates=False, name="chains")


def _in_lockstep(sample: Sampler, chains: Chains, max_depth: int) -> list[TensorVariable]:
    """Return the results of chains that take each leapfrog step together."""
    center, seed, n_warmup, plan, data, starts = chains

    def numbers(
        seed: TensorVariable, n_steps: TensorVariable, size: TensorVariable
    ) -> list[TensorVariable]:
        return list(_numbers(seed, n_steps, size, max_depth))

    size, n_steps, n_chains = center.shape[0], plan.is_warmup.shape[0], seed.shape[0]
    normals, uniforms, jitters = pytensor.scan(
        numbers, [seed], non_sequences=[n_steps, size], return_updates=False, name="numbers"
    )
    # A loop over no chains has lost the sizes of a row.
    drawn = Numbers(
        normals.reshape((n_chains, n_steps, size)).swapaxes(0, 1),
        pt.moveaxis(uniforms.reshape((n_chains, n_steps, max_depth, 3)), 0, -1),
        jitters.reshape((n_chains, ATTEMPTS, size)).swapaxes(0, 1),
    )
    traces, is_finite = sample(data, center, starts, drawn, plan)
    return [*(_by_chain(trace[n_warmup:], seed, size) for trace in traces), is_finite]


def _numbers(
    seed: TensorVariable, n_steps: TensorVariable, size: TensorVariable, max_depth: int
) -> Numbers:
    """Return the random numbers of a chain."""
    normals, uniforms = numbers_of_steps(seed, n_steps, size, max_depth)
    _, starts = StandardUniform("float64")(state_of_seed(seed, _STARTS), ATTEMPTS * size)
    return Numbers(normals, uniforms, (2.0 * starts - 1.0).reshape((ATTEMPTS, size)))


def numbers_of_steps(
    seed: TensorVariable,
    n_steps: TensorVariable,
    size: TensorVariable,
    max_depth: int,
    begin: TensorVariable | int = 0,
) -> tuple[TensorVariable, TensorVariable]:
    """Return the normal and uniform numbers of steps of a chain, the first one or later ones."""
    first = begin * size
    # A pair of normal numbers has two words, and may belong to two steps.
    before = first % 2
    state = state_of_seed(seed, 0, first - before)
    _, normals = NormalPairs("float64")(state, before + n_steps * size)
    per_step = 3 * max_depth
    state = state_of_seed(seed, _UNIFORMS, begin * per_step)
    _, uniforms = StandardUniform("float64")(state, n_steps * per_step)
    return (
        normals[before:].reshape((n_steps, size)),
        uniforms.reshape((n_steps, max_depth, 3)),
    )


def _sample(
    density: Density,
    settings: Settings,
    data: Sequence[TensorVariable],
    center: TensorVariable,
    given: TensorVariable | None,
    numbers: Numbers,
    plan: Schedule,
) -> tuple[list[TensorVariable], TensorVariable]:
    """Return the traces of all steps, and whether the starts are finite."""
    first, is_finite = _start(density, data, center, given, numbers.jitters)
    rows = numbers.normals, numbers.uniforms
    _, traces = take_steps(density, settings, first_state(first), rows, plan, data)
    return traces, is_finite


def first_state(start: State) -> ChainState:
    """Return the state of a chain at its start."""
    size = start.x.shape[-1].astype("float64")
    log_step = np.log(0.25) - 0.25 * pt.log(size) + pt.zeros_like(start.log_density)
    return ChainState(start, first_step_size(log_step), first_scale(start.gradient))


def take_steps(
    density: Density,
    settings: Settings,
    now: ChainState,
    numbers: tuple[TensorVariable, TensorVariable],
    plan: Schedule,
    data: Sequence[TensorVariable] = (),
) -> tuple[ChainState, list[TensorVariable]]:
    """Return the state after steps of a chain, and the traces `OUTPUTS` but the last.

    Parameters
    ----------
    density, settings, data
        As in `sample_chains`.
    now
        The state before the steps.
    numbers
        Normal and uniform numbers of the steps, as in `Numbers`.
    plan
        The schedule of the steps.
    """

    def step(
        momentum: TensorVariable,
        uniform: TensorVariable,
        plan: Schedule,
        now: ChainState,
        *data: TensorVariable,
    ) -> list:
        epsilon = pt.exp(now.step_size.log_step)
        state, statistics = draw(
            density,
            data,
            now.draw,
            Randomness(momentum, uniform),
            scale=now.scale.scale,
            step_size=epsilon,
            max_depth=settings.max_depth,
        )
        adapted = after_draw(
            now.step_size,
            now.scale,
            state.x,
            statistics.acceptance,
            plan,
            settings.target_acceptance,
        )
        return [ChainState(state, *adapted), state.x, state.log_density, *statistics, epsilon]

    after, *traces = iterate(
        step, [now], data, n_steps=plan.is_warmup.shape[0], sequences=[*numbers, plan]
    )
    return after, traces


def _start(
    density: Density,
    data: Sequence[TensorVariable],
    center: TensorVariable,
    given: TensorVariable | None,
    jitters: TensorVariable,
) -> tuple[State, TensorVariable]:
    """Return the start of a chain, and whether density and gradient are finite there."""
    if given is not None:
        value, gradient = density(given, *data)
        return State(given, value, gradient), _is_finite(value, gradient)

    def attempt(
        jitter: TensorVariable, *variables: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        x, _, _, is_finite, center, *data = variables
        x = pt.switch(is_finite[..., None], x, center + jitter)
        value, gradient = density(x, *data)
        is_finite = _is_finite(value, gradient)
        return [x, value, gradient, is_finite], until(is_finite.all())

    zeros, value = pt.zeros_like(jitters[0]), pt.zeros(tuple(jitters.shape)[1:-1])
    *state, is_finite = iterate(
        attempt,
        [zeros, value, zeros, value.astype("bool")],
        [center, *data],
        n_steps=ATTEMPTS,
        sequences=[jitters],
    )
    return State(*state), is_finite


def _by_chain(trace: TensorVariable, seed: TensorVariable, size: TensorVariable) -> TensorVariable:
    """Return a trace with the chains first, also one of no steps, whose loop loses their number."""
    shape = [seed.shape[0], trace.shape[0], *[size] * (trace.type.ndim - 2)]
    return trace.swapaxes(0, 1).reshape(shape)


def _is_finite(value: TensorVariable, gradient: TensorVariable) -> TensorVariable:
    return pt.isfinite(value + gradient.sum(axis=-1))
