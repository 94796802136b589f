"""Where a value of a model comes from, and names of its elements."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor
from pymc.pytensorf import resolve_shapes
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pytensor_onnx.exporting.program.weight_files import digest
from pytensor_onnx.named_dims import tensor_of
from pytensor_onnx.pymc.model_arguments import SPACES, check_model, read_choice
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.shared_data import indexed_dims, observed_containers, shared

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram


METADATA = "pymc"
RENAMED = "renamed"
"""Entry of the names of inputs and outputs that differ in the file, by their names in the model."""


def provenance(
    graph: ModelGraph, inputs: Collection[str], *, share_data: bool = False, **more: Any
) -> str:
    """Return the description of a model as JSON.

    Its entries are ``pymc_version``; ``space``, ``"constrained"`` or ``"unconstrained"``;
    ``values``, the arguments in the order of the vector, each with its random variable, transform,
    shape and dims; ``names``, those of `parameter_names` in both spaces; ``observed``,
    ``deterministics`` and ``potentials``, names; ``coords`` and ``dims``; ``data``, for each
    container and observation its shape, dtype and SHA-256, and whether it is an input of the file;
    ``data_sha256``, the hash of all data; ``indices``, the dimensions that data containers are
    indices of; ``observed_data``, the data containers of observed variables; ``renamed``, the names
    of inputs and outputs that differ from those in the model.

    Parameters
    ----------
    graph
        The graphs of the model.
    inputs
        Names of the inputs of the file.
    share_data
        Whether the entries of ``data`` have those of `pytensor_onnx.pymc.shared_data.shared`, too.
    more
        Further entries.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model(coords={"school": ["A", "B"]}) as model:
    ...     tau = pm.HalfNormal("tau", dims="school")
    >>> description = json.loads(provenance(ModelGraph(model), ['point']))
    >>> description["coords"], description["dims"]
    ({'school': ['A', 'B']}, {'tau': ['school']})
    >>> description["values"][0]["transform"]
    'log'
    """
    model = graph.model
    data = _data(model, inputs, share_data=share_data)
    every = hashlib.sha256("".join(f"{k}{v['sha256']}" for k, v in data.items()).encode())
    description = {
        "pymc_version": pm.__version__,
        "model": model.name,
        "space": "constrained" if graph.is_constrained else "unconstrained",
        "values": [
            {
                "name": value.name,
                "variable": value.rv.name,
                "transform": value.transform,
                "dtype": str(value.start.dtype),
                "shape": list(value.start.shape),
                "start": np.ravel(value.start).tolist(),
            }
            for value in graph.values
        ],
        "names": {
            "unconstrained": free_names(model, constrained=False),
            "constrained": free_names(model, constrained=True),
        },
        "observed": [v.name for v in model.observed_RVs],
        "deterministics": [v.name for v in model.deterministics],
        "potentials": [v.name for v in model.potentials],
        "coords": {dim: _labels(values) for dim, values in model.coords.items()},
        "dims": {name: list(dims) for name, dims in model.named_vars_to_dims.items()},
        "data": data,
        "data_sha256": every.hexdigest(),
        "indices": indexed_dims(model),
        "observed_data": observed_containers(model),
        **more,
    }
    return json.dumps(description)


def names_in_file(program: ONNXProgram, names: Iterable[str]) -> list[str]:
    """Return the names that inputs or outputs of a model have in its file."""
    renamed = json.loads(program.model.metadata_props[METADATA])[RENAMED]
    return [renamed.get(name, name) for name in names]


def names_in_model(program: ONNXProgram) -> dict[str, str]:
    """Return the names of the inputs in the model, by their names in the file."""
    renamed = json.loads(program.model.metadata_props[METADATA])[RENAMED]
    names = {new: name for name, new in renamed.items()}
    return {str(x.name): names.get(str(x.name), str(x.name)) for x in program.inputs}


def _data(
    model: pm.Model, inputs: Collection[str], *, share_data: bool
) -> dict[str, dict[str, Any]]:
    """Describe the data containers and the observations outside of data containers."""
    observed = {v.name: model.rvs_to_values[v] for v in model.observed_RVs}
    found: dict[str, Any] = {v.name: v for v in model.data_vars}
    found.update({k: v for k, v in observed.items() if isinstance(v, Constant)})
    described = {}
    for name, variable in found.items():
        if not isinstance(variable, Constant | SharedVariable):
            continue
        is_shared = isinstance(variable, SharedVariable)
        array = np.asarray(variable.get_value() if is_shared else variable.data)
        described[name] = {
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            "input": name in inputs,
            "sha256": digest(array),
            **(shared(array) if share_data else {}),
        }
    return described


def _labels(values: Any) -> list[Any] | None:
    """Return the labels of a dimension as values of JSON."""
    if values is None:
        return None
    items = [v.item() if isinstance(v, np.generic) else v for v in values]
    return [v if isinstance(v, str | int | float | bool) else str(v) for v in items]


def parameter_names(
    model: pm.Model,
    *,
    space: str = "unconstrained",
    deterministics: bool = False,
    generated: bool = False,
) -> list[str]:
    """Return a name for each element of the continuous free variables.

    Elements of arrays have their indices, which start at one as in Stan: ``theta.2.3``. The last
    index varies fastest.

    Parameters
    ----------
    model
        The model.
    space
        ``"unconstrained"`` for the elements of the input ``point`` of an unconstrained density, in
        its order, or ``"constrained"`` for those of the variables themselves.
    deterministics, generated
        Whether the elements of the deterministics, and those of the observed variables, follow.

    Raises
    ------
    ArgumentError
        If an argument is not valid.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     sigma = pm.HalfNormal("sigma")
    ...     theta = pm.Normal("theta", 0.0, sigma, shape=(2, 2))
    ...     total = pm.Deterministic("total", theta.sum())
    >>> parameter_names(model)
    ['sigma_log__', 'theta.1.1', 'theta.1.2', 'theta.2.1', 'theta.2.2']
    >>> parameter_names(model, space="constrained", deterministics=True)
    ['sigma', 'theta.1.1', 'theta.1.2', 'theta.2.1', 'theta.2.2', 'total']
    """
    check_model(model)
    is_constrained = read_choice(space, SPACES, "space") == "constrained"
    names = free_names(model, constrained=is_constrained)
    further = list(model.deterministics) if deterministics else []
    further += model.observed_RVs if generated else []
    for variable, shape in zip(further, _shapes(further), strict=True):
        names += element_names(str(variable.name), shape)
    return names


def free_names(model: pm.Model, *, constrained: bool) -> list[str]:
    """Return the names of the elements of the continuous free variables, in one of the spaces."""
    shapes = model.eval_rv_shapes()
    continuous = [rv for rv in model.free_RVs if rv.type.dtype.startswith("float")]
    variables = continuous if constrained else [model.rvs_to_values[rv] for rv in continuous]
    return [name for v in variables for name in element_names(str(v.name), shapes[str(v.name)])]


def element_names(name: str, shape: Iterable[int]) -> list[str]:
    """Return the names of the elements of an array.

    Examples
    --------
    >>> element_names("beta", [2]), element_names("mu", [])
    (['beta.1', 'beta.2'], ['mu'])
    """
    return [".".join([name, *(str(i + 1) for i in index)]) for index in np.ndindex(*shape)]


def _shapes(variables: Sequence[Variable]) -> list[tuple[int, ...]]:
    """Return the shapes that variables have with the present data."""
    if not variables:
        return []
    shapes = resolve_shapes([tensor_of(v).shape for v in variables])
    compute = pytensor.function([], shapes, mode="FAST_COMPILE", on_unused_input="ignore")
    return [tuple(int(n) for n in shape) for shape in compute()]
