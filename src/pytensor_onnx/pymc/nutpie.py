"""PyMC models for nutpie, with densities on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pymc as pm

from pytensor_onnx.compat.nutpie_models import (
    CFunctions,
    TraceVariables,
    c_function_model,
    python_function_model,
    takes_c_functions,
)
from pytensor_onnx.errors import ArgumentError, InputError, RunAssertionError, RunError
from pytensor_onnx.pymc.density import export_logp, export_transforms
from pytensor_onnx.pymc.kept_programs import kept_of, model_key
from pytensor_onnx.pymc.marginal import advice_on
from pytensor_onnx.pymc.model_arguments import read_strings, unknown
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph
from pytensor_onnx.pymc.provenance import names_in_file, names_in_model
from pytensor_onnx.pymc.starts import ATTEMPTS, Starts, finite_start, stored_data
from pytensor_onnx.running.c_functions import CModel, expansion, log_density

if TYPE_CHECKING:
    from nutpie.sample import CompiledModel

    from pytensor_onnx.exporting.program.program import ONNXProgram

Shape = tuple[int, ...]

_ELEMENTS = "unconstrained_parameter"
"""The coordinate of the elements of the point in traces of nutpie."""


def nutpie_model(
    model: pm.Model,
    *,
    data: str | Iterable[str] = "inputs",
    var_names: Sequence[str] | None = None,
    initvals: Mapping[Any, Any] | None = None,
) -> CompiledModel:
    """Compile a PyMC model for `nutpie.sample`.

    The trace has the variables, dimensions and coordinates of one by `nutpie.compile_pymc_model`.
    The compiled model can be pickled and copied.

    Parameters
    ----------
    model
        The model, whose free variables are continuous.
    data
        Which data containers the compiled model's `with_data` replaces: ``"inputs"`` for all,
        ``"stored"`` for none, or names.
    var_names
        Variables and deterministics of the trace; all unless given.
    initvals
        Initial values of variables in place of those of the model, as in `pymc.sample`.

    Raises
    ------
    ArgumentError
        If the model has a discrete or no free variable, or no variable of a name.
    UnsupportedOpError
        If a part of the model cannot be converted.

    Examples
    --------
    >>> import nutpie, pymc as pm
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", 3.0, 0.1)
    >>> compiled = nutpie_model(model)
    >>> trace = nutpie.sample(compiled, draws=100, tune=100, chains=1, progress_bar=False, seed=1)
    >>> abs(float(trace.posterior["x"].mean()) - 3.0) < 0.1
    True
    """
    graph = ModelGraph(model, data=data)
    if graph.discrete:
        names = ", ".join(value.name for value in graph.discrete)
        advice = advice_on([value.rv for value in graph.discrete])
        raise ArgumentError(f"nutpie draws continuous variables only, not {names}: {advice}")
    if not graph.continuous:
        raise ArgumentError("the model has no free variable that nutpie could draw")
    constrain, computed = _computed_variables(model, graph, data, var_names)
    source = _Source(
        density=export_logp(model, data=data, verify=False),
        constrain=constrain,
        computed=computed,
        values={value.name: value.start.shape for value in graph.continuous},
        variables={value.name: str(value.rv.name) for value in graph.continuous},
        transformed=[value.name for value in graph.continuous if value.transform],
        data={str(v.name): v.get_value() for v in graph.containers},
        stored=stored_data(model, graph.containers),
        start=graph.start,
        starts=Starts(model, initvals),
        coords=_coordinates(model),
        dims=dict(model.named_vars_to_dims),
    )
    return source.build()


def last_nutpie_model(
    model: pm.Model, *, var_names: Sequence[str] | None, initvals: Mapping[Any, Any] | None
) -> CompiledModel:
    """Compile a model with its data stored, or return the compiled model of an earlier call."""
    of_model, variables = model_key(model)
    key = ("nutpie", None if var_names is None else tuple(var_names), of_model)
    kept = kept_of(model)
    source = kept.find(key)
    if source is not None:
        # Initial values are no part of the key.
        return replace(source, starts=Starts(model, initvals)).build()
    compiled = nutpie_model(model, data="stored", var_names=var_names, initvals=initvals)
    kept.add(key, compiled.source, variables)
    return compiled


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The files of a model and the description of its trace.

    Attributes
    ----------
    density, constrain
        Files of the log-density with its gradient, and of the computed variables, if any.
    computed
        Names of the computed variables.
    values, variables
        Shapes of the free variables in the unconstrained space by name, and the names of their
        random variables.
    transformed
        Names of the variables that have a transform.
    data, stored
        Values of the data containers that are inputs, and of the data in the files.
    start, starts
        The initial point of the model, and a function from a seed to a point beside it.
    coords, dims
        Coordinates and dimensions of the model.
    """

    density: ONNXProgram
    constrain: ONNXProgram | None
    computed: list[str]
    values: dict[str, Shape]
    variables: dict[str, str]
    transformed: list[str]
    data: dict[str, Any]
    stored: dict[str, np.ndarray]
    start: np.ndarray
    starts: Starts
    coords: dict[str, pd.Index]
    dims: dict[str, tuple[str, ...]]

    def build(self) -> Any:
        """Return the model of nutpie."""
        variables = self._trace_variables()
        if not (takes_c_functions() and all(map(_runs_in_c, self._programs))):
            density, expand = self._density_function(), self._expand_function()
            return python_function_model(density, expand, variables, self.data, self)
        models = [self._c_model(program) for program in (self.density, self.constrain)]
        addresses = np.array([model.address for model in models], "uintp")
        functions = CFunctions(log_density(), expansion(), addresses, kept=models)
        return c_function_model(functions, variables, self)

    def with_data(self, updates: dict[str, Any]) -> _Source:
        """Return the source of the model with other data.

        Raises
        ------
        InputError
            If sizes or dtypes do not fit the model and its other data.
        """
        for name in updates:
            if name not in self.data:
                raise ValueError(f"Unknown data variable: {name}")
        changed = replace(self, data={**self.data, **updates})
        is_resized = any(np.shape(x) != np.shape(self.data[name]) for name, x in updates.items())
        try:
            results = [
                program(**_inputs_of(program, self.start, changed.data))
                for program in changed._programs
            ]
        except RunError as error:
            if is_resized and not isinstance(error, RunAssertionError):
                raise InputError(f"the model does not take data of these sizes: {error}") from error
            return changed
        size = results[0][1].size
        if size != self.start.size:
            raise InputError(
                f"with these data the variables of the model have {size} elements, and "
                f"{self.start.size} as it is compiled: call pm.set_data, and compile it again"
            )
        return changed

    def check_starts(self) -> None:
        """Raise an error with a reason if the density is finite at none of many first points."""
        run, known = _session_of(self.density), {**self.stored, **self.data}
        finite_start(self.starts, lambda point: run(point, self.data), range(ATTEMPTS), known)

    @property
    def _programs(self) -> list[ONNXProgram]:
        return [self.density] if self.constrain is None else [self.density, self.constrain]

    def _c_model(self, program: ONNXProgram | None) -> CModel:
        if program is None:
            return CModel(None, POINT, self.start.size, {})
        given = _inputs_of(program, self.start, self.data)
        return CModel(program.session, POINT, self.start.size, given)

    def _density_function(self) -> Callable[..., tuple[float, np.ndarray]]:
        """Return a function from a point and data to the log-density and its gradient."""
        run = _session_of(self.density)

        def log_density(point: np.ndarray, **data: Any) -> tuple[float, np.ndarray]:
            try:
                logp, gradient = run(point, data)
            except RunError as error:
                error.is_recoverable = True  # type: ignore[attr-defined]  # a divergence to nutpie
                raise
            return float(logp), np.asarray(gradient, "float64")

        return log_density

    def _expand_function(self) -> Callable[..., dict[str, np.ndarray]]:
        """Return a function from a point and data to all variables of the trace."""
        bounds = np.cumsum([int(np.prod(shape)) for shape in self.values.values()])[:-1]
        run = None if self.constrain is None else _session_of(self.constrain)

        def expand(point: np.ndarray, **data: Any) -> dict[str, np.ndarray]:
            parts = zip(self.values.items(), np.split(point, bounds), strict=True)
            arrays = {name: part.reshape(shape) for (name, shape), part in parts}
            results = () if run is None else run(point, data)
            arrays |= zip(self.computed, results, strict=True)
            return {name: np.asarray(x, "float64", order="C") for name, x in arrays.items()}

        return expand

    def _trace_variables(self) -> TraceVariables:
        """Return the variables of the trace, in the shapes that they have with the data."""
        arrays = self._expand_function()(self.start, **self.data)
        shapes = {name: x.shape for name, x in arrays.items()}
        dims, coords = dict(self.dims), dict(self.coords)
        for name, variable in self.variables.items():
            if variable in dims and shapes.get(variable) == shapes[name]:
                dims[name] = dims[variable]
        for name in shapes.keys() & dims.keys():
            for dim, size in zip(dims[name], shapes[name], strict=True):
                if dim in coords and len(coords[dim]) != size:
                    coords[dim] = _resized(coords[dim], dim, size)
        elements = [
            f"{name}_{'.'.join(map(str, index))}" if index else name
            for name, shape in self.values.items()
            for index in np.ndindex(shape)
        ]
        coords[_ELEMENTS] = pd.Index(elements)
        return TraceVariables(self.start.size, self.starts, shapes, coords, dims, self.transformed)


