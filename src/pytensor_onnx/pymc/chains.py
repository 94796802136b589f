"""Chains of NUTS: starts, random numbers, steps and traces."""

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

from pytensor_onnx.functions.loops import iterate, leaves, mapped
from pytensor_onnx.ops.random.draws import NormalPairs, StandardUniform
from pytensor_onnx.pymc.low_rank import RANK
from pytensor_onnx.pymc.nuts import Correction, Density, Randomness, State, draw
from pytensor_onnx.pymc.posterior import state_of_seed
from pytensor_onnx.pymc.warmup import (
    Metric,
    Schedule,
    StepSize,
    after_draw,
    first_metric,
    first_step_size,
    schedule,
)

ATTEMPTS = 100
"""Starts to try until the density and its gradient are finite, as in Stan."""

_UNIFORMS, _STARTS, DRAWN_BACK = 2**30, 2**31, 2**31 + 2**30
"""Streams of uniform numbers, of starts, and of variables that are drawn back for a draw.

Normal numbers have stream zero, and each draw has streams of its own.
"""

POSITION = "x"
OUTPUTS = (
    *(POSITION, "lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging"),
    *("step_size", "finite_start"),
)
"""Results of `sample_chains`, named as in ArviZ."""

STATE, NEXT_STATE = "state", "next_state"
"""Names of the rows that chains go on from."""


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
    metric: Metric


class Chains(NamedTuple):
    """Variables that chains are computed from, as in `sample_chains`, and their schedule.

    Attributes
    ----------
    begin
        Number of steps before the first.
    n_dropped
        Number of steps whose draws are no result.
    """

    center: TensorVariable
    seed: TensorVariable
    begin: TensorVariable
    n_dropped: TensorVariable
    plan: Schedule
    data: Sequence[TensorVariable]
    starts: TensorVariable | None
    state: TensorVariable | None


class Origin(NamedTuple):
    """Where a chain begins, or all chains: around a center, at a start, or at rows of a state.

    Attributes
    ----------
    i
        Row of the chain in the state; a slice for all chains.
    begin
        Number of steps before the first.
    """

    center: TensorVariable
    start: TensorVariable | None
    state: TensorVariable | None
    i: TensorVariable | slice
    begin: TensorVariable


