"""Sequential Monte Carlo from the prior to the posterior.

P. Del Moral, A. Doucet, A. Jasra, "Sequential Monte Carlo samplers", Journal of the Royal
Statistical Society B 68 (2006) 411. Arrays of particles have a row for each.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.linalg import cholesky, solve_triangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.random.draws import NormalPairs, StandardUniform
from pytensor_onnx.pymc.posterior import state_of_seed

EFFECTIVE = 0.5
"""Effective share of the particles after each increase of the temper."""

MOST_STAGES, MOST_STEPS = 200, 100
"""Stages of a chain, and Metropolis steps of a stage."""

CORRELATION = 0.1
"""Mean correlation of coordinates with those before the steps of a stage at which these end."""

TARGET = 0.3
"""Share of random walk steps to accept."""

_HALVINGS = 50
_NORMALS, _UNIFORMS, _PARENTS, _ORDER = (2**29 + 16 + i for i in range(4))
"""Streams of proposals, of their acceptance, of the choice of parents, and of their order."""

Terms = Callable[..., Sequence[TensorVariable]]
"""Function of a point, and of variables such as data: log-densities of prior and likelihood."""


class Particles(NamedTuple):
    """Points with the log-densities of their prior and likelihood."""

    x: TensorVariable
    prior: TensorVariable
    likelihood: TensorVariable


class Progress(NamedTuple):
    """State of a chain.

    Attributes
    ----------
    temper
        Power of the likelihood, from zero for the prior to one for the posterior.
    log_evidence
        Logarithm of the mean likelihood under the prior, with that power.
    scale
        Scale of the random walk, relative to the covariance of the particles.
    n_stages, n_steps
        Numbers of stages, and of Metropolis steps of each particle.
    """

    temper: TensorVariable
    log_evidence: TensorVariable
    scale: TensorVariable
    n_stages: TensorVariable
    n_steps: TensorVariable


class Proposal(NamedTuple):
    """The normal distribution of a stage: mean, and Cholesky factor of the covariance."""

    mean: TensorVariable
    root: TensorVariable


def evaluated(terms: Terms, x: TensorVariable, data: Sequence[TensorVariable]) -> Particles:
    """Return points as particles; a log-density that is not a number is minus infinity."""
    values = pytensor.scan(
        terms, [x], non_sequences=list(data), return_updates=False, name="densities"
    )
    prior, likelihood = (pt.switch(pt.isnan(value), -np.inf, value) for value in values)
    return Particles(x, prior, likelihood)


def temper(
    terms: Terms, data: Sequence[TensorVariable], start: TensorVariable, seed: TensorVariable
) -> tuple[Particles, Progress]:
    """Return particles from the posterior, and the state of the chain.

    Parameters
    ----------
    terms, data
        Log-densities of prior and likelihood, and the further variables that they take.
    start
        Particles from the prior.
    seed
        Seed of the chain.
    """
    zero, one = (pt.constant(np.float64(x)) for x in (0.0, 1.0))
    none = pt.constant(np.int64(0))
    begin = Progress(zero, zero, one, none, none)

    def stage(
        now: Particles, progress: Progress, seed: TensorVariable, *data: TensorVariable
    ) -> tuple[list, until]:
        after = _next_temper(now.likelihood, progress.temper)
        gains = (after - progress.temper) * now.likelihood
        evidence = progress.log_evidence + _log_mean(gains)
        parents = _parents(gains, seed, progress.n_stages)
        now = Particles(*(rows[parents] for rows in now))
        progress = progress._replace(temper=after, log_evidence=evidence)
        now, progress = _moved(terms, data, now, progress, seed)
        # No particle may have a likelihood.
        ends = ~(after < 1.0) | pt.isnan(evidence)
        return [now, progress._replace(n_stages=progress.n_stages + 1)], until(ends)

    particles = evaluated(terms, start, data)
    return tuple(iterate(stage, [particles, begin], [seed, *data], n_steps=MOST_STAGES))


def _next_temper(likelihood: TensorVariable, now: TensorVariable) -> TensorVariable:
    """Return the largest temper at which enough particles are effective, by halving."""

    def halve(
        low: TensorVariable, high: TensorVariable, likelihood: TensorVariable, now: TensorVariable
    ) -> list[TensorVariable]:
        middle = 0.5 * (low + high)
        enough = _is_enough((middle - now) * likelihood)
        return [pt.switch(enough, middle, low), pt.switch(enough, high, middle)]

    one = pt.constant(np.float64(1.0))
    low, _ = iterate(halve, [now, one], [likelihood, now], n_steps=_HALVINGS)
    return pt.switch(_is_enough((1.0 - now) * likelihood), 1.0, low)


def _is_enough(gains: TensorVariable) -> TensorVariable:
    weights = pt.exp(gains - gains.max())
    effective = pt.sqr(weights.sum()) / pt.sqr(weights).sum()
    return effective >= EFFECTIVE * gains.shape[0].astype("float64")


def _log_mean(x: TensorVariable) -> TensorVariable:
    largest = x.max()
    return largest + pt.log(pt.exp(x - largest).mean())


def _parents(gains: TensorVariable, seed: TensorVariable, stage: TensorVariable) -> TensorVariable:
    """Return the places of particles by their weights, at equal distances, in random order."""
    n = gains.shape[0]
    _, offset = StandardUniform("float64")(state_of_seed(seed, _PARENTS, stage), 1)
    _, order = StandardUniform("float64")(state_of_seed(seed, _ORDER, stage * n), n)
    sums = pt.cumsum(pt.exp(gains - gains.max()))
    levels = (pt.arange(n).astype("float64") + offset[0]) / n.astype("float64")
    places = pt.searchsorted(sums, levels * sums[-1], side="right")
    return pt.minimum(places, n - 1)[pt.argsort(order)]


def _moved(
    terms: Terms,
    data: Sequence[TensorVariable],
    start: Particles,
    progress: Progress,
    seed: TensorVariable,
) -> tuple[Particles, Progress]:
    """Move particles by Metropolis steps, until they forget where they were.

    Random walks and draws from the normal distribution of all particles take turns: the draws cross
    between modes, and the walks need no normal posterior.
    """
    x = start.x
    mean = x.mean(axis=0)
    centered = x - mean
    n, size = (k.astype("float64") for k in (x.shape[0], x.shape[1]))
    covariance = centered.T @ centered / n
    # Few particles have a covariance of low rank.
    share = size / (size + n)
    variances = pt.diag(covariance)
    covariance = (1.0 - share) * covariance + pt.diag(share * variances)
    root = cholesky(covariance, lower=True, on_error="nan")
    step = partial(_metropolis, terms)
    zero = pt.constant(np.int64(0))
    proposal = Proposal(mean, root)
    now, scale, n_steps, _ = iterate(
        step,
        [start, progress.scale, zero, pt.eq(zero, 0)],
        [start.x, proposal, progress, seed, *data],
        n_steps=MOST_STEPS,
    )
    return now, progress._replace(scale=scale, n_steps=progress.n_steps + n_steps)


def _metropolis(
    terms: Terms,
    now: Particles,
    scale: TensorVariable,
    count: TensorVariable,
    walks: TensorVariable,
    *given: TensorVariable,
) -> tuple[list, until]:
    """Return the particles after a step, and the condition for the end."""
    start, proposal, progress, seed, *data = given
    mean, root = proposal
    n, size = now.x.shape[0], now.x.shape[1]
    number = progress.n_steps + count
    # An even number of words, as normal numbers come in pairs.
    words = (n * size + 1) // 2 * 2
    _, normals = NormalPairs("float64")(state_of_seed(seed, _NORMALS, number * words), n * size)
    _, uniforms = StandardUniform("float64")(state_of_seed(seed, _UNIFORMS, number * n), n)
    normals = normals.reshape((n, size))
    width = scale * 2.38 / pt.sqrt(size.astype("float64"))
    step = normals @ root.T
    there = evaluated(terms, pt.switch(walks, now.x + width * step, mean + step), data)
    gain = there.prior - now.prior + progress.temper * (there.likelihood - now.likelihood)
    standard = solve_triangular(root, (now.x - mean).T, lower=True)
    independent = 0.5 * (normals * normals).sum(axis=1) - 0.5 * (standard * standard).sum(axis=0)
    gain = gain + pt.switch(walks, 0.0, independent)
    is_taken = pt.log(uniforms) < gain
    after = Particles(
        pt.switch(is_taken[:, None], there.x, now.x),
        *(pt.switch(is_taken, a, b) for a, b in zip(there[1:], now[1:], strict=True)),
    )
    accepted = is_taken.astype("float64").mean()
    scale = pt.switch(walks, scale * pt.exp(accepted - TARGET), scale)
    return [after, scale, count + 1, ~walks], until(_correlation(start, after.x) < CORRELATION)


def _correlation(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return the mean of the correlations of the columns of two matrices."""
    a, b = (x - x.mean(axis=0) for x in (a, b))
    lengths = pt.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
    return ((a * b).sum(axis=0) / lengths).mean()
