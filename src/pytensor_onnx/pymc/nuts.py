"""The No-U-Turn sampler.

Arrays have one row for each chain, and numbers one element.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate

# Halves of trajectories of NUTS: leapfrog steps away from one end, and the sub-trees among them.
#
# Several chains take their steps together: their arrays have one row for each chain, their numbers
# one element. One chain alone has vectors and numbers.

Density = Callable[..., Sequence[TensorVariable]]
"""Function of a point, and of variables such as data: the log-density and its gradient.

Several chains have a matrix of points, a vector of log-densities and a matrix of gradients.
"""

DIVERGENCE = 1000.0
"""Largest error of the energy, as in Stan."""

NEGLIGIBLE = 1e-15
"""Probability of acceptance that counts as none."""


class End(NamedTuple):
    """An end of a trajectory: position and momentum in units of the scale, and half a kick."""

    position: TensorVariable
    momentum: TensorVariable
    kick: TensorVariable


class Sample(NamedTuple):
    """A point of a trajectory that may become the next draw."""

    x: TensorVariable
    gradient: TensorVariable
    log_density: TensorVariable
    energy: TensorVariable


class Correction(NamedTuple):
    """Correlations of one chain's coordinates: ``I + vectors diag(stretches) vectors'``.

    Attributes
    ----------
    vectors
        Orthonormal columns.
    stretches
        Standard deviations along these, less one.
    """

    vectors: TensorVariable
    stretches: TensorVariable


class Scaling(NamedTuple):
    """The root of an inverse mass matrix.

    Attributes
    ----------
    scale
        Standard deviations of the coordinates, as they are known.
    correction
        Their correlations, none for an empty tuple; it is multiplied by the scales.
    """

    scale: TensorVariable
    correction: Correction | tuple[()] = ()


class Dynamics(NamedTuple):
    """The numbers that stay the same within a trajectory.

    The trajectory has the coordinates ``z`` of ``x = origin + scale * correction @ z``, in which
    the mass matrix is the identity; without correlations the correction is an empty tuple. The step
    size is a matrix of one column. The negative of the energy of a point that has not diverged is
    larger than ``least``.
    """

    origin: TensorVariable
    scale: TensorVariable
    step_size: TensorVariable
    half_step: TensorVariable
    energy: TensorVariable
    least: TensorVariable
    correction: Correction | tuple[()] = ()


class Doubling(NamedTuple):
    """A doubling of all trajectories.

    Attributes
    ----------
    depth, n_steps
        Depth of the tree, and two to its power.
    uniforms
        Numbers in [0, 1) for each chain, which select the direction, the sample of the new half,
        and the half of the sample.
    """

    depth: TensorVariable
    n_steps: TensorVariable
    uniforms: TensorVariable


class Growth(NamedTuple):
    """Leapfrog steps in one direction.

    Attributes
    ----------
    end
        The last point.
    sample
        A point, drawn with the probabilities of all of them.
    weight
        Sum of their probabilities, relative to that of the start of the trajectory.
    acceptance
        Sum of their probabilities of acceptance by Metropolis' rule.
    steps
        Number of steps, zero for a chain that was not to grow.
    grows
        One if all steps were taken, zero if a sub-tree makes a U-turn or an error of the energy is
        too large; end and sample then mean nothing.
    divergences
        One if an error of the energy is too large, else zero.
    """

    end: End
    sample: Sample
    weight: TensorVariable
    acceptance: TensorVariable
    steps: TensorVariable
    grows: TensorVariable
    divergences: TensorVariable


class Leaves(NamedTuple):
    """The points of all leapfrog steps of a tree, with a row for each.

    Attributes
    ----------
    x, gradient, log_density
        The points, and the density there.
    surplus
        The negative of the total energy.
    counts
        One for a chain that grew until there, else zero.
    """

    x: TensorVariable
    gradient: TensorVariable
    log_density: TensorVariable
    surplus: TensorVariable
    counts: TensorVariable


class _Level(NamedTuple):
    """For a leaf, which row keeps it, and bounds of rates beside each row, -inf for none."""

    is_kept: TensorVariable
    bounds: TensorVariable


class _Kept(NamedTuple):
    """Positions and momenta of the leaves that later ones are compared with."""

    positions: TensorVariable
    momenta: TensorVariable


def grow(
    density: Density,
    data: Sequence[TensorVariable],
    dynamics: Dynamics,
    end: End,
    grows: TensorVariable,
    doubling: Doubling,
    max_depth: int,
) -> tuple[Growth, _Kept]:
    """Take leapfrog steps from an end of each trajectory, forwards in time.

    The steps are the leaves of a binary tree. It is built without recursion (D. Phan, N. Pradhan,
    M. Jankowiak, arXiv:1912.11554, appendix A): a step that completes sub-trees is compared with
    the first leaves of these, kept for each level of the tree. A sub-tree ends the trajectory
    if the distance of its ends would shrink in time at either end (M. D. Hoffman, A. Gelman, JMLR
    15 (2014) 1593, equation 9).

    The first points of the two halves of a sub-tree are compared too, and the last points: points
    that move around a mode in circles, all coordinates at one rate, else miss the U-turn where a
    trajectory is about as long as a circle. A sub-tree is judged alike in both directions of time,
    as the balance of NUTS requires.

    All chains take steps until none grows; the steps of a chain that has ended do not count.

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    dynamics
        Constants of the trajectories.
    end
        The ends of the trajectories.
    grows
        One for each chain that is to grow, else zero, float64.
    doubling
        The depth of the tree, and numbers that select the samples.
    max_depth
        Number of depths.

    Returns
    -------
    growth
        Sums over the leaves, and one of them.
    first
        The first leaf.
    """
    depth, n_steps, uniforms = doubling
    n_rows = pt.maximum(2 * depth - 1, 1)
    chains = (1,) * dynamics.energy.type.ndim
    is_kept, is_compared = (
        pt.constant(table.reshape(*table.shape, *chains))[:n_steps, :n_rows]
        for table in leaf_tables(max_depth)
    )
    level = _Level(is_kept[..., None], pt.switch(is_compared, np.float64(0.0), -np.inf))
    kept = pt.zeros((n_rows, *dynamics.origin.shape))
    end, last, grows, *traces = iterate(
        partial(_leap, density),
        [end, _Kept(kept, kept), grows],
        [dynamics, *data],
        n_steps=n_steps,
        sequences=[level],
    )
    first = _Kept(last.positions[0], last.momenta[0])
    return _growth(Leaves(*traces), end, grows, dynamics, uniforms[1]), first


def _leap(
    density: Density,
    level: _Level,
    end: End,
    kept: _Kept,
    grows: TensorVariable,
    dynamics: Dynamics,
    *data: TensorVariable,
) -> tuple[list, until]:
    """Return the states and the leaf after a leapfrog step, and the condition for the end."""
    half = end.momentum + end.kick
    position = end.position + dynamics.step_size * half
    x = dynamics.origin + dynamics.scale * corrected(position, dynamics.correction)
    value, gradient = density(x, *data)
    kick = corrected(dynamics.half_step * gradient, dynamics.correction)
    momentum = half + kick
    surplus = value - kinetic_energy(momentum)

    positions = pt.switch(level.is_kept, position, kept.positions)
    momenta = pt.switch(level.is_kept, momentum, kept.momenta)
    rates = shrinking_rates(position - positions, momentum, momenta)
    turns = (rates <= level.bounds).astype("float64").sum(axis=0)
    goes_on = (surplus > dynamics.least) & (turns < 0.5)
    after = pt.switch(goes_on, grows, 0.0)
    states = [End(position, momentum, kick), _Kept(positions, momenta), after]
    leaf = Leaves(x, gradient, value, surplus, grows)
    return [*states, leaf], until(~(after.sum() > 0.0))


def _growth(
    leaves: Leaves,
    end: End,
    grows: TensorVariable,
    dynamics: Dynamics,
    uniform: TensorVariable,
) -> Growth:
    """Return the sums over the leaves of a tree, and one leaf as its sample."""
    is_finite = leaves.surplus > dynamics.least
    # The bound keeps sums of weights finite, the switch keeps them from NaN.
    gains = pt.minimum(leaves.surplus + dynamics.energy, 600.0)
    weights = pt.switch(is_finite & (leaves.counts > 0.0), pt.exp(gains), 0.0)
    # Negligible weights come from large energies, and have few correct digits.
    accepted = pt.switch(weights < NEGLIGIBLE, 0.0, pt.minimum(weights, 1.0))
    sums = pt.cumsum(weights, axis=0)
    weight = sums[-1]
    i = pt.argmax(sums > uniform * weight, axis=0)
    sample = Sample(
        selected(leaves.x, i),
        selected(leaves.gradient, i),
        selected(leaves.log_density, i),
        -selected(leaves.surplus, i),
    )
    return Growth(
        end,
        sample,
        weight,
        acceptance=accepted.sum(axis=0),
        steps=leaves.counts.sum(axis=0),
        grows=grows,
        divergences=pt.switch(is_finite, 0.0, leaves.counts).sum(axis=0),
    )


def selected(rows: TensorVariable, i: TensorVariable) -> TensorVariable:
    """Return for each chain one of its rows, by the number of the row."""
    if not i.type.ndim:
        return rows[i]
    n_chains = rows.shape[1]
    flat = rows.reshape((-1, *(rows.shape[axis] for axis in range(2, rows.type.ndim))))
    return flat[i * n_chains + pt.arange(n_chains)]


def corrected(vector: TensorVariable, correction: Correction | tuple[()]) -> TensorVariable:
    """Return the product of a correction, which is symmetric, and a vector."""
    if not correction:
        return vector
    vectors, stretches = correction
    return vector + vectors @ (stretches * (vector @ vectors))


def kinetic_energy(momentum: TensorVariable) -> TensorVariable:
    """Return the kinetic energies."""
    return 0.5 * (momentum * momentum).sum(axis=-1)


def shrinking_rates(
    distance: TensorVariable, first: TensorVariable, second: TensorVariable
) -> TensorVariable:
    """Return numbers that are not positive where the distance of two ends would shrink at either.

    They are the smaller ones of the products of the distance with the momenta of the ends.
    """
    return pt.minimum((distance * first).sum(axis=-1), (distance * second).sum(axis=-1))


def leaf_tables(max_depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each leaf of a tree which row keeps it, and with which rows it is compared.

    An even leaf begins sub-trees; it is kept in the row of twice the number of ones in the binary
    form of half its number, and compared with the row two before, as the first leaf of a second
    half. An odd leaf that ends in k ones completes sub-trees of 2, 4, …, 2**k leaves, whose first
    leaves are in the last k of the even rows up to that of the leaf before, and whose first halves
    of 2, …, 2**(k-1) leaves have their last leaves in rows 1, 3, …, 2*k-3; it is kept in row
    2*k-1, as the last leaf of a first half. A tree of depth d uses the first 2**d leaves and 2*d-1
    rows, at least one.

    Parameters
    ----------
    max_depth
        Largest depth of a trajectory; half of a trajectory is one tree.

    Returns
    -------
    is_kept, is_compared
        bool of shape (leaves, rows).

    Examples
    --------
    >>> is_kept, is_compared = leaf_tables(3)
    >>> is_kept.astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> is_compared.astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]]
    """
    shape = 2 ** (max_depth - 1), 2 * max(max_depth - 1, 1) - 1
    is_kept, is_compared = np.zeros(shape, "bool"), np.zeros(shape, "bool")
    for leaf in range(shape[0]):
        n_ones = (leaf >> 1).bit_count()
        if leaf % 2 == 0:
            is_kept[leaf, 2 * n_ones] = True
            is_compared[leaf, 2 * n_ones - 2 :][: bool(n_ones)] = True
            continue
        n_completed = (~leaf & (leaf + 1)).bit_length() - 1
        is_compared[leaf, 2 * (n_ones - n_completed + 1) : 2 * n_ones + 1 : 2] = True
        is_compared[leaf, 1 : 2 * n_completed - 2 : 2] = True
        # The last leaf of all is kept in no row.
        is_kept[leaf, 2 * n_completed - 1 :][:1] = True
    return is_kept, is_compared


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
    scaling: Scaling,
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
    scaling
        The root of the inverse mass matrix.
    step_size
        Step sizes of the leapfrog integrator, in units of the scale.
    max_depth
        Largest number of doublings.
    """
    scale, correction = scaling
    momentum, uniforms = numbers
    energy = kinetic_energy(momentum) - state.log_density
    half_step = 0.5 * step_size[..., None] * scale
    least = -DIVERGENCE - energy
    dynamics = Dynamics(state.x, scale, step_size[..., None], half_step, energy, least, correction)
    kick = corrected(half_step * state.gradient, correction)
    end = End(pt.zeros_like(momentum), momentum, kick)
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
    half, first = grow(density, data, dynamics, start, now.grows, doubling, max_depth)
    near = half.end
    is_taken = (to_sample * now.weight < half.weight) & (half.grows > 0.0)
    distance = near.position - far.position
    rates = shrinking_rates(distance, near.momentum, far.momentum)
    way = near.position - start.position
    rates = pt.minimum(rates, shrinking_rates(way, near.momentum, start.momentum))
    way = first.positions - far.position
    rates = pt.minimum(rates, shrinking_rates(way, first.momenta, far.momentum))
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
