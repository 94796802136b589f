"""The normal distribution of any covariance with the largest evidence lower bound.

Its steps follow the natural gradient, which takes no notice of scales and correlations: a normal
posterior is reached at the same rate whatever its covariance (M. E. Khan, D. Nielsen, "Fast yet
simple natural-gradient descent for variational inference in complex models", ISITA 2018). Gradients
of the distribution's own log-density by its parameters are left out, so that their noise ends where
the distribution is the posterior (G. Roeder, Y. Wu, D. Duvenaud, NeurIPS 2017).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.random.draws import NormalPairs
from pytensor_onnx.pymc.nuts import Density
from pytensor_onnx.pymc.posterior import state_of_seed

MOST_STEPS = 1024
"""Steps after which the search ends."""

LONG_STEPS, FIRST_RATE = 32, 0.5
"""Steps of the first rate, which then falls as the reciprocal of their number."""

FEWEST_PAIRS = 15
"""Pairs of draws of a step, at least; three for two coordinates, if that is more.

The estimate of the curvature has the largest eigenvalue (1 + √(coordinates / pairs))² for a normal
posterior, and steps with twice the reciprocal of that would not converge.
"""

TOLERANCE = 0.05
"""Kullback-Leibler divergence from the distribution after half of the steps at which they end."""


class Normal(NamedTuple):
    """A normal distribution.

    Attributes
    ----------
    mean, root
        The covariance is ``root @ root.T``.
    log_volume
        Logarithm of the determinant of the root.
    """

    mean: TensorVariable
    root: TensorVariable
    log_volume: TensorVariable


class Search(NamedTuple):
    """What a search for the distribution has seen.

    Attributes
    ----------
    since
        The distribution, relative to the one at the last power of two steps: as that of
        coordinates in which the latter is the standard normal.
    bounds
        Sum of the estimates of the evidence lower bound since then.
    elbo
        Mean of those before.
    distance
        Kullback-Leibler divergence between the distributions at the last two powers.
    share
        Share of the draws of the last step at which the density is finite.
    """

    since: Normal
    bounds: TensorVariable
    elbo: TensorVariable
    distance: TensorVariable
    share: TensorVariable


class Found(NamedTuple):
    """The distribution that a search has found, its bound, and how the search ended."""

    normal: Normal
    elbo: TensorVariable
    converged: TensorVariable
    n_steps: TensorVariable


def nearest_normal(
    density: Density,
    data: Sequence[TensorVariable],
    mean: TensorVariable,
    sd: TensorVariable,
    stream: int,
) -> Found:
    """Return the normal distribution with the largest evidence lower bound.

    Each step takes new draws, as many as three times the number of coordinates, so that the
    covariance does not fit the draws. Where the density is not finite, they do not count.

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    mean, sd
        Means and standard deviations of the first distribution.
    stream
        Stream of the normal numbers.
    """
    size = mean.shape[0]
    pairs = pt.maximum(FEWEST_PAIRS, (3 * size + 1) // 2)

    def step(
        now: Normal,
        seen: Search,
        count: TensorVariable,
        pairs: TensorVariable,
        *data: TensorVariable,
    ) -> tuple[list, until]:
        size = now.mean.shape[0]
        # Each pair of numbers takes two words, so that the positions are even.
        width = pairs * size + (pairs * size) % 2
        state = state_of_seed(pt.constant(0), stream, count * width)
        half = NormalPairs("float64")(state, pairs * size)[1].reshape((pairs, size))
        normals = pt.concatenate([half, -half])
        values, gradients = pytensor.scan(
            density,
            [now.mean + normals @ now.root.T],
            non_sequences=list(data),
            return_updates=False,
            name="densities",
        )
        counts = pt.isfinite(values + gradients.sum(axis=1))
        slopes = pt.switch(counts[:, None], gradients @ now.root + normals, 0.0)
        rate = 1.0 / (1.0 / FIRST_RATE + pt.maximum(count + 1 - LONG_STEPS, 0))
        change = _change(slopes, normals, rate)
        after, since = (_moved(normal, change) for normal in (now, seen.since))
        bound = (values + 0.5 * (normals * normals).sum(axis=1)).mean() + now.log_volume
        bounds = seen.bounds + bound
        count = count + 1
        # A power of two has no bit in common with the number before it.
        is_due = pt.eq(count & (count - 1), 0) & (count >= LONG_STEPS)
        origin = _standard(size)
        kept = [pt.switch(is_due, a, b) for a, b in zip(origin, since, strict=True)]
        following = Search(
            Normal(*kept),
            pt.switch(is_due, 0.0, bounds),
            pt.switch(is_due, bounds / _steps_since(count), seen.elbo),
            pt.switch(is_due, _divergence(since), seen.distance),
            counts.mean(),
        )
        is_near = is_due & (count > LONG_STEPS) & ~(following.distance > TOLERANCE)
        return [after, following, count], until(is_near)

    root = pt.diag(sd)
    zero, infinite = pt.constant(np.float64(0.0)), pt.constant(np.float64(np.inf))
    first = Normal(mean, root, pt.log(sd).sum())
    nothing = Search(_standard(size), zero, -infinite, infinite, zero)
    normal, seen, count = iterate(
        step, [first, nothing, pt.constant(np.int64(0))], [pairs, *data], n_steps=MOST_STEPS
    )
    converged = (seen.distance <= TOLERANCE) & (seen.share > 0.5)
    elbo = seen.elbo + 0.5 * size.astype("float64") * np.log(2.0 * np.pi)
    return Found(normal, elbo, converged, count)


def _standard(size: TensorVariable) -> Normal:
    """Return the standard normal distribution."""
    return Normal(pt.zeros(size), pt.eye(size), pt.constant(np.float64(0.0)))


def _change(slopes: TensorVariable, normals: TensorVariable, rate: TensorVariable) -> Normal:
    """Return the next distribution in coordinates in which the present one is standard normal.

    Its precision is a mean of the present one and of the mean curvature, without directions in
    which the density is convex.

    Parameters
    ----------
    slopes
        Gradients of the log-density less those of the present distribution, for each draw.
    normals
        The draws.
    rate
        Weight of the new precision.
    """
    product = slopes.T @ normals / normals.shape[0]
    values, vectors = pt.linalg.eigh(0.5 * (product + product.T))
    precisions = 1.0 + rate * (pt.maximum(1.0 - values, 0.0) - 1.0)
    move = rate * vectors @ ((vectors.T @ slopes.mean(axis=0)) / precisions)
    # Far from the posterior, gradients grow beyond what curvatures tell of.
    length = pt.sqrt((move * move).sum())
    move = move * pt.minimum(1.0, pt.sqrt(normals.shape[1]) / pt.maximum(length, 1e-300))
    # The symmetric root does not depend on the signs of eigenvectors.
    root = (vectors / pt.sqrt(precisions)) @ vectors.T
    return Normal(move, root, -0.5 * pt.log(precisions).sum())


def _moved(normal: Normal, change: Normal) -> Normal:
    """Return a distribution from one in the coordinates in which a normal one is standard."""
    return Normal(
        normal.mean + normal.root @ change.mean,
        normal.root @ change.root,
        normal.log_volume + change.log_volume,
    )


def _divergence(normal: Normal) -> TensorVariable:
    """Return the Kullback-Leibler divergence of a distribution from the standard normal one."""
    mean, root, log_volume = normal
    squares = (root * root).sum() + (mean * mean).sum() - mean.shape[0]
    return 0.5 * squares - log_volume


def _steps_since(count: TensorVariable) -> TensorVariable:
    """Return the number of steps since the last power of two, or all up to the first one."""
    return pt.switch(pt.eq(count, LONG_STEPS), count, count // 2)
