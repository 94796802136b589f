"""Names of the columns of a model's inputs and outputs, from its coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pymc as pm

from pytensor_onnx.graph.names import identifier
from pytensor_onnx.pymc.model_graphs import ModelGraph


def columns_of_data(graph: ModelGraph) -> dict[str, list[str]]:
    """Return the labels of the second dimension of data containers that are matrices.

    Examples
    --------
    >>> import numpy as np
    >>> with pm.Model(coords={"feature": ["age", "income"]}) as model:
    ...     x = pm.Data("x", np.zeros((3, 2)), dims=("person", "feature"))
    >>> columns_of_data(ModelGraph(model))
    {'x': ['age', 'income']}
    """
    names = [str(v.name) for v in graph.containers.values()]
    found = {name: labels_of_columns(graph.model, name, 2) for name in names}
    return {name: labels for name, labels in found.items() if labels}


def labels_of_columns(model: pm.Model, name: str, rank: int) -> list[str]:
    """Return the labels of the last of two dimensions of a variable, none if it has others."""
    dims = model.named_vars_to_dims.get(name, ())
    if len(dims) != rank or rank != 2:
        return []
    labels = list(map(str, model.coords.get(dims[1]) or ()))
    return labels if len(set(labels)) == len(labels) else []


def columns_of_summaries(
    model: pm.Model, name: str, rank: int, suffixes: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the columns of summaries of a variable, by the names of the outputs.

    Parameters
    ----------
    model, name, rank
        The variable, whose first axis has the rows.
    suffixes
        For each kind of summary the names of the numbers that it consists of, none if it is one.

    Examples
    --------
    >>> columns_of_summaries(pm.Model(), "y", 1, {"mean": [], "hdi": ["low", "high"]})
    {'y_hdi': ['y_hdi_low', 'y_hdi_high']}
    """
    labels = labels_of_columns(model, name, rank)
    columns = {}
    for kind, endings in suffixes.items():
        along = endings if rank == 1 else labels if not endings else []
        output = f"{name}_{kind}"
        named = [identifier(f"{output}_{identifier(ending)}") for ending in along]
        if named and len(set(named)) == len(named):
            columns[output] = named
    return columns
