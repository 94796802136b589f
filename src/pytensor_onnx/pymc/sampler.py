"""Export a sampler of a PyMC model: warm-up and draws of NUTS as one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.chains import (
    POSITION,
    STATE,
    Requested,
    Settings,
    sample_chains,
    steps_before,
    width_of_state,
)
from pytensor_onnx.pymc.diagnostics import OF_CHAINS, diagnostics_of
from pytensor_onnx.pymc.drawn_graphs import (
    CHAIN,
    DRAW,
    density_of,
    initial_point_of,
    model_to_draw,
    named_outputs,
    values_of_points,
)
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.model_arguments import read_choice
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph
from pytensor_onnx.pymc.pathfinder import starts_by_paths
from pytensor_onnx.pymc.shared_data import prior_quantiles

METRICS = ("diagonal", "low_rank")
"""Metrics of the sampler."""

PATHFINDER = "pathfinder"
"""Value of ``start`` for chains that start at draws of Pathfinder."""

LOCKSTEP = 200
"""Elements of the largest array of a model whose chains take their steps together.

Eight chains of a regression of 434 rows take a fifth of the time one after another, those of eight
schools twice as long; at 200 rows both take as long.
"""


@fewer_collections()
@working("exporting")
def export_sampler(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    variables: Sequence[str] | None = None,
    unconstrained: bool = False,
    start: bool | str = False,
    state: bool = False,
    diagnostics: bool = False,
    data: str | Iterable[str] = "inputs",
    metric: str = "diagonal",
    max_tree_depth: int = 10,
    target_accept: float = 0.8,
    lockstep: bool | None = None,
    probabilities: bool = False,
    share_data: bool = True,
    units: Mapping[str, str] | None = None,
    prior_draws: int = 0,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export a sampler of a PyMC model: warm-up and draws of NUTS.

    The file has the inputs ``seed``, an int64 vector of one number for each chain, ``warmup`` and
    ``draws``, numbers of steps, and those of ``data`` and ``start``. Its outputs are the draws of
    each variable, of shape ``(chain, draw, ...)``, and the statistics ``lp`` (log-density),
    ``energy``, ``diverging``, ``tree_depth``, ``n_steps``, ``acceptance_rate`` and ``step_size`` of
    each draw. ``finite_start`` is false for a chain whose log-density is not finite where it
    starts; its draws then mean nothing, and a call of the program raises `RunError`.

    Parameters
    ----------
    model
        The model. Its discrete variables, and those that `pymc_extras.marginal.marginalize` has
        taken out of it, are summed out and drawn back for each draw.
    path
        File to write; none unless given.
    variables
        Names of free variables and deterministics to return; all unless given.
    unconstrained
        Whether to return the draws in the unconstrained space too, as the output ``point``: one
        vector for each draw, in the order of `export_logp`.
    start
        Whether the file has an input ``start``, one point for each chain. Without it, chains start
        around the initial point of the model, each coordinate moved by a uniform number in (-1, 1),
        up to 100 times until the log-density and its gradient are finite. With ``"pathfinder"``
        four paths of `export_pathfinder` go from there for each chain, within the file. The chain
        starts at one of their draws, chosen by importance weights: near the posterior, and not in
        a minor mode if one of the paths finds a better one.
    state
        Whether the file has an input ``state`` and an output ``next_state``, a row for each chain:
        its position, gradient and scales, eigenvectors and stretches of a low-rank metric,
        log-density, logarithm of the step size, and number of steps. Chains go on from the rows of
        an earlier call for ``draws`` steps, without a warm-up; with no rows, new chains start.
    diagnostics
        Whether the file has the outputs ``rhat_x``, ``ess_bulk_x`` and ``ess_tail_x`` for each
        variable x, of its shape: rank-normalised split R-hat and effective numbers of draws, as
        ArviZ computes them; and, for each chain, ``bfmi``, the estimated fraction of missing
        information, and ``divergences``, their number.
    data
        As in `export_logp`.
    metric
        ``"diagonal"``, or ``"low_rank"`` for a posterior with strong correlations: its eigenvectors
        correct the scales, as with ``adaptation="low_rank"`` of nutpie. A trajectory takes fewer
        leapfrog steps then, 7 in place of 230 for a regression on 24 nearly dependent covariates.
        The products with up to 64 eigenvectors cost time where the density is cheap and has many
        coordinates, and estimates of them in the warm-up, of hundreds of coordinates.
    max_tree_depth
        Largest number of doublings of a trajectory.
    target_accept
        Mean probability of acceptance that the warm-up adapts the step size to.
    lockstep
        Whether the chains of a call take their leapfrog steps together, or run one after another.
        By default they go together if no array of the model has more than 200 numbers, and the
        density has no loop: operations on small arrays cost the same for several chains, but chains
        wait for the longest trajectory. With a low-rank metric they always run one after another.
    probabilities
        Whether the file has the output ``x_probabilities`` for each variable x that is summed out:
        the probabilities of its values, on the last axis, given the other variables of the draw.
    share_data
        Whether the metadata of the file have the ranges of the data and a sample of them, at most
        1,000 rows, for [its page](https://pytensor-onnx.github.io/pytensor-onnx/how-to/web.html).
    units
        Units of data and variables by their names, for the page.
    prior_draws
        Number of draws from the prior, whose quantiles the metadata have: the page shows them
        beside the posterior. A model with potentials or improper priors has none.
    verify, options
        As in `export_logp`. The file is verified on three steps of one chain.

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
    >>> sampler = export_sampler(model)
    >>> sigma, *statistics = sampler(seed=[1, 2], warmup=200, draws=100)
    >>> sigma.shape
    (2, 100)
    """
    # Step sizes, energies and the sums of the warm-up need float64, for all targets.
    read = read_options(export_sampler, path, verify, {"precision": "float64", **options})
    check_numbers(max_tree_depth, target_accept)
    read_choice(metric, METRICS, "metric")
    if not isinstance(start, bool):
        read_choice(start, (PATHFINDER,), "start")
    low_rank = metric == "low_rank"
    to_draw = model_to_draw(model, data, variables, probabilities=probabilities)
    graph = to_draw.graph
    if lockstep is None:
        lockstep = not (low_rank or _largest_array(graph) > LOCKSTEP or _has_loop(graph))
    if lockstep and low_rank:
        raise ArgumentError('chains with metric="low_rank" run one after another: lockstep=False')
    density, further = density_of(graph, lockstep=lockstep)
    seed, n_warmup, n_draws = pt.lvector("seed"), pt.lscalar("warmup"), pt.lscalar("draws")
    shape = (None, *graph.point.type.shape)
    starts = pt.tensor("start", dtype="float64", shape=shape) if start is True else None
    rows = pt.matrix(STATE, dtype="float64") if state else None
    found = _found_starts(graph, seed, rows) if start == PATHFINDER else starts
    requested = Requested(seed, n_warmup, n_draws, found, rows)
    settings = Settings(lockstep, max_tree_depth, target_accept, low_rank)
    results = sample_chains(density, initial_point_of(graph), requested, further, settings)
    positions = results.pop(POSITION)
    first = pt.add(*steps_before(requested))
    outputs = values_of_points(graph, positions, to_draw.wanted, seed, first)
    told: dict[str, TensorVariable] = {}
    if diagnostics:
        told = diagnostics_of(outputs, results["energy"], results["diverging"])
    if unconstrained:
        outputs[POINT] = positions
    description: dict[str, Any] = {"max_tree_depth": max_tree_depth, "target_accept": target_accept}
    if settings.low_rank:
        description["metric"] = metric
    if start == PATHFINDER:
        description["start"] = PATHFINDER
    if diagnostics:
        description["diagnostics"] = [*told]
    of_page: dict[str, Any] = {}
    if units:
        of_page["units"] = dict(units)
    if prior_draws:
        of_page["prior"] = prior_quantiles(model, [*to_draw.wanted], prior_draws)
    return make_program(
        graph,
        _inputs(
            graph, seed, n_warmup, n_draws, starts, rows, width_of_state(graph.start.size, settings)
        ),
        named_outputs(outputs, results, told),
        read,
        description={"sampler": description, **of_page, **to_draw.description},
        details=Details(
            output_axes={0: CHAIN, 1: DRAW},
            others={name for name in told if name not in OF_CHAINS},
            share_data=share_data,
        ),
    )