def _runs_in_c(program: ONNXProgram) -> bool:
    """Return whether the native library can run a program."""
    return program.session.runs_in_c and POINT in program.session.input_names


def _computed_variables(
    model: pm.Model, graph: ModelGraph, data: str | Iterable[str], wanted: Sequence[str] | None
) -> tuple[ONNXProgram | None, list[str]]:
    """Return a program of the variables that are computed from the point, and their names."""
    names = [*graph.constrained, *graph.deterministics]
    for name in read_strings(wanted, "var_names") if wanted is not None else ():
        if name not in names:
            raise unknown(name, "variable", names)
    taken = {value.name for value in graph.values}
    computed = [x for x in names if x not in taken and (wanted is None or x in wanted)]
    if not computed:
        return None, []
    program = export_transforms(model, data=data, deterministics=True, verify=False)
    return program.select(names_in_file(program, computed)), computed


def _inputs_of(program: ONNXProgram, point: np.ndarray, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a program by their names, from data by the names of the model."""
    given = {POINT: point, **data}
    return {file: given[name] for file, name in names_in_model(program).items()}


def _session_of(
    program: ONNXProgram,
) -> Callable[[np.ndarray, Mapping[str, Any]], list[np.ndarray]]:
    """Return a function that runs a program for a point and those of the data that it takes."""
    session, names = program.session, names_in_model(program)
    inputs = [
        (str(x.name), names[str(x.name)], x.dtype.numpy())
        for x in program.inputs
        if x.dtype is not None
    ]

    def run(point: np.ndarray, data: Mapping[str, Any]) -> list[np.ndarray]:
        given = {POINT: point, **data}
        return session.run({file: np.asarray(given[name], dtype) for file, name, dtype in inputs})

    return run


def _coordinates(model: pm.Model) -> dict[str, pd.Index]:
    """Return the coordinates of the model; those of dimensions without labels are ranges."""
    if _ELEMENTS in model.coords:
        raise ArgumentError(f"the coordinate {_ELEMENTS!r} is nutpie's: rename that of the model")
    return {
        name: pd.RangeIndex(int(model.dim_lengths[name].eval()))
        if labels is None
        else pd.Index(labels)
        for name, labels in model.coords.items()
    }


def _resized(labels: pd.Index, dim: str, size: int) -> pd.Index:
    """Return the coordinate of a dimension that has another size with other data."""
    if isinstance(labels, pd.RangeIndex):
        return pd.RangeIndex(size)
    raise InputError(
        f"the dimension {dim!r} has {len(labels)} labels, and size {size} with these data: call "
        "pm.set_data with its coords, and compile the model again"
    )
