"""What files of draws share: the variables of a model, its density, and their values at points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.scan.op import Scan
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.operators.dims import Dims, dims_of
from pytensor_onnx.ops.random.draws import NormalPairs
from pytensor_onnx.pymc.chains import DRAWN_BACK
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import make_program, vectorized_graph
from pytensor_onnx.pymc.marginal import Marginalized, name_of_variable
from pytensor_onnx.pymc.model_arguments import check_model, read_strings, shared_name, unknown
from pytensor_onnx.pymc.model_graphs import POINT, FreeValue, ModelGraph, as_compiled
from pytensor_onnx.pymc.nuts import Density
from pytensor_onnx.pymc.pareto import pareto_smoothed
from pytensor_onnx.pymc.posterior import seeded, state_of_seed
from pytensor_onnx.rewriting.engine.predicates import made_by

CHAIN, DRAW = "chain", "draw"

STREAMS_OF_DRAWS = 2**24
"""Streams of each generator of variables that are drawn back, one for each step of a chain."""


class ToDraw(NamedTuple):
    """A model to draw from.

    Attributes
    ----------
    parts
        The model, its discrete variables summed out.
    graph
        Graphs of the model without them.
    wanted
        Variables to return by name, as functions of the values of the graph. Variables that are
        drawn back have generators.
    """

    parts: Marginalized
    graph: ModelGraph
    wanted: dict[str, Variable]

    @property
    def description(self) -> dict[str, Any]:
        """The entries of a description that differ for a model whose variables are summed out."""
        parts = self.parts
        if not parts.draws:
            return {}
        names = [str(v.name) for v in parts.original.deterministics]
        return {"dims": parts.dims, "deterministics": names, "summed": list(parts.summed)}


def model_to_draw(
    model: pm.Model,
    data: str | Iterable[str],
    variables: Sequence[str] | None,
    *,
    probabilities: bool = False,
) -> ToDraw:
    """Return the graphs of a model whose free variables are drawn, and the variables to return.

    Parameters
    ----------
    model, data, variables, probabilities
        As in `export_sampler`.

    Raises
    ------
    ArgumentError
        If the model has discrete variables that cannot be summed out, no continuous free ones, or
        not those named.
    """
    check_model(model)
    parts = Marginalized.of(model)
    graph = ModelGraph(parts.model, data=data)
    check_variables(graph)
    wanted = _wanted(parts, graph, variables, probabilities)
    if graph.containers:
        data_dims = _dims_of_data(graph, list(wanted.values()))
        graph = ModelGraph(parts.model, data=data, data_dims=data_dims)
        wanted = _wanted(parts, graph, variables, probabilities)
    return ToDraw(parts, graph, wanted)


def check_variables(graph: ModelGraph) -> None:
    """Raise unless a model without discrete variables has others."""
    if not graph.continuous:
        raise ArgumentError("the model has no continuous free variables to draw")


def _wanted(
    parts: Marginalized,
    graph: ModelGraph,
    variables: Sequence[str] | None,
    probabilities: bool,
) -> dict[str, Variable]:
    """Return the variables to draw by their names, all unless some are named."""
    known = parts.variables(graph)
    of_values = parts.probabilities(graph) if probabilities else {}
    if variables is None:
        return {**known, **of_values}
    names = dict.fromkeys(read_strings(variables, "variables"))
    for name in names:
        if name not in known:
            raise unknown(name, "free variable or deterministic", known)
    found = {name: known[name] for name in names}
    return {**found, **{k: v for k, v in of_values.items() if name_of_variable(k) in names}}


def _dims_of_data(graph: ModelGraph, wanted: Sequence[Variable]) -> dict[str, Dims]:
    """Return the dimensions that the log-density and variables require of the data.

    Loops require nothing of them, as a loop may run no step.
    """
    given = Inputs()
    given.add_values(graph, vector=True)
    given.add_data(graph)
    results = graph.of_point([graph.logp, *wanted])
    results = seeded(results, pt.constant(np.int64(0)), 0, 1)
    outputs = {str(i): result for i, result in enumerate(results)}
    options = ExportOptions.of("export_sampler", {"verify": False})
    program = make_program(graph, given, outputs, options, description={})
    pairs = zip(given.variables, program.model.graph.inputs, strict=True)
    found = {str(v.name): dims_of(x) for v, x in pairs if v is not graph.point}
    return {name: dims for name, dims in found.items() if dims is not None}


def density_of(graph: ModelGraph, *, lockstep: bool) -> tuple[Density, list[Variable]]:
    """Return the log-density with its gradient, and the further variables that it takes.

    Chains in lockstep have a matrix of points.
    """
    logp, point = graph.logp, graph.point
    (value,) = as_compiled([logp])
    results = graph.of_point([value, graph.join(graph.gradient(logp))])
    if lockstep:
        # First, so that no size depends on the points.
        results = rewrite_graph(results, include=("ShapeOpt", "canonicalize"), clone=False)
        point = pt.tensor("points", dtype=point.type.dtype, shape=(None, *point.type.shape))
        results = vectorized_graph(results, {graph.point: point})
    at_point, further = as_function([point], results)

    def density(x: TensorVariable, *given: TensorVariable) -> list[TensorVariable]:
        return [result.astype("float64") for result in at_point(x, *given)]

    return density, further


def as_function(
    points: Sequence[Variable], results: Sequence[Variable]
) -> tuple[Callable[..., list[Variable]], list[Variable]]:
    """Return a function of points and further variables, and the further variables."""
    inputs = dict.fromkeys(v for v in graph_inputs(results) if not isinstance(v, Constant))
    further = [v for v in inputs if v not in points]

    def at_points(*given: TensorVariable) -> list[Variable]:
        new = [
            old.type.filter_variable(x.astype(old.type.dtype))
            for old, x in zip(points, given, strict=False)
        ]
        values = [*new, *given[len(points) :]]
        replacements = dict(zip([*points, *further], values, strict=True))
        return list(clone_replace(list(results), replacements, rebuild_strict=False))

    return at_points, further


def initial_point_of(graph: ModelGraph) -> TensorVariable:
    """Return the initial point of the model."""
    parts = [_initial(value) for value in graph.continuous]
    (center,) = graph.of_point([graph.join(parts).astype("float64")])
    return pt.specify_shape(center, graph.point.type.shape) if None in center.type.shape else center


def _initial(value: FreeValue) -> Variable:
    """Return the initial value of a variable, of a size that may depend on the data."""
    if not value.open_axes:
        return pt.constant(value.start)
    numbers = np.unique(value.start)
    if len(numbers) != 1:
        raise ArgumentError(
            f"the initial values of {value.rv.name} differ, and their number depends on the data: "
            'pass data="stored"'
        )
    return pt.alloc(pt.constant(numbers[0]), *value.sizes)


def values_of_points(
    graph: ModelGraph,
    positions: TensorVariable,
    wanted: Mapping[str, Variable],
    seed: TensorVariable,
    first: TensorVariable,
) -> dict[str, TensorVariable]:
    """Return variables of the model for each draw.

    Parameters
    ----------
    graph
        The graphs of the model.
    positions
        Points of shape ``(chain, draw, coordinate)``.
    wanted
        Variables as functions of the values. Those of random variables are drawn.
    seed, first
        The seed of each chain, and the number of steps before the first draw: the random numbers
        of a draw depend on these alone.
    """
    if not wanted:
        return {}
    results = graph.of_point(list(wanted.values()))
    of_chain, number = pt.lscalar(), pt.lscalar()
    drawn = seeded(results, of_chain, DRAWN_BACK + number, STREAMS_OF_DRAWS)
    arguments = [graph.point]
    chains, draws, size = (positions.shape[axis] for axis in range(3))
    sequences = [positions.reshape((chains * draws, size))]
    if drawn != results:
        arguments += [of_chain, number]
        sequences += [pt.repeat(seed, draws), pt.tile(first + pt.arange(draws), chains)]
    values, further = as_function(arguments, drawn)
    step, initial = values, []
    if drawn != results and any(made_by(v, Scan) for v in ancestors(drawn)):
        step, initial = _one_after_another(values), [pt.zeros(())]
    rows = pytensor.scan(
        step,
        sequences,
        [*initial, *(None for _ in wanted)],
        further,
        return_updates=False,
        return_list=True,
        name="values",
    )
    return {
        name: row.reshape((chains, draws, *(row.shape[i] for i in range(1, row.ndim))))
        for name, row in zip(wanted, rows[len(initial) :], strict=True)
    }


def _one_after_another(values: Callable[..., list[Variable]]) -> Callable[..., list[Variable]]:
    """Return the step of a loop that is not computed for all draws at once.

    The states of all draws and all steps of a Markov chain would need gigabytes. The point depends
    on a state of the loop, which is always zero.
    """

    def step(
        point: TensorVariable,
        seed: TensorVariable,
        number: TensorVariable,
        zero: TensorVariable,
        *further: TensorVariable,
    ) -> list[Variable]:
        after = pt.maximum(zero, (number < 0).astype(zero.type.dtype))
        return [after, *values(point + after, seed, number, *further)]

    return step


def values_of_point(
    graph: ModelGraph, position: TensorVariable, wanted: Mapping[str, Variable]
) -> dict[str, TensorVariable]:
    """Return the variables of the model that are not drawn back, at one point."""
    results = dict(zip(wanted, graph.of_point(list(wanted.values())), strict=True))
    kept = {name: x for name, x in results.items() if not is_random(x)}
    values, further = as_function([graph.point], list(kept.values()))
    return dict(zip(kept, values(position, *further), strict=True))


def is_random(graph: Variable) -> bool:
    """Whether a graph has random variables."""
    return any(isinstance(v.type, RandomType) for v in ancestors([graph]))


def log_densities(
    density: Density, data: Sequence[Variable], positions: TensorVariable
) -> TensorVariable:
    """Return the log-density of each row of a matrix of points."""
    return pytensor.scan(
        lambda x, *given: density(x, *given)[0],
        [positions],
        non_sequences=list(data),
        return_updates=False,
        name="densities",
    )


def normals_of_chains(
    seed: TensorVariable, stream: int, n_draws: TensorVariable, size: TensorVariable
) -> TensorVariable:
    """Return standard normal numbers of shape ``(chain, draw, size)``, by the seeds of chains."""

    def of_chain(seed: TensorVariable, count: TensorVariable) -> TensorVariable:
        return NormalPairs("float64")(state_of_seed(seed, stream), count)[1]

    rows = pytensor.scan(
        of_chain, [seed], non_sequences=[n_draws * size], return_updates=False, name="numbers"
    )
    return rows.reshape((seed.shape[0], n_draws, size))


def weighted_draws(
    to_draw: ToDraw,
    seed: TensorVariable,
    positions: TensorVariable,
    log_densities: TensorVariable,
    log_approximation: TensorVariable,
    *,
    unconstrained: bool,
) -> tuple[dict[str, TensorVariable], TensorVariable]:
    """Return the outputs of draws from an approximation with their weights, and the shape k.

    Parameters
    ----------
    to_draw, seed
        The model, and the seed of each chain.
    positions
        Points of shape ``(chain, draw, coordinate)``.
    log_densities, log_approximation
        Vectors of the log-densities of all of them, of the model and of the approximation.
    unconstrained
        Whether to return the points, too.
    """
    graph, wanted = to_draw.graph, to_draw.wanted
    weights, k = pareto_smoothed(log_densities - log_approximation)
    by_chain = (positions.shape[0], positions.shape[1])
    draws = values_of_points(graph, positions, wanted, seed, pt.constant(np.int64(0)))
    if unconstrained:
        draws[POINT] = positions
    draws["lp"] = log_densities.reshape(by_chain)
    draws["log_weight"] = weights.reshape(by_chain)
    return draws, k


def named_outputs(*groups: Mapping[str, TensorVariable]) -> dict[str, TensorVariable]:
    """Return groups of outputs as one.

    Raises
    ------
    ArgumentError
        If a name stands for two of them.
    """
    outputs: dict[str, TensorVariable] = {}
    for group in groups:
        for name, output in group.items():
            if name in outputs:
                raise shared_name(name)
            outputs[name] = output
    return outputs
