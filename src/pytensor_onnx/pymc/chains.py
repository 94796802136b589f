"""Markov chains of the No-U-Turn sampler, warm-up included."""

from collections.abc import Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.draws import NormalPairs, StandardUniform
from pytensor_onnx.pymc.nuts import State, draw
from pytensor_onnx.pymc.seeds import state_of_seed
from pytensor_onnx.pymc.trees import Density
from pytensor_onnx.pymc.warmup import (
    Scale,
    Schedule,
    StepSize,
    after_draw,
    first_scale,
    first_step_size,
    schedule,
)

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


def sample_chains(
    density: Density,
    center: TensorVariable,
    *,
    seed: TensorVariable,
    n_warmup: TensorVariable,
    n_draws: TensorVariable,
    data: Sequence[TensorVariable] = (),
    starts: TensorVariable | None = None,
    max_depth: int = 10,
    target_acceptance: float = 0.8,
) -> dict[str, TensorVariable]:
    """Return the draws of chains, one for each seed, and their statistics.

    Parameters
    ----------
    density
        Function of a vector, and of the variables in ``data``, that returns the log-density and
        its gradient.
    center
        Vector around which chains start, each coordinate moved by a uniform number in (-1, 1).
    seed
        int64 vector, one number for each chain. A chain depends on its own seed only, and a longer
        one begins with the draws of a shorter one of equal warm-up.
    n_warmup, n_draws
        Numbers of steps, 0-d integers.
    data
        Variables that the density uses.
    starts
        Matrix of a start for each chain, used as it is.
    max_depth
        Largest number of doublings of a trajectory.
    target_acceptance
        Acceptance that the step size is adapted to.
    """
    n_steps = n_warmup + n_draws
    sequences = [seed] if starts is None else [seed, starts]
    plan = schedule(n_warmup, n_steps)

    def chain(seed: TensorVariable, *variables: TensorVariable) -> list[TensorVariable]:
        rest = list(variables)
        given = None if starts is None else rest.pop(0)
        center, n_warmup, *fixed = rest
        rows = Schedule(*fixed[: len(plan)])
        return _chain(
            density,
            fixed[len(plan) :],
            center,
            given,
            seed=seed,
            plan=rows,
            n_warmup=n_warmup,
            max_depth=max_depth,
            target_acceptance=target_acceptance,
        )

    outputs = pytensor.scan(
        chain,
        sequences,
        non_sequences=[center, n_warmup, *plan, *data],
        return_updates=False,
        name="chains",
    )
    return dict(zip(OUTPUTS, outputs, strict=True))


def _chain(
    density: Density,
    data: Sequence[TensorVariable],
    center: TensorVariable,
    given: TensorVariable | None,
    *,
    seed: TensorVariable,
    plan: Schedule,
    n_warmup: TensorVariable,
    max_depth: int,
    target_acceptance: float,
) -> list[TensorVariable]:
    """Return the draws of one chain after the warm-up, and their statistics."""
    n_steps, size = plan.is_warmup.shape[0], center.shape[0]
    _, normals = NormalPairs("float64")(state_of_seed(seed, 0), n_steps * size)
    _, uniforms = StandardUniform("float64")(
        state_of_seed(seed, _UNIFORMS), n_steps * (3 * max_depth)
    )
    first, is_finite = _start(density, data, center, given, seed)
    step_size = first_step_size(np.log(0.25) - 0.25 * pt.log(size.astype("float64")))
    scale = first_scale(center)

    def step(
        momentum: TensorVariable, uniform: TensorVariable, *variables: TensorVariable
    ) -> list[TensorVariable]:
        rows = iter(variables)
        plan = Schedule(*(next(rows) for _ in Schedule._fields))
        state = State(*(next(rows) for _ in State._fields))
        step_size = StepSize(*(next(rows) for _ in StepSize._fields))
        scale = Scale(*(next(rows) for _ in Scale._fields))
        epsilon = pt.exp(step_size.log_step)
        state, statistics = draw(
            density,
            list(rows),
            state,
            scale=scale.scale,
            step_size=epsilon,
            momentum=momentum,
            uniforms=uniform,
            max_depth=max_depth,
        )
        step_size, scale = after_draw(
            step_size, scale, state.x, statistics.acceptance, plan, target_acceptance
        )
        drawn = [state.x, state.log_density, *statistics, epsilon]
        return [*state, *step_size, *scale, *drawn]

    states = [*first, *step_size, *scale]
    results = iterate(
        step,
        states,
        data,
        n_steps=n_steps,
        sequences=[
            normals.reshape((n_steps, size)),
            uniforms.reshape((n_steps, max_depth, 3)),
            *plan,
        ],
    )
    return [*(trace[n_warmup:] for trace in results[len(states) :]), is_finite]


def _start(
    density: Density,
    data: Sequence[TensorVariable],
    center: TensorVariable,
    given: TensorVariable | None,
    seed: TensorVariable,
) -> tuple[State, TensorVariable]:
    """Return the start of a chain, and whether density and gradient are finite there."""
    if given is not None:
        value, gradient = density(given, *data)
        return State(given, value, gradient), _is_finite(value, gradient)

    def attempt(
        jitter: TensorVariable, *variables: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        center, *data = variables[4:]
        x = center + jitter
        value, gradient = density(x, *data)
        is_finite = _is_finite(value, gradient)
        return [x, value, gradient, is_finite], until(is_finite)

    size = center.shape[0]
    _, uniforms = StandardUniform("float64")(state_of_seed(seed, _STARTS), ATTEMPTS * size)
    jitters = (2.0 * uniforms - 1.0).reshape((ATTEMPTS, size))
    zero, off = pt.constant(np.float64(0.0)), pt.constant(np.False_)
    states = [center, zero, pt.zeros_like(center), off]
    *state, is_finite = iterate(
        attempt, states, [center, *data], n_steps=ATTEMPTS, sequences=[jitters]
    )
    return State(*state), is_finite


def _is_finite(value: TensorVariable, gradient: TensorVariable) -> TensorVariable:
    return pt.isfinite(value + gradient.sum())