Sampler = Callable[..., tuple[list[TensorVariable], list[TensorVariable]]]
"""Function that returns the traces of all steps; whether the starts are finite, and states."""


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
    state
        Matrix of a row for each chain, as `sample_chains` returns it: chains take ``n_draws`` steps
        more, without a warm-up. A matrix of no rows starts new chains.
    """

    seed: TensorVariable
    n_warmup: TensorVariable
    n_draws: TensorVariable
    starts: TensorVariable | None = None
    state: TensorVariable | None = None


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
    low_rank
        Whether the metric has a low-rank correction, of chains that run one after another.
    """

    lockstep: bool = True
    max_depth: int = 10
    target_acceptance: float = 0.8
    low_rank: bool = False


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

    Returns
    -------
    dict
        The results `OUTPUTS`, and `NEXT_STATE` if a state was requested.
    """
    seed, n_warmup, n_draws, starts, state = requested
    begin, n_dropped = steps_before(requested)
    if state is not None:
        n_warmup = pt.switch(state.shape[0] > 0, begin, n_warmup)
    plan = schedule(n_warmup, n_dropped + n_draws, begin, low_rank=settings.low_rank)
    sample = partial(_sample, density, settings)
    run = _in_lockstep if settings.lockstep else _in_turn
    chains = Chains(center, seed, begin, n_dropped, plan, data, starts, state)
    results = run(sample, chains, settings.max_depth)
    names = OUTPUTS if state is None else (*OUTPUTS, NEXT_STATE)
    return dict(zip(names, results, strict=True))


def steps_before(requested: Requested) -> tuple[TensorVariable, TensorVariable]:
    """Return the number of steps before the call, and the number of warm-up steps that it drops."""
    state, n_warmup = requested.state, requested.n_warmup
    if state is None:
        return pt.constant(np.int64(0)), n_warmup
    # The counters of random numbers go on behind the longest run.
    begin = pt.max(pt.concatenate([pt.zeros(1), state[:, -1]])).astype("int64")
    return begin, pt.switch(state.shape[0] > 0, 0, n_warmup)


def _in_turn(sample: Sampler, chains: Chains, max_depth: int) -> list[TensorVariable]:
    """Return the results of chains that run one after another."""
    center, seed, begin, n_dropped, plan, data, starts, state = chains

    def chain(
        seed: TensorVariable, i: TensorVariable, *variables: TensorVariable
    ) -> list[TensorVariable]:
        rest = list(variables)
        start = None if starts is None else rest.pop(0)
        center, begin, n_dropped, *fixed = rest
        before = None if state is None else fixed.pop(0)
        columns = iter(fixed)
        rows, data = mapped(lambda _: next(columns), plan), list(columns)
        first = 0 if state is None else begin
        drawn = _numbers(seed, rows.is_warmup.shape[0], center.shape[0], max_depth, first)
        traces, others = sample(data, Origin(center, start, before, i, begin), drawn, rows)
        return [*(trace[n_dropped:] for trace in traces), *others]

    sequences = [seed, pt.arange(seed.shape[0])]
    sequences += [] if starts is None else [starts]
    states = [] if state is None else [state]
    fixed = [center, begin, n_dropped, *states, *leaves(plan), *data]
    return pytensor.scan(chain, sequences, non_sequences=fixed, return_updates=False, name="chains")


def _in_lockstep(sample: Sampler, chains: Chains, max_depth: int) -> list[TensorVariable]:
    """Return the results of chains that take each leapfrog step together."""
    center, seed, begin, n_dropped, plan, data, starts, state = chains

    def numbers(
        seed: TensorVariable, n_steps: TensorVariable, size: TensorVariable, begin: TensorVariable
    ) -> list[TensorVariable]:
        return list(_numbers(seed, n_steps, size, max_depth, 0 if state is None else begin))

    size, n_steps, n_chains = center.shape[0], plan.is_warmup.shape[0], seed.shape[0]
    normals, uniforms, jitters = pytensor.scan(
        numbers, [seed], non_sequences=[n_steps, size, begin], return_updates=False, name="numbers"
    )
    # A loop over no chains has lost the sizes of a row.
    drawn = Numbers(
        normals.reshape((n_chains, n_steps, size)).swapaxes(0, 1),
        pt.moveaxis(uniforms.reshape((n_chains, n_steps, max_depth, 3)), 0, -1),
        jitters.reshape((n_chains, ATTEMPTS, size)).swapaxes(0, 1),
    )
    origin = Origin(center, starts, state, slice(None), begin)
    traces, others = sample(data, origin, drawn, plan)
    return [*(_by_chain(trace[n_dropped:], seed, size) for trace in traces), *others]


def _numbers(
    seed: TensorVariable,
    n_steps: TensorVariable,
    size: TensorVariable,
    max_depth: int,
    begin: TensorVariable | int,
) -> Numbers:
    """Return the random numbers of a chain."""
    normals, uniforms = numbers_of_steps(seed, n_steps, size, max_depth, begin)
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
    is_first = isinstance(begin, int)
    # A pair of normal numbers has two words, and may belong to two steps.
    before = first % 2
    state = state_of_seed(seed, 0, first - before)
    _, normals = NormalPairs("float64")(state, n_steps * size + (0 if is_first else 1))
    if not is_first:
        # No size depends on the number of the first step, which a tape would plan anew.
        normals = pt.switch(pt.eq(before, 0), normals[:-1], normals[1:])
    per_step = 3 * max_depth
    state = state_of_seed(seed, _UNIFORMS, begin * per_step)
    _, uniforms = StandardUniform("float64")(state, n_steps * per_step)
    return (
        normals.reshape((n_steps, size)),
        uniforms.reshape((n_steps, max_depth, 3)),
    )


def _sample(
    density: Density,
    settings: Settings,
    data: Sequence[TensorVariable],
    origin: Origin,
    numbers: Numbers,
    plan: Schedule,
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Return the traces of all steps; whether the starts are finite, and rows of the state."""
    center, given, state, i, begin = origin
    start, is_finite = first_point(density, data, center, given, numbers.jitters)
    # Draws then tell by which variables the gradient of a finite density is not.
    is_lost = pt.isfinite(start.log_density)[..., None] & ~pt.isfinite(start.gradient)
    now = first_state(start._replace(x=pt.switch(is_lost, np.nan, start.x)), settings)
    if state is not None:
        row = ifelse(state.shape[0] > 0, state[i], _row_of(now, begin))
        now = _state_of(row, now, density, data)
        is_finite = _is_finite(now.draw.log_density, now.draw.gradient)
    rows = numbers.normals, numbers.uniforms
    after, traces = take_steps(density, settings, now, rows, plan, data)
    if state is None:
        return traces, [is_finite]
    return traces, [is_finite, _row_of(after, begin + plan.is_warmup.shape[0])]


