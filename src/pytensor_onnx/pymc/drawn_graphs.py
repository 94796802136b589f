"""What files of draws share: the variables of a model, its density, and their values at points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.operators.dims import Dims, dims_of
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import make_program, vectorized_graph
from pytensor_onnx.pymc.model_arguments import read_strings, shared_name, unknown
from pytensor_onnx.pymc.model_graphs import FreeValue, ModelGraph, as_compiled
from pytensor_onnx.pymc.nuts import Density

CHAIN, DRAW = "chain", "draw"


def graph_to_draw(
    model: pm.Model,
    data: str | Iterable[str],
    variables: Sequence[str] | None,
    method: str,
) -> tuple[ModelGraph, dict[str, Variable]]:
    """Return the graphs of a model whose free variables are drawn, and the variables to return.

    Parameters
    ----------
    model, data, variables
        As in `export_sampler`.
    method
        Name of the method, for errors.

    Raises
    ------
    ArgumentError
        If the model has discrete variables, no free ones, or not those named.
    """
    graph = ModelGraph(model, data=data)
    check_variables(graph, method)
    wanted = _wanted(graph, variables)
    if graph.containers:
        data_dims = _dims_of_data(graph, list(wanted.values()))
        graph = ModelGraph(model, data=data, data_dims=data_dims)
        wanted = _wanted(graph, variables)
    return graph, wanted


def check_variables(graph: ModelGraph, method: str = "NUTS") -> None:
    """Raise unless all free variables of a model are continuous, and there are some."""
    if graph.discrete:
        names = ", ".join(str(value.rv.name) for value in graph.discrete)
        raise ArgumentError(
            f"{method} cannot draw discrete variables: {names}. Sum over their values"
        )
    if not graph.continuous:
        raise ArgumentError("the model has no free variables to draw")


def _wanted(graph: ModelGraph, variables: Sequence[str] | None) -> dict[str, Variable]:
    """Return the variables to draw by their names, all unless some are named."""
    known = {**graph.constrained, **graph.deterministics}
    if variables is None:
        return known
    names = dict.fromkeys(read_strings(variables, "variables"))
    for name in names:
        if name not in known:
            raise unknown(name, "free variable or deterministic", known)
    return {name: known[name] for name in names}


def _dims_of_data(graph: ModelGraph, wanted: Sequence[Variable]) -> dict[str, Dims]:
    """Return the dimensions that the log-density and variables require of the data.

    Loops require nothing of them, as a loop may run no step.
    """
    given = Inputs()
    given.add_values(graph, vector=True)
    given.add_data(graph)
    results = graph.of_point([graph.logp, *wanted])
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
    at_point, further = as_function(point, results)

    def density(x: TensorVariable, *given: TensorVariable) -> list[TensorVariable]:
        return [result.astype("float64") for result in at_point(x, *given)]

    return density, further


def as_function(
    point: Variable, results: Sequence[Variable]
) -> tuple[Callable[..., list[Variable]], list[Variable]]:
    """Return a function of a point and further variables, and these variables."""
    inputs = dict.fromkeys(v for v in graph_inputs(results) if not isinstance(v, Constant))
    further = [v for v in inputs if v is not point]

    def at_point(x: TensorVariable, *given: Variable) -> list[Variable]:
        converted = point.type.filter_variable(x.astype(point.type.dtype))
        replacements = {point: converted, **dict(zip(further, given, strict=True))}
        return list(clone_replace(list(results), replacements, rebuild_strict=False))

    return at_point, further


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
    graph: ModelGraph, positions: TensorVariable, wanted: Mapping[str, Variable]
) -> dict[str, TensorVariable]:
    """Return variables of the model for each draw."""
    results = graph.of_point(list(wanted.values()))
    values, further = as_function(graph.point, results)
    chains, draws, size = (positions.shape[axis] for axis in range(3))
    rows = pytensor.scan(
        values,
        [positions.reshape((chains * draws, size))],
        non_sequences=further,
        return_updates=False,
        return_list=True,
        name="values",
    )
    return {
        name: row.reshape((chains, draws, *(row.shape[i] for i in range(1, row.ndim))))
        for name, row in zip(wanted, rows, strict=True)
    }


def values_of_point(
    graph: ModelGraph, position: TensorVariable, wanted: Mapping[str, Variable]
) -> dict[str, TensorVariable]:
    """Return variables of the model at one point."""
    values, further = as_function(graph.point, graph.of_point(list(wanted.values())))
    return dict(zip(wanted, values(position, *further), strict=True))


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
