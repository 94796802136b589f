"""PyMC models for nutpie, with densities on ONNX Runtime."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pymc as pm
from nutpie.compiled_pyfunc import from_pyfunc
from pymc.initial_point import make_initial_point_fn

from pytensor_onnx.compat.nutpie_models import (
    CFunctions,
    TraceVariables,
    c_function_model,
    takes_c_functions,
)
from pytensor_onnx.errors import ArgumentError, RunError
from pytensor_onnx.pymc.density import export_logp
from pytensor_onnx.pymc.model_arguments import read_strings, unknown
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph
from pytensor_onnx.pymc.provenance import names_in_file
from pytensor_onnx.pymc.transforms import export_transforms
from pytensor_onnx.pymc.values import FreeValue
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
) -> CompiledModel:
    """Compile a PyMC model for `nutpie.sample`.

    The trace has the variables, dimensions and coordinates of one by `nutpie.compile_pymc_model`.

    Parameters
    ----------
    model
        The model, whose free variables are continuous.
    data
        Which data containers the compiled model's `with_data` replaces: ``"inputs"`` for all,
        ``"stored"`` for none, or names.
    var_names
        Variables and deterministics of the trace; all unless given.

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
        raise ArgumentError(f"nutpie draws continuous variables only: {names}")
    if not graph.continuous:
        raise ArgumentError("the model has no free variable that nutpie could draw")
    density = export_logp(model, data=data, verify=False)
    given = {str(v.name): v.get_value() for v in graph.containers}
    values = graph.continuous
    constrain, others = _computed_variables(model, graph, data, var_names)
    expand = _expand(values, constrain, others)
    shapes = {name: array.shape for name, array in expand(graph.start, **given).items()}
    described: dict[str, Any] = {
        "coords": _coordinates(model, values),
        "dims": _dims(model, values, shapes),
        "reparameterized_names": [value.name for value in values if value.transform],
    }
    size, make_start = graph.start.size, _starts(model, graph)
    if _runs_in_c(density, constrain):
        variables = TraceVariables(size, make_start, shapes, **described)
        return _c_model(density, constrain, given, variables)
    return from_pyfunc(
        ndim=size,
        make_logp_fn=lambda: _log_density(density),
        make_expand_fn=lambda *seeds: expand,
        expanded_dtypes=[np.dtype("float64")] * len(shapes),
        expanded_shapes=list(shapes.values()),
        expanded_names=list(shapes),
        shared_data=given,
        make_initial_point_fn=make_start,
        **described,
    )


def _runs_in_c(*programs: ONNXProgram | None) -> bool:
    """Return whether nutpie and the native library can run programs without Python."""
    sessions = [program.session for program in programs if program is not None]
    return takes_c_functions() and all(
        session.runs_in_c and POINT in session.input_names for session in sessions
    )


def _c_model(
    density: ONNXProgram,
    constrain: ONNXProgram | None,
    data: dict[str, Any],
    variables: TraceVariables,
) -> CompiledModel:
    """Return a model of nutpie that calls C functions of the library."""
    models = [
        CModel(None, POINT, variables.size, {})
        if program is None
        else CModel(program.session, POINT, variables.size, _renamed(program, data))
        for program in (density, constrain)
    ]

    def change(**updates: Any) -> Any:
        for name in updates:
            if name not in data:
                raise ValueError(f"Unknown data variable: {name}")
        changed = {**data, **updates}
        return _c_model(density, constrain, changed, variables)

    addresses = np.array([model.address for model in models], "uintp")
    functions = CFunctions(log_density(), expansion(), addresses, kept=models)
    return c_function_model(functions, variables, change)


def _log_density(program: ONNXProgram) -> Callable[..., tuple[float, np.ndarray]]:
    """Return a function from a point and data to the log-density and its gradient."""
    run = _session_of(program)

    def log_density(point: np.ndarray, **data: Any) -> tuple[float, np.ndarray]:
        try:
            logp, gradient = run(point, data)
        except RunError as error:
            error.is_recoverable = True  # type: ignore[attr-defined]  # a divergence to nutpie
            raise
        return float(logp), np.asarray(gradient, "float64")

    return log_density


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


def _renamed(program: ONNXProgram, data: dict[str, Any]) -> dict[str, Any]:
    """Return data by the names of the inputs of a program."""
    return dict(zip(names_in_file(program, data), data.values(), strict=True))


def _expand(
    values: Sequence[FreeValue], constrain: ONNXProgram | None, names: Sequence[str]
) -> Callable[..., dict[str, np.ndarray]]:
    """Return a function from a point and data to all variables of the trace."""
    shapes = [value.start.shape for value in values]
    bounds = np.cumsum([value.start.size for value in values])[:-1]
    run = None if constrain is None else _session_of(constrain)

    def expand(point: np.ndarray, **data: Any) -> dict[str, np.ndarray]:
        parts = zip(values, np.split(point, bounds), shapes, strict=True)
        arrays = {value.name: part.reshape(shape) for value, part, shape in parts}
        computed = () if run is None else run(point, data)
        arrays |= zip(names, computed, strict=True)
        return {name: np.asarray(x, "float64", order="C") for name, x in arrays.items()}

    return expand


def _session_of(
    program: ONNXProgram,
) -> Callable[[np.ndarray, dict[str, Any]], list[np.ndarray]]:
    """Return a function that runs a program for a point and those of the data that it takes."""
    session = program.session
    dtypes = {str(x.name): x.dtype.numpy() for x in program.inputs if x.dtype is not None}

    def run(point: np.ndarray, data: dict[str, Any]) -> list[np.ndarray]:
        values = {POINT: point, **_renamed(program, data)}
        return session.run({name: np.asarray(values[name], dtypes[name]) for name in dtypes})

    return run


def _coordinates(model: pm.Model, values: Sequence[FreeValue]) -> dict[str, pd.Index]:
    """Return the coordinates of the model, and the names of the elements of the point."""
    sizes = {
        name: length.eval() for name, length in model.dim_lengths.items() if name in model.coords
    }
    coords = {
        name: pd.RangeIndex(int(sizes[name])) if labels is None else pd.Index(labels)
        for name, labels in model.coords.items()
    }
    if _ELEMENTS in coords:
        raise ArgumentError(f"the coordinate {_ELEMENTS!r} is nutpie's: rename that of the model")
    elements = [
        f"{value.name}_{'.'.join(map(str, index))}" if index else value.name
        for value in values
        for index in np.ndindex(value.start.shape)
    ]
    return {**coords, _ELEMENTS: pd.Index(elements)}


def _dims(
    model: pm.Model, values: Sequence[FreeValue], shapes: dict[str, Shape]
) -> dict[str, tuple[str, ...]]:
    """Return the dimensions of variables, and of transformed values of the same shape."""
    dims = dict(model.named_vars_to_dims)
    for value in values:
        name = str(value.rv.name)
        if name in dims and shapes.get(name) == value.start.shape:
            dims[value.name] = dims[name]
    return dims


def _starts(model: pm.Model, graph: ModelGraph) -> Callable[[int | None], np.ndarray]:
    """Return a function from a seed to a point beside the model's initial point."""
    make = make_initial_point_fn(
        model=model, jitter_rvs=set(model.free_RVs), return_transformed=True
    )
    lock = threading.Lock()

    def start(seed: int | None) -> np.ndarray:
        with lock:
            return graph.raveled(make(seed)).astype("float64")

    return start
