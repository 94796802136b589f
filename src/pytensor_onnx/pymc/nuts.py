"""One draw of the No-U-Turn sampler, with a multinomial sample of the trajectory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.pymc.trees import (
    Density,
    Dynamics,
    End,
    Growth,
    Sample,
    grow,
    kinetic_energy,
    shrinking_rates,
)


class State(NamedTuple):
    """A draw, with what the next one starts from."""

    x: TensorVariable
    log_density: TensorVariable
    gradient: TensorVariable


class Statistics(NamedTuple):
    """What is known of the trajectory of a draw.

    Attributes
    ----------
    energy
        Total energy of the draw.
    tree_depth
        Number of times that the trajectory was doubled.
    n_steps
        Number of leapfrog steps, each an evaluation of the gradient.
    acceptance
        Mean probability of acceptance of the points by Metropolis' rule.
    diverging
        Whether the error of the energy was too large.
    """

    energy: TensorVariable
    tree_depth: TensorVariable
    n_steps: TensorVariable
    acceptance: TensorVariable
    diverging: TensorVariable


def draw(
    density: Density,
    data: Sequence[TensorVariable],
    state: State,
    *,
    scale: TensorVariable,
    step_size: TensorVariable,
    momentum: TensorVariable,
    uniforms: TensorVariable,
    max_depth: int,
) -> tuple[State, Statistics]:
    """Return the next draw.

    The trajectory doubles until it makes a U-turn, in a random direction each time, and a point of
    the new half replaces the sample with the probability of the ratio of their weights, at most
    one (M. Betancourt, arXiv:1701.02434, appendix A.3).

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    state
        The last draw.
    scale
        Standard deviations of the coordinates, as they are known: the roots of the diagonal of the
        inverse mass matrix.
    step_size
        Step size of the leapfrog integrator, in units of the scale.
    momentum
        Standard normal numbers, as many as coordinates.
    uniforms
        Numbers in [0, 1), of shape ``(max_depth, 3)``.
    max_depth
        Largest number of doublings.
    """
    energy = kinetic_energy(momentum) - state.log_density
    half_step = 0.5 * step_size * scale
    dynamics = Dynamics(state.x, scale, step_size, half_step, energy)
    origin = pt.zeros_like(momentum)
    end = End(origin, momentum, half_step * state.gradient)
    first = Sample(state.x, state.gradient, state.log_density, energy)
    n_ends, n_sample = len(end), len(first)

    def double(
        n_steps: TensorVariable, uniform: TensorVariable, *variables: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        # Each has a row for the start and one for the end in time.
        ends, variables = End(*variables[:n_ends]), variables[n_ends:]
        sample, variables = Sample(*variables[:n_sample]), variables[n_sample:]
        weight, acceptance, steps, depth, _, *constants = variables
        fixed, rest = Dynamics(*constants[: len(dynamics)]), constants[len(dynamics) :]
        side = (uniform[0] < 0.5).astype("int64")
        # Backwards in time is forwards with the opposite momentum.
        sign = 2.0 * side - 1.0
        half: Growth = grow(
            density,
            rest,
            fixed,
            End(ends.position[side], sign * ends.momentum[side], ends.kick[side]),
            n_steps=n_steps,
            uniform=uniform[1],
            max_depth=max_depth,
        )
        new = half.end._replace(momentum=sign * half.end.momentum)
        ends = End(*(rows[side].set(row) for rows, row in zip(ends, new, strict=True)))
        is_cut = half.has_turned | half.has_diverged
        is_taken = (uniform[2] * weight < half.weight) & ~is_cut
        distance = ends.position[1] - ends.position[0]
        has_turned = shrinking_rates(distance, ends.momentum[0], ends.momentum[1]) <= 0.0
        states = [
            *ends,
            *ifelse(is_taken, list(half.sample), list(sample)),
            weight + half.weight,
            acceptance + half.acceptance,
            steps + half.steps,
            depth + 1,
            half.has_diverged,
        ]
        return states, until(is_cut | has_turned)

    zero, one = (pt.constant(np.float64(number)) for number in (0, 1))
    none, off = pt.constant(np.int64(0)), pt.constant(np.False_)
    pairs = [pt.stack([row, row]) for row in end]
    start = [*pairs, *first, one, zero, none, none, off]
    sizes = pt.constant(2 ** np.arange(max_depth))
    states = iterate(
        double, start, [*dynamics, *data], n_steps=max_depth, sequences=[sizes, uniforms]
    )
    sample = Sample(*states[n_ends : n_ends + n_sample])
    _, acceptance, steps, depth, diverging = states[n_ends + n_sample :]
    after = State(sample.x, sample.log_density, sample.gradient)
    return after, Statistics(sample.energy, depth, steps, acceptance / steps, diverging)
