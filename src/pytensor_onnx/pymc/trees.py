"""Half of a trajectory of NUTS: leapfrog steps away from one end, and the sub-trees among them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate

Density = Callable[..., Sequence[TensorVariable]]
"""Function of a vector, and of variables such as data: the log-density and its gradient."""

DIVERGENCE = 1000.0
"""Largest error of the energy, as in Stan."""


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


class Dynamics(NamedTuple):
    """The numbers that stay the same within a trajectory.

    The trajectory has the coordinates ``z`` of ``x = origin + scale * z``, in which the mass matrix
    is the identity.
    """

    origin: TensorVariable
    scale: TensorVariable
    step_size: TensorVariable
    half_step: TensorVariable
    energy: TensorVariable


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
        Number of steps.
    has_turned, has_diverged
        Whether a sub-tree makes a U-turn, or the error of the energy is too large.
    """

    end: End
    sample: Sample
    weight: TensorVariable
    acceptance: TensorVariable
    steps: TensorVariable
    has_turned: TensorVariable
    has_diverged: TensorVariable


def grow(
    density: Density,
    data: Sequence[TensorVariable],
    dynamics: Dynamics,
    end: End,
    *,
    n_steps: TensorVariable,
    uniform: TensorVariable,
    max_depth: int,
) -> Growth:
    """Take leapfrog steps from an end of a trajectory, forwards in time.

    The steps are the leaves of a binary tree. It is built without recursion (D. Phan, N. Pradhan,
    M. Jankowiak, arXiv:1912.11554, appendix A): a step that completes sub-trees is compared with
    the first leaves of these, of which one for each level is kept. A sub-tree ends the trajectory
    if the distance of its ends would shrink in time at either end (M. D. Hoffman, A. Gelman, JMLR
    15 (2014) 1593, equation 9).

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    dynamics
        Constants of the trajectory.
    end
        The end of the trajectory.
    n_steps
        A power of two.
    uniform
        A number in [0, 1), which selects the sample.
    max_depth
        Largest depth of the tree, the logarithm to base 2 of the largest number of steps.
    """
    tables = [pt.constant(table) for table in leaf_tables(max_depth)]
    levels, size = max_depth, end.position.type.shape[0]
    kept = pt.zeros((levels, end.position.shape[0] if size is None else size))

    def step(
        row: TensorVariable, bounds: TensorVariable, *variables: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        position, momentum, kick, positions, momenta, _, _, *constants = variables
        origin, scale, step_size, half_step, energy = constants[: len(dynamics)]

        half = momentum + kick
        position = position + step_size * half
        x = origin + scale * position
        value, gradient = density(x, *constants[len(dynamics) :])
        kick = half_step * gradient
        momentum = half + kick
        # In this order the sum begins with the terms of the value, which are added once.
        gain = value + energy - kinetic_energy(momentum)
        has_diverged = ~(gain > -DIVERGENCE)

        positions = positions[row].set(position)
        momenta = momenta[row].set(momentum)
        rates = shrinking_rates(position - positions, momentum, momenta)
        has_turned = (rates <= bounds).astype("float64").sum() > 0.0
        end = [position, momentum, kick, positions, momenta, has_turned, has_diverged]
        return [*end, x, gradient, value, gain], until(has_turned | has_diverged)

    off = pt.constant(np.False_)
    start, constants = [*end, kept, kept, off, off], [*dynamics, *data]
    results = iterate(step, start, constants, n_steps=n_steps, sequences=tables)
    ends, (points, gradients, values, gains) = results[:7], results[7:]
    # The bound keeps sums of weights finite, the switch keeps them from NaN.
    weights = pt.switch(gains > -DIVERGENCE, pt.exp(pt.minimum(gains, 600.0)), 0.0)
    sums = pt.cumsum(weights)
    weight = sums[-1]
    i = pt.argmax(sums > uniform * weight)
    return Growth(
        End(*ends[:3]),
        Sample(points[i], gradients[i], values[i], dynamics.energy - gains[i]),
        weight,
        pt.minimum(weights, 1.0).sum(),
        gains.shape[0],
        ends[5],
        ends[6],
    )


def kinetic_energy(momentum: TensorVariable) -> TensorVariable:
    """Return the kinetic energy; a sum is fewer operators than a product of vectors."""
    return 0.5 * (momentum * momentum).sum()


def shrinking_rates(
    distance: TensorVariable, first: TensorVariable, second: TensorVariable
) -> TensorVariable:
    """Return numbers that are not positive where the distance of two ends would shrink at either.

    They are the smaller ones of the products of the distance with the momenta of the ends.
    """
    return pt.minimum((distance * first).sum(axis=-1), (distance * second).sum(axis=-1))


def leaf_tables(max_depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each leaf of a tree the row that keeps it, and bounds of rates beside each row.

    An even leaf begins sub-trees; it is kept in the row of the number of ones in the binary form of
    half its number. An odd leaf that ends in k ones completes sub-trees of 2, 4, …, 2**k leaves,
    whose first leaves are in the last k of the rows up to its own. It is kept in a row of its own,
    which is never read.

    Parameters
    ----------
    max_depth
        Largest depth of a trajectory, of which half is one tree.

    Returns
    -------
    rows
        int64 vector, one for each leaf.
    bounds
        float64 of shape (leaves, rows), zero for rows to compare with, else minus infinity.

    Examples
    --------
    >>> rows, bounds = leaf_tables(3)
    >>> rows.tolist()
    [0, 2, 1, 2]
    >>> np.isfinite(bounds).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]]
    """
    n = 2 ** (max_depth - 1)
    rows, bounds = np.full(n, max_depth - 1), np.full((n, max_depth), -np.inf)
    for leaf in range(n):
        last = (leaf >> 1).bit_count()
        if leaf % 2 == 0:
            rows[leaf] = min(last, max_depth - 1)
            continue
        completed = (~leaf & (leaf + 1)).bit_length() - 1
        bounds[leaf, last - completed + 1 : last + 1] = 0.0
    return rows, bounds
