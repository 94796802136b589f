"""Describe the model of a file in its metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant

from pytensor_onnx.exporting.program.weight_files import digest
from pytensor_onnx.pymc.element_names import free_names
from pytensor_onnx.pymc.model_graphs import ModelGraph

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram

METADATA = "pymc"
RENAMED = "renamed"
"""Entry of the names of inputs and outputs that differ in the file, by their names in the model."""


def provenance(graph: ModelGraph, inputs: Collection[str], **more: Any) -> str:
    """Return the description of a model as JSON.

    Its entries are ``pymc_version``; ``space``, ``"constrained"`` or ``"unconstrained"``;
    ``values``, the arguments in the order of the vector, each with its random variable, transform,
    shape and dims; ``names``, those of `parameter_names` in both spaces; ``observed``,
    ``deterministics`` and ``potentials``, names; ``coords`` and ``dims``; ``data``, for each
    container and observation its shape, dtype and SHA-256, and whether it is an input of the file;
    ``data_sha256``, the hash of all data; ``renamed``, the names of inputs and outputs that differ
    from those in the model.

    Parameters
    ----------
    graph
        The graphs of the model.
    inputs
        Names of the inputs of the file.
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
    data = _data(model, inputs)
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


def _data(model: pm.Model, inputs: Collection[str]) -> dict[str, dict[str, Any]]:
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
        }
    return described


def _labels(values: Any) -> list[Any] | None:
    """Return the labels of a dimension as values of JSON."""
    if values is None:
        return None
    items = [v.item() if isinstance(v, np.generic) else v for v in values]
    return [v if isinstance(v, str | int | float | bool) else str(v) for v in items]
