"""Columns of Arrow as arrays, and arrays as columns of Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pytensor_onnx_scoring.columns import LENGTHS, NULLS, Problem, scaled
from pytensor_onnx_scoring.interface import OutputColumn
from pytensor_onnx_scoring.problems import ScoringError

_MOST_ELEMENTS = 2**31 - 1
"""Elements of the lists of an array, whose offsets are int32."""

_DECIMAL_BITS = 128

_TAKEN = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
)
"""Tests of the types whose values are numbers or strings."""


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
    column = _decoded(column)
    kind = column.type
    if column.null_count:
        raise Problem(NULLS)
    if _is_list(kind):
        return _of_lists(column)
    if isinstance(kind, pa.BaseExtensionType):
        return _of_extension(column)
    if pa.types.is_decimal(kind):
        return _of_decimals(column)
    if pa.types.is_null(kind):
        return np.empty(0)
    if not any(is_of(kind) for is_of in _TAKEN):
        raise Problem(f"is of {kind}, and not of numbers or strings")
    return column.to_numpy(zero_copy_only=False)


def _decoded(column: Any) -> Any:
    """Return a column as one array without an encoding, which would hide nulls of its values."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [_decoded(chunk) for chunk in column.chunks]
        if not chunks:
            return _decoded(column.combine_chunks())
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    if pa.types.is_dictionary(column.type):
        return _decoded(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return _decoded(pc.run_end_decode(column))
    return column


def _of_lists(column: Any) -> np.ndarray:
    kind = column.type
    if not _is_fixed(kind) and len(pc.unique(pc.list_value_length(column))) > 1:
        raise Problem(LENGTHS)
    size = kind.list_size if _is_fixed(kind) else pc.list_value_length(column[:1]).to_pylist()
    length = size if isinstance(size, int) else (size or [0])[0]
    elements = array_of(column.flatten())
    return elements.reshape(len(column), length, *elements.shape[1:])


def _is_list(kind: pa.DataType) -> bool:
    variable = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    views = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    return variable or views or _is_fixed(kind)


def _is_fixed(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind)


def _of_extension(column: Any) -> np.ndarray:
    storage = array_of(column.storage)
    tensors = getattr(column, "to_numpy_ndarray", None)
    return tensors() if tensors and len(column) else storage


def _of_decimals(column: Any) -> np.ndarray:
    """Return decimals as integers or floats, or as Python's own where they have many digits."""
    kind = column.type
    if kind.bit_width < _DECIMAL_BITS:
        column = column.cast(pa.decimal128(kind.precision, kind.scale))
    if column.type.bit_width == _DECIMAL_BITS and (bits := column.buffers()[1]) is not None:
        words = np.frombuffer(bits, "<i8").reshape(-1, 2)
        low, high = words[column.offset : column.offset + len(column)].T
        found = scaled(low, kind.scale) if np.array_equal(high, low >> 63) else None
        if found is not None:
            return found
    return np.array(column.to_pylist(), object)


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