def width_of_state(size: int, settings: Settings) -> int:
    """Return the size of a row of the state, for a number of coordinates."""
    return 3 * size + 3 + (min(size, RANK) * (size + 1) if settings.low_rank else 0)


def _row_of(now: ChainState, count: TensorVariable) -> TensorVariable:
    """Return the numbers of a chain after its warm-up: of each coordinate, and three more.

    Those of a correction of the metric are before the last three.
    """
    (x, log_density, gradient), log_step = now.draw, now.step_size.log_step
    last = [log_density, log_step, pt.zeros_like(log_density) + count]
    parts = [x, gradient, now.metric.scaling.scale]
    if now.metric.correction:
        vectors, stretches = now.metric.correction
        parts += [vectors.flatten(), stretches]
    return pt.concatenate([*parts, pt.stack(last, axis=-1)], axis=-1)


def _state_of(
    row: TensorVariable, first: ChainState, density: Density, data: Sequence[TensorVariable]
) -> ChainState:
    """Return the state of a chain from its numbers, with the density of the present data."""
    size = first.draw.x.shape[-1]
    x, gradient, scale = (row[..., k * size : (k + 1) * size] for k in range(3))
    log_density, log_step = row[..., -3], row[..., -2]
    value, slope = density(x, *data)
    # Of equal data, the numbers of the row are kept, in every bit: two places of a graph may round
    # a density differently.
    is_same = pt.abs(value - log_density) <= 1e-9 * pt.abs(log_density)
    draw = State(
        x,
        pt.switch(is_same, log_density, value),
        pt.switch(is_same[..., None], gradient, slope),
    )
    metric = first.metric._replace(scale=first.metric.scale._replace(scale=scale))
    if metric.correction:
        vectors = metric.correction.vectors
        end = 3 * size + vectors.size
        vectors = row[3 * size : end].reshape(vectors.shape)
        metric = metric._replace(correction=Correction(vectors, row[end:-3]), used=scale)
    return ChainState(draw, first_step_size(log_step), metric)


def first_state(start: State, settings: Settings) -> ChainState:
    """Return the state of a chain at its start."""
    size = start.x.shape[-1].astype("float64")
    log_step = np.log(0.25) - 0.25 * pt.log(size) + pt.zeros_like(start.log_density)
    metric = first_metric(start.x, start.gradient, low_rank=settings.low_rank)
    return ChainState(start, first_step_size(log_step), metric)


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
            scaling=now.metric.scaling,
            step_size=epsilon,
            max_depth=settings.max_depth,
        )
        adapted = after_draw(
            now.step_size,
            now.metric,
            state,
            statistics.acceptance,
            plan,
            settings.target_acceptance,
        )
        return [ChainState(state, *adapted), state.x, state.log_density, *statistics, epsilon]

    after, *traces = iterate(
        step, [now], data, n_steps=plan.is_warmup.shape[0], sequences=[*numbers, plan]
    )
    return after, traces


def first_point(
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
