"""One draw of each chain of the No-U-Turn sampler, with a multinomial sample of the trajectory.

Arrays have one row for each chain, and numbers one element.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.pymc.trees import (
    DIVERGENCE,
    Density,
    Doubling,
    Dynamics,
    End,
    Sample,
    grow,
    kinetic_energy,
    shrinking_rates,
)


class State(NamedTuple):
    """The last draw of each chain, with its log-density and gradient."""

    x: TensorVariable
    log_density: TensorVariable
    gradient: TensorVariable


class Statistics(NamedTuple):
    """Statistics of the trajectories that lead to the draws.

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


class Trajectory(NamedTuple):
    """A trajectory while it doubles.

    Attributes
    ----------
    near, far
        The end of the last growth, and the other end. Their momenta point outwards.
    sample
        A point, drawn with the probabilities of all its points.
    was_forwards
        Whether the last growth went forwards in time.
    weight, acceptance, steps, divergences
        Sums over its halves, as in `Growth`.
    depth
        Number of doublings.
    grows
        One if it is to grow, else zero.
    """

    near: End
    far: End
    sample: Sample
    was_forwards: TensorVariable
    weight: TensorVariable
    acceptance: TensorVariable
    steps: TensorVariable
    depth: TensorVariable
    divergences: TensorVariable
    grows: TensorVariable


class Randomness(NamedTuple):
    """The random numbers of one draw of each chain.

    Attributes
    ----------
    momentum
        Standard normal numbers, as many as coordinates.
    uniforms
        Numbers in [0, 1), of shape ``(max_depth, 3, chain)``.
    """

    momentum: TensorVariable
    uniforms: TensorVariable


def draw(
    density: Density,
    data: Sequence[TensorVariable],
    state: State,
    numbers: Randomness,
    *,
    scale: TensorVariable,
    step_size: TensorVariable,
    max_depth: int,
) -> tuple[State, Statistics]:
    """Return the next draw of each chain.

    The trajectory doubles until it makes a U-turn, in a random direction each time, and a point of
    the new half replaces the sample with the probability of the ratio of their weights, at most
    one (M. Betancourt, arXiv:1701.02434, appendix A.3). All trajectories double together until
    none grows; what happens to one that has ended does not count.

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    state
        The last draws.
    numbers
        The random numbers.
    scale
        Standard deviations of the coordinates, as they are known: the roots of the diagonal of the
        inverse mass matrix.
    step_size
        Step sizes of the leapfrog integrator, in units of the scale.
    max_depth
        Largest number of doublings.
    """
    momentum, uniforms = numbers
    energy = kinetic_energy(momentum) - state.log_density
    half_step = 0.5 * step_size[..., None] * scale
    least = -DIVERGENCE - energy
    dynamics = Dynamics(state.x, scale, step_size[..., None], half_step, energy, least)
    end = End(pt.zeros_like(momentum), momentum, half_step * state.gradient)
    first = Sample(state.x, state.gradient, state.log_density, energy)
    zeros, ones = pt.zeros_like(state.log_density), pt.ones_like(state.log_density)
    start = Trajectory(
        *(end, end, first),
        was_forwards=ones.astype("bool"),
        weight=ones,
        acceptance=zeros,
        steps=zeros,
        depth=zeros,
        divergences=zeros,
        grows=ones,
    )
    depths = np.arange(max_depth)
    last, *_ = iterate(
        partial(_double, density, max_depth),
        [start],
        [dynamics, *data],
        n_steps=max_depth,
        sequences=[Doubling(pt.constant(depths), pt.constant(2**depths), uniforms)],
    )
    sample, steps = last.sample, last.steps
    after = State(sample.x, sample.log_density, sample.gradient)
    counts = last.depth.astype("int64"), steps.astype("int64")
    acceptance = last.acceptance / steps
    return after, Statistics(sample.energy, *counts, acceptance, last.divergences > 0.0)


def _double(
    density: Density,
    max_depth: int,
    doubling: Doubling,
    now: Trajectory,
    dynamics: Dynamics,
    *data: TensorVariable,
) -> tuple[list[Trajectory], until]:
    """Return the trajectories with a second half, and the condition for the end."""
    to_direction, _, to_sample = (doubling.uniforms[i] for i in range(3))
    is_forwards = to_direction < 0.5
    start, far = _turned(pt.eq(is_forwards, now.was_forwards), now.near, now.far)
    half = grow(density, data, dynamics, start, now.grows, doubling, max_depth)
    near = half.end
    is_taken = (to_sample * now.weight < half.weight) & (half.grows > 0.0)
    distance = near.position - far.position
    rates = shrinking_rates(distance, near.momentum, far.momentum)
    grows = pt.switch(rates <= 0.0, 0.0, half.grows)
    after = Trajectory(
        near,
        far,
        Sample(*_chosen(is_taken, half.sample, now.sample)),
        is_forwards,
        now.weight + half.weight,
        now.acceptance + half.acceptance,
        now.steps + half.steps,
        now.depth + now.grows,
        now.divergences + half.divergences,
        grows,
    )
    return [after], until(~(grows.sum() > 0.0))


def _turned(is_same: TensorVariable, near: End, far: End) -> tuple[End, End]:
    """Return the end to grow from and the other end, for the same or the opposite direction.

    In the opposite direction of time, momenta have the opposite signs.
    """
    sign = pt.switch(is_same, np.float64(1.0), np.float64(-1.0))[..., None]
    ends = _chosen(is_same, [*near, *far], [*far, *near])
    first, second = End(*ends[: len(near)]), End(*ends[len(near) :])
    return (
        first._replace(momentum=sign * first.momentum),
        second._replace(momentum=sign * second.momentum),
    )


def _chosen(
    condition: TensorVariable, first: Sequence[TensorVariable], second: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Select values for each chain: `first` where a condition holds, `second` elsewhere."""
    if not condition.type.ndim:
        # A branch copies nothing; several chains may differ.
        return ifelse(condition, list(first), list(second))
    return [
        pt.switch(condition[:, None] if a.type.ndim > 1 else condition, a, b)
        for a, b in zip(first, second, strict=True)
    ]
