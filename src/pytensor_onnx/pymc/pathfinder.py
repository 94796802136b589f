"""Export Pathfinder for a PyMC model: normal distributions along the way to a mode.

L. Zhang, B. Carpenter, A. Gelman, A. Vehtari, "Pathfinder: parallel quasi-Newton variational
inference", JMLR 23 (2022) 306.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.ops.random.draws import NormalPairs, StandardUniform
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.chains import ATTEMPTS, first_point
from pytensor_onnx.pymc.drawn_graphs import (
    CHAIN,
    DRAW,
    density_of,
    initial_point_of,
    log_densities,
    model_to_draw,
    named_outputs,
    values_of_points,
)
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.model_graphs import POINT
from pytensor_onnx.pymc.nuts import Density, State
from pytensor_onnx.pymc.pareto import pareto_smoothed
from pytensor_onnx.pymc.posterior import state_of_seed
from pytensor_onnx.pymc.quasi_newton import (
    PAIRS,
    ROUNDING,
    Inverse,
    ascend,
    first_inverse,
    normal_draws,
    normal_log_densities,
    times,
)

PATH = "path"

ELBO_DRAWS = 20
"""Draws that a distribution on a path is judged by."""

PATHS_OF_CHAIN, DRAWS_OF_PATH = 4, 25
"""Paths of a chain that starts at one of their draws, and draws of each."""

_JITTERS, _NORMALS, _DRAWS, _CHOICES = 2**29 + 1, 2**29 + 2, 2**29 + 3, 2**29 + 4
"""Streams of random numbers: starts, judgements, draws of a path, and draws among all paths."""


@fewer_collections()
@working("exporting")
def export_pathfinder(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    variables: Sequence[str] | None = None,
    unconstrained: bool = False,
    data: str | Iterable[str] = "inputs",
    share_data: bool = True,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export Pathfinder for a PyMC model: draws near the posterior, by the paths of L-BFGS.

    Each path of L-BFGS ascends from a random start to a mode of the log-density in the
    unconstrained space. Each of its steps gives a normal distribution, and the path keeps the one
    with the largest evidence lower bound (ELBO), by 20 draws. The draws of all paths are drawn from
    again, by smoothed importance weights.

    The file has the inputs ``seed``, an int64 vector of one number for each path, ``draws``, their
    number for each path and in all, and those of ``data``. Its outputs are

    - the draws of each variable, of shape ``(chain, draw, ...)`` with one chain;
    - ``lp``, the log-density of each draw;
    - ``pareto_k``, which tells how far the paths are from the posterior: draws are reliable
      below 0.7;
    - for each path, ``elbo``, and ``n_steps``, the number of steps.

    A path without a finite start has the ELBO minus infinity, and no draws. If all paths are so,
    draws are NaN.

    Parameters
    ----------
    model
        The model. Its discrete variables are summed out, and drawn back, as by `export_sampler`.
    path
        File to write; none unless given.
    variables
        Names of free variables and deterministics to return; all unless given.
    unconstrained
        Whether to return the draws in the unconstrained space too, as the output ``point``, in the
        order of `export_logp`.
    data, share_data, verify, options
        As in `export_sampler`.

    Returns
    -------
    ONNXProgram
        The model, with the metadata of `export_logp`.

    Raises
    ------
    ArgumentError
        If the model has discrete variables that cannot be summed out, no continuous free ones, or
        not those named, or an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted; nothing is written.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     sigma = pm.HalfNormal("sigma")
    ...     y = pm.Normal("y", 0.0, sigma, observed=[1.0, 2.0, 4.0])
    >>> program = export_pathfinder(model)
    >>> names = [output.name for output in program.proto.graph.output]
    >>> found = dict(zip(names, program(seed=[1, 2, 3, 4], draws=500)))
    >>> found["sigma"].shape, found["elbo"].shape, bool(found["pareto_k"] < 0.7)
    ((1, 500), (4,), True)
    """
    read = read_options(export_pathfinder, path, verify, {"precision": "float64", **options})
    to_draw = model_to_draw(model, data, variables)
    graph, wanted = to_draw.graph, to_draw.wanted
    seed, n_draws = pt.lvector("seed"), pt.lscalar("draws")
    density, given_data = density_of(graph, lockstep=False)
    points, lp, log_ratios, _, elbo, n_steps = paths(
        density, given_data, initial_point_of(graph), seed, n_draws
    )
    size = points.shape[2]
    weights, k = pareto_smoothed(log_ratios.ravel())
    chosen = _chosen(weights, seed, n_draws)
    lost = pt.isnan(weights).any()
    positions = pt.switch(lost, np.nan, points.reshape((-1, size))[chosen])[None]
    draws = {
        **values_of_points(graph, positions, wanted, seed[:1], pt.constant(np.int64(0))),
        **({POINT: positions} if unconstrained else {}),
        "lp": pt.switch(lost, np.nan, lp.ravel()[chosen])[None],
    }
    fit = {"pareto_k": k, "elbo": elbo, "n_steps": n_steps}
    dims = {"pareto_k": [], "elbo": [PATH], "n_steps": [PATH]}
    given = Inputs()
    given.add(seed, [1], {0: PATH})
    given.add(n_draws, 30)
    given.add_data(graph)
    return make_program(
        graph,
        given,
        named_outputs(draws, fit),
        read,
        description={"sampler": {"method": "pathfinder", "fit": dims}, **to_draw.description},
        details=Details(output_axes={0: CHAIN, 1: DRAW}, others={*fit}, share_data=share_data),
    )