def _found_starts(
    graph: ModelGraph, seed: TensorVariable, rows: TensorVariable | None
) -> TensorVariable:
    """Return the starts that Pathfinder finds, or zeros for chains that go on from a state."""
    density, further = density_of(graph, lockstep=False)
    starts = starts_by_paths(density, further, initial_point_of(graph), seed)
    if rows is not None:
        starts = ifelse(rows.shape[0] > 0, pt.zeros_like(starts), starts)
    return pt.specify_shape(starts, (None, *graph.point.type.shape))


def _largest_array(graph: ModelGraph) -> int:
    """Return the number of elements of the largest array of a model, data and values included."""
    arrays = [v.get_value(borrow=True) for v in graph.containers]
    arrays += [v.data for v in ancestors([graph.logp]) if isinstance(v, TensorConstant)]
    return max(graph.start.size, *map(np.size, arrays), 0)


def _has_loop(graph: ModelGraph) -> bool:
    """Whether the density has a loop, whose steps cost as much for each of several chains."""
    nodes = (v.owner for v in ancestors([graph.logp]))
    return any(node is not None and isinstance(node.op, Scan) for node in nodes)


def check_numbers(max_tree_depth: Any, target_accept: Any) -> None:
    """Raise for settings that are no numbers, or out of range."""
    check_tree_depth(max_tree_depth)
    if not isinstance(target_accept, float) or not 0.0 < target_accept < 1.0:
        raise ArgumentError(f"target_accept is {target_accept!r}: give a number between 0 and 1")


def check_tree_depth(max_tree_depth: Any) -> None:
    """Raise for a number of doublings that is no number, or out of range."""
    if not isinstance(max_tree_depth, int) or not 1 <= max_tree_depth <= 14:
        raise ArgumentError(f"max_tree_depth is {max_tree_depth!r}: give a number from 1 to 14")


def _inputs(
    graph: ModelGraph,
    seed: TensorVariable,
    n_warmup: TensorVariable,
    n_draws: TensorVariable,
    starts: TensorVariable | None,
    state: TensorVariable | None,
    width: int,
) -> Inputs:
    """Return the inputs of the file, with values for its verification."""
    given = Inputs()
    given.add(seed, [1], {0: CHAIN})
    given.add(n_warmup, 2)
    given.add(n_draws, 1)
    if starts is not None:
        axes = {0: CHAIN} if graph.point.type.shape != (None,) else {0: CHAIN, 1: f"{POINT}_size"}
        given.add(starts, graph.start[None], axes)
    if state is not None:
        given.add(state, np.zeros((0, width)), {0: f"{STATE}_rows", 1: f"{STATE}_size"})
    given.add_data(graph)
    return given
