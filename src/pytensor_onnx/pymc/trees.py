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

    position: TensorVariable
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
    writes, checks = leaf_tables(max_depth)
    levels, size = writes.shape[1], end.position.type.shape[0]
    zero, off = pt.constant(np.float64(0.0)), pt.constant(np.False_)
    rows = pt.zeros((levels, end.position.shape[0] if size is None else size))
    start = [
        *(*end, rows, rows),
        *(end.position, end.kick, zero, zero),
        *(pt.constant(np.finfo("float64").tiny), uniform, zero, pt.constant(np.int64(0))),
        *(off, off),
    ]

    def step(
        write: TensorVariable, check: TensorVariable, *variables: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        position, momentum, kick, positions, momenta = variables[:5]
        sample, rest = Sample(*variables[5:9]), variables[9:]
        weight, u, acceptance, steps, _, _, *constants = rest
        origin, scale, step_size, half_step, energy_before = constants[: len(dynamics)]

        half = momentum + kick
        position = position + step_size * half
        x = origin + scale * position
        value, gradient = density(x, *constants[len(dynamics) :])
        kick = half_step * gradient
        momentum = half + kick
        energy = kinetic_energy(momentum) - value

        gain = energy_before - energy
        has_diverged = ~(gain > -DIVERGENCE)
        # The bound keeps sums of weights finite, the switch keeps them from NaN.
        w = pt.switch(has_diverged, 0.0, pt.exp(pt.minimum(gain, 600.0)))
        weight = weight + w
        share = w / weight
        is_chosen = u < share
        # Given the choice, the number is uniform on an interval, which is stretched to [0, 1).
        u = pt.switch(is_chosen, u / share, (u - share) / (1.0 - share))
        new = Sample(position, gradient, value, energy)
        sample = chosen(is_chosen, new, sample)

        positions = pt.switch(write, position, positions)
        momenta = pt.switch(write, momentum, momenta)
        # A first leaf keeps a distance of zero to itself, which `check` leaves out.
        distances = position - positions
        has_turned = (check * makes_turn(distances, momentum, momenta)).sum() > 0.0
        states = [
            *(position, momentum, kick, positions, momenta),
            *sample,
            *(weight, u, acceptance + pt.minimum(w, 1.0), steps + 1),
            *(has_turned, has_diverged),
        ]
        return states, until(has_turned | has_diverged)

    tables = [pt.constant(writes[:, :, None])[:n_steps], pt.constant(checks)[:n_steps]]
    states = iterate(step, start, [*dynamics, *data], n_steps=n_steps, sequences=tables)
    weight, _, acceptance, steps, has_turned, has_diverged = states[9:]
    return Growth(
        End(*states[:3]),
        Sample(*states[5:9]),
        weight,
        acceptance,
        steps,
        has_turned,
        has_diverged,
    )


def kinetic_energy(momentum: TensorVariable) -> TensorVariable:
    """Return the kinetic energy; a sum is fewer operators than a product of vectors."""
    return 0.5 * (momentum * momentum).sum()


def makes_turn(
    distance: TensorVariable, first: TensorVariable, second: TensorVariable
) -> TensorVariable:
    """Return one where the distance of two ends would shrink at either, by their momenta."""
    along = pt.minimum((distance * first).sum(axis=-1), (distance * second).sum(axis=-1))
    return (along <= 0.0).astype("float64")


def chosen(condition: TensorVariable, first: tuple, second: tuple) -> Sample:
    """Return the first sample where a condition holds, else the second."""
    return Sample(*(pt.switch(condition, a, b) for a, b in zip(first, second, strict=True)))


def leaf_tables(max_depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each leaf of a tree the row that keeps it, and the rows to compare it with.

    An even leaf begins sub-trees; it is kept in the row of the number of ones in the binary form of
    half its number. An odd leaf that ends in k ones completes sub-trees of 2, 4, …, 2**k leaves,
    whose first leaves are in the last k of the rows up to its own.

    Parameters
    ----------
    max_depth
        Largest depth of a trajectory, of which half is one tree.

    Returns
    -------
    writes
        bool of shape (leaves, rows).
    checks
        float64 of shape (leaves, rows), one for rows to compare with.

    Examples
    --------
    >>> writes, checks = leaf_tables(3)
    >>> writes.astype(int).tolist()
    [[1, 0], [0, 0], [0, 1], [0, 0]]
    >>> checks.astype(int).tolist()
    [[0, 0], [1, 0], [0, 0], [1, 1]]
    """
    n, rows = 2 ** (max_depth - 1), max(max_depth - 1, 1)
    writes, checks = np.zeros((n, rows), bool), np.zeros((n, rows))
    for leaf in range(n):
        last = (leaf >> 1).bit_count()
        if leaf % 2 == 0:
            writes[leaf, last if leaf else 0] = True
            continue
        completed = (~leaf & (leaf + 1)).bit_length() - 1
        checks[leaf, last - completed + 1 : last + 1] = 1.0
    return writes, checks