class Best(NamedTuple):
    """The distribution of a path with the largest ELBO so far."""

    elbo: TensorVariable
    mean: TensorVariable
    covariance: Inverse


def paths(
    density: Density,
    data: Sequence[TensorVariable],
    center: TensorVariable,
    seed: TensorVariable,
    n_draws: TensorVariable,
) -> list[TensorVariable]:
    """Return the draws of each path, their log-densities and ratios, means, ELBOs, and steps.

    The mean of a path without an ELBO is its start.

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    center
        Vector around which paths start, each coordinate moved by a uniform number in (-1, 1).
    seed
        int64 vector, a number for each path.
    n_draws
        Number of draws of each path.
    """

    def of_path(
        seed: TensorVariable,
        center: TensorVariable,
        n_draws: TensorVariable,
        *data: TensorVariable,
    ) -> list[TensorVariable]:
        size = center.shape[0]
        _, uniforms = StandardUniform("float64")(state_of_seed(seed, _JITTERS), ATTEMPTS * size)
        jitters = (2.0 * uniforms - 1.0).reshape((ATTEMPTS, size))
        start, is_finite = first_point(density, data, center, None, jitters)
        best, n_steps = _best_of_path(density, data, start, seed)
        normals = _normals(seed, _DRAWS, n_draws, size)
        points = best.mean + normal_draws(best.covariance, normals)
        lp = log_densities(density, data, points)
        log_ratios = lp - normal_log_densities(best.covariance, points - best.mean)
        has_draws = is_finite & (best.elbo > -np.inf)
        # A draw whose density is not a number has no weight.
        has_weight = has_draws & ~pt.isnan(log_ratios)
        weighted = pt.switch(has_weight, log_ratios, -np.inf)
        return [points, lp, weighted, best.mean, best.elbo, n_steps]

    results = pytensor.scan(
        of_path,
        [seed],
        non_sequences=[center, n_draws, *data],
        return_updates=False,
        name="paths",
    )
    points, lp, log_ratios, means, elbo, n_steps = results
    # A loop over no paths has lost the sizes of a row.
    n_paths, size = seed.shape[0], center.shape[0]
    shape = n_paths, n_draws
    points, means = points.reshape((*shape, size)), means.reshape((n_paths, size))
    return [points, lp.reshape(shape), log_ratios.reshape(shape), means, elbo, n_steps]


