"""The rows and columns of a file in its metadata, for tools that score tables with it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence

import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError, choose_of
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx_scoring.interface import BATCH_AXIS, FEATURE_NAMES, ROW_BYTES

FeatureNames = Mapping[str, Sequence[str]]


def check_features(features: FeatureNames | None, names: Collection[str]) -> None:
    """Raise if names of columns are not given by names of inputs and outputs.

    Raises
    ------
    ArgumentError
        If a name is unknown, or columns have no names or equal ones.

    Examples
    --------
    >>> check_features({"x": ["age", "age"]}, ["x"])
    Traceback (most recent call last):
    pytensor_onnx.errors.ArgumentError: feature_names gives x the column 'age' twice
    """
    for name, columns in (features or {}).items():
        if name not in names:
            raise ArgumentError(f"feature_names has {name!r}: {choose_of(name, names)}")
        if isinstance(columns, str) or not all(isinstance(c, str) for c in columns):
            raise ArgumentError(f"feature_names[{name!r}] is {columns!r}: give a list of names")
        for column in columns:
            if list(columns).count(column) > 1:
                raise ArgumentError(f"feature_names gives {name} the column {column!r} twice")


def describe_rows(model: ir.Model, features: FeatureNames | None) -> None:
    """Write the dimension of the rows and the names of columns into the metadata.

    Raises
    ------
    ArgumentError
        If the number of names is not the size of the last of two axes, or outputs share a name.
    """
    given = {}
    for value in [*model.graph.inputs, *model.graph.outputs]:
        name = str(value.name)
        if name in (features or {}):
            given[name] = list((features or {})[name])
            _check_size(value, given[name])
    _check_results([str(value.name) for value in model.graph.outputs], given)
    rows = _batch_axis(model)
    metadata = {
        BATCH_AXIS: rows,
        FEATURE_NAMES: json.dumps(given) if given else None,
        ROW_BYTES: str(_bytes_of_row(model, rows)) if rows else None,
    }
    for key, text in metadata.items():
        model.metadata_props.pop(key, None)
        if text:
            model.metadata_props[key] = text


def _bytes_of_row(model: ir.Model, rows: str) -> int:
    """Return the bytes of one row in the largest array whose other sizes are known."""
    nodes = [x for node in model.graph for x in node.outputs]
    sizes = [0]
    for value in [*model.graph.inputs, *nodes]:
        dims = list(dims_of(value) or ())
        if rows in dims and value.dtype is not None:
            dims.remove(rows)
            known = [dim for dim in dims if isinstance(dim, int)]
            if len(known) == len(dims):
                sizes.append(int(math.prod(known) * value.dtype.itemsize))
    return max(sizes)


def _check_size(value: ir.Value, columns: Sequence[str]) -> None:
    dims = list(dims_of(value) or ())
    size = dims[-1] if len(dims) == 2 else 0
    if size != len(columns) and (isinstance(size, int) or len(dims) != 2):
        raise ArgumentError(
            f"feature_names gives {value.name} {len(columns)} columns: its shape is "
            f"[{', '.join(map(str, dims))}], and the last of two axes has the columns"
        )


def _check_results(outputs: Sequence[str], given: FeatureNames) -> None:
    """Raise if two outputs have columns of one name: a table would keep the last column only."""
    of_column: dict[str, str] = {}
    for output in outputs:
        for column in given.get(output, [output]):
            other = of_column.setdefault(column, output)
            if other != output:
                raise ArgumentError(
                    f"feature_names gives outputs {other} and {output} the column {column!r}"
                )


def _batch_axis(model: ir.Model) -> str | None:
    """Return the one name of first axes of inputs that outputs have too, None if not one."""
    first = {
        str(dims[0])
        for value in model.graph.inputs
        if not value.is_initializer() and (dims := dims_of(value)) and not isinstance(dims[0], int)
    }
    returned = {str(dim) for value in model.graph.outputs for dim in dims_of(value) or ()}
    shared = first & returned
    return shared.pop() if len(shared) == 1 else None
