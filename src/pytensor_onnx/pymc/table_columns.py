"""Columns of a table in place of the design matrices that were made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

_TOLERANCE = 1e-10
_MOST_LEVELS = 200


class _Column(NamedTuple):
    """A column that a design matrix may have: the variables it is of, values and expression."""

    of: frozenset[str]
    values: np.ndarray
    expression: Any


def with_columns(
    model: pm.Model, table: pd.DataFrame, dim: str
) -> tuple[pm.Model, dict[str, str], dict[str, list[str]]] | None:
    """Return a model whose constants of rows follow from data containers of a table's columns.

    Formulas make design matrices of columns: numbers, indicators of levels and codes of groups,
    products of two of these, and all of them less their means. A column of a constant that has the
    values of one of these is replaced by its expression.

    Parameters
    ----------
    model
        A model, such as that of a formula, with constants of as many rows as the table.
    table
        The columns of the table that the formula names.
    dim
        The dimension of the rows.

    Returns
    -------
    tuple or None
        The new model, the columns by the names of their containers, and the labels of columns of
        texts; None if a constant is of something else, such as a spline.
    """
    from pymc.model.fgraph import fgraph_from_model, model_from_fgraph

    graph, _ = fgraph_from_model(model)
    containers, labels = {}, {}
    known: list[_Column] = []
    for name in map(str, table):
        container, columns, levels = _columns_of(name, table[name].to_numpy(), dim)
        containers[f"{name}_data"] = container
        known += columns
        if levels:
            labels[name] = levels
    known += [
        _Column(a.of | b.of, a.values * b.values, a.expression * b.expression)
        for a, b in combinations(known, 2)
        if not a.of & b.of
    ]
    some = next(iter(containers.values()))
    ones = pt.ones_like(some, dtype="float64")
    known.insert(0, _Column(frozenset(), np.ones(len(table)), ones))
    known.insert(1, _Column(frozenset(), np.zeros(len(table)), 0 * ones))
    replaced: dict[Variable, Variable] = {}
    for constant in _constants_of_rows(graph, len(table)):
        data = np.asarray(constant.data)
        found = [x for v in np.atleast_2d(data.T) if (x := _found(v, known)) is not None]
        if len(found) < (1 if data.ndim == 1 else data.shape[1]):
            return None
        joined = found[0] if data.ndim == 1 else pt.stack(found, axis=1)
        replaced[constant] = joined.astype(constant.type.dtype)
    if not replaced:
        return None
    outputs = clone_replace(graph.outputs, replace=replaced, rebuild_strict=False)
    made = FunctionGraph(outputs=outputs, clone=False)
    made._coords, made._dim_lengths = graph._coords, graph._dim_lengths
    changed = model_from_fgraph(made, mutate_fgraph=True)
    used = {
        f"{name}_data": name for name in map(str, table) if f"{name}_data" in changed.named_vars
    }
    return changed, used, labels


def _columns_of(
    name: str, values: np.ndarray, dim: str
) -> tuple[Variable, list[_Column], list[str]]:
    """Return the container of a column, the columns of a design that it gives, and its levels."""
    from pymc.model.fgraph import model_named

    def named(data: np.ndarray) -> Variable:
        shared = pytensor.shared(data, name=f"{name}_data", shape=(None,))
        return model_named(shared, f"{name}_data", dim)

    of = frozenset([name])
    if values.dtype.kind in "iuf":
        container = named(values.astype("float64"))
        return container, [_Column(of, values.astype("float64"), container)], []
    levels, codes = np.unique(values.astype(str), return_inverse=True)
    container = named(codes.astype("int64"))
    columns = [_Column(of, codes.astype("float64"), container)]
    columns += [
        _Column(of, (codes == i).astype("float64"), pt.eq(container, i).astype("float64"))
        for i in range(len(levels) if len(levels) <= _MOST_LEVELS else 0)
    ]
    return container, columns, levels.tolist()


def _constants_of_rows(graph: FunctionGraph, count: int) -> Iterator[Constant]:
    """Yield constants with a row for each of a table, observations left out."""
    for variable in list(graph.variables):
        if not isinstance(variable, Constant) or getattr(variable, "ndim", 0) not in {1, 2}:
            continue
        users = [node.op for node, _ in graph.clients[variable] if not isinstance(node, str)]
        is_observed = any("ObservedRV" in type(op).__name__ for op in users)
        if variable.data.shape[0] == count and not is_observed:
            yield variable


def _found(values: np.ndarray, known: list[_Column]) -> Any:
    """Return the expression of a column with some values, None of none or of several variables."""
    size = np.abs(values).max(initial=1.0)
    found: list[tuple[_Column, float]] = []
    for column in known:
        for shift in (0.0, column.values.mean()):
            if np.abs(values - (column.values - shift)).max() <= _TOLERANCE * size:
                found.append((column, shift))
                break
    if not found:
        return None
    first, shift = found[0]
    # Indicators of nested groups are their products with those around them, too.
    if not all(first.of <= other.of for other, _ in found):
        return None
    return first.expression - shift if shift else first.expression


def told_columns(
    told: Mapping[str, Any], used: Mapping[str, str], labels: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Return the facts of a file with the names and the labels of columns."""
    coords = {**(told.get("coords") or {}), **labels}
    return {**told, "coords": coords, "indices": {**(told.get("indices") or {}), **used}}