def starts_by_paths(
    density: Density,
    data: Sequence[TensorVariable],
    center: TensorVariable,
    seed: TensorVariable,
) -> TensorVariable:
    """Return a start for each chain: a draw from those of four paths, by its importance weight.

    A chain of whose draws none has a weight starts where its first path does.

    Parameters
    ----------
    density, data, center
        As for `paths`.
    seed
        int64 vector, a number for each chain. The start depends on the chain's own seed only.
    """
    n_chains, size = seed.shape[0], center.shape[0]
    of_paths = (PATHS_OF_CHAIN * seed[:, None] + np.arange(PATHS_OF_CHAIN)).ravel()
    n_draws = pt.constant(np.int64(DRAWS_OF_PATH))
    points, _, log_ratios, means, _, _ = paths(density, data, center, of_paths, n_draws)
    n_points = PATHS_OF_CHAIN * DRAWS_OF_PATH
    log_ratios = log_ratios.reshape((n_chains, n_points))
    largest = log_ratios.max(axis=1, keepdims=True)
    sums = pt.cumsum(pt.exp(log_ratios - largest), axis=1)
    uniforms = pytensor.scan(
        lambda one: StandardUniform("float64")(state_of_seed(one, _CHOICES), pt.constant(1))[1][0],
        [seed],
        return_updates=False,
        name="numbers",
    )
    place = pt.argmax(sums > uniforms[:, None] * sums[:, -1:], axis=1)
    chains = pt.arange(n_chains)
    chosen = points.reshape((n_chains * n_points, size))[chains * n_points + place]
    has_weight = largest > -np.inf
    return pt.switch(has_weight, chosen, means[chains * PATHS_OF_CHAIN])


def _best_of_path(
    density: Density,
    data: Sequence[TensorVariable],
    start: State,
    seed: TensorVariable,
) -> tuple[Best, TensorVariable]:
    """Return the best distribution of a path, and the number of steps."""
    n_draws = pt.constant(np.int64(ELBO_DRAWS))
    normals = _normals(seed, _NORMALS, n_draws, start.x.shape[0])

    # The same numbers for all steps, whose differences are then of the distributions alone.
    def visit(
        now: State,
        inverse: Inverse,
        best: Best,
        normals: TensorVariable,
        *data: TensorVariable,
    ) -> Best:
        mean = now.x + times(inverse, now.gradient)
        points = normal_draws(inverse, normals)
        log_ratios = log_densities(density, data, mean + points)
        log_ratios -= normal_log_densities(inverse, points)
        elbo = log_ratios.mean()
        # Of two distributions that are the posterior itself, rounding does not choose.
        is_better = elbo - best.elbo > ROUNDING * pt.abs(elbo)
        new, old = [elbo, mean, *inverse], [best.elbo, best.mean, *best.covariance]
        kept = [pt.switch(is_better, a, b) for a, b in zip(new, old, strict=True)]
        return Best(kept[0], kept[1], Inverse(*kept[2:]))

    nothing = Best(pt.constant(np.float64(-np.inf)), start.x, first_inverse(start.gradient))
    _, n_steps, best = ascend(density, data, start, visit, nothing, [normals])
    return best, n_steps


def _normals(
    seed: TensorVariable, stream: int, n_draws: TensorVariable, size: TensorVariable
) -> TensorVariable:
    """Return the normal numbers of draws of a path."""
    width = size + PAIRS
    _, normals = NormalPairs("float64")(state_of_seed(seed, stream), n_draws * width)
    return normals.reshape((n_draws, width))


def _chosen(
    log_weights: TensorVariable, seed: TensorVariable, n_draws: TensorVariable
) -> TensorVariable:
    """Return the places of draws among those of all paths, by their weights."""
    first = pt.concatenate([seed, pt.zeros(1, dtype="int64")])[0]
    _, uniforms = StandardUniform("float64")(state_of_seed(first, _CHOICES), n_draws)
    places = pt.searchsorted(pt.cumsum(pt.exp(log_weights)), uniforms, side="right")
    # Their sum may be below one by rounding.
    return pt.minimum(places, log_weights.shape[0] - 1)
