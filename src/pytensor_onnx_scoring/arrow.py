"""Columns of Arrow as arrays, and arrays as columns of Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pytensor_onnx_scoring.columns import NULLS, Problem
from pytensor_onnx_scoring.interface import OutputColumn
from pytensor_onnx_scoring.problems import ScoringError

_MOST_ELEMENTS = 2**31 - 1
"""Elements of the lists of an array, whose offsets are int32."""


def schema_of(columns: Sequence[OutputColumn]) -> pa.Schema:
    """Return the schema of a result; a cell of an array is a list, of a fixed size if known."""
    return pa.schema([(column.name, _type_of(column)) for column in columns])


def _type_of(column: OutputColumn) -> pa.DataType:
    element = column.tensor.dtype
    arrow = pa.string() if element.kind == "O" else pa.from_numpy_dtype(element)
    if column.place is not None:
        return arrow
    for size in reversed(column.tensor.of_row):
        arrow = pa.list_(arrow, size if isinstance(size, int) else -1)
    return arrow


def array_of(column: Any) -> np.ndarray:
    """Return a column as an array, of more axes for lists of equal lengths.

    Raises
    ------
    Problem
        If it has nulls, or lists of different lengths.

    Examples
    --------
    >>> array_of(pa.array([[1, 2], [3, 4]]))
    array([[1, 2],
           [3, 4]])
    """
    if column.null_count:
        raise Problem(NULLS)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if isinstance(kind, pa.BaseExtensionType):
        return array_of(column.storage) if len(column) == 0 else _of_extension(column)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_fixed(kind)):
        return column.to_numpy(zero_copy_only=False)
    if not _is_fixed(kind) and len(pc.unique(pc.list_value_length(column))) > 1:
        raise Problem("has lists of different lengths")
    size = kind.list_size if _is_fixed(kind) else pc.list_value_length(column[:1]).to_pylist()
    length = size if isinstance(size, int) else (size or [0])[0]
    elements = array_of(column.flatten())
    return elements.reshape(len(column), length, *elements.shape[1:])


def _is_fixed(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind)


def _of_extension(column: Any) -> np.ndarray:
    tensors = getattr(column, "to_numpy_ndarray", None)
    return tensors() if tensors else array_of(column.storage)


def to_arrow(
    kind: type[pa.Table | pa.RecordBatch], schema: pa.Schema, results: Mapping[str, np.ndarray]
) -> Any:
    """Return the columns of a result as a table or a batch of a schema."""
    columns = [_column(results[field.name], field.type) for field in schema]
    return kind.from_arrays(columns, schema=schema)


def _column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    if values.ndim == 1:
        return pa.array(np.ascontiguousarray(values), type=kind)
    n, length = values.shape[:2]
    if not _is_fixed(kind) and n * length > _MOST_ELEMENTS:
        raise ScoringError(
            f"a column of lists has {n * length:,} elements, and Arrow counts to "
            f"{_MOST_ELEMENTS:,}: score fewer than {_MOST_ELEMENTS // length:,} rows in one call"
        )
    elements = _column(values.reshape(n * length, *values.shape[2:]), kind.value_type)
    if _is_fixed(kind):
        return pa.FixedSizeListArray.from_arrays(elements, type=kind)
    offsets = pa.array(np.arange(n + 1, dtype="int32") * length, type=pa.int32())
    return pa.ListArray.from_arrays(offsets, elements)
