"""Tables of NumPy, pandas, Arrow and Polars: their columns as arrays, and results as their kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pytensor_onnx_scoring.columns import LENGTHS, NULLS, Problem, scaled
from pytensor_onnx_scoring.exact_casts import no_sequence, of_objects
from pytensor_onnx_scoring.interface import OutputColumn
from pytensor_onnx_scoring.problems import ScoringError

TWICE = "stands twice in the table"
_FLOATS = ("float32", "float64")

Results = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Block:
    """Columns of one dtype that a table returns at once."""

    rows: int
    read: Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Table:
    """A table of any kind.

    Attributes
    ----------
    names
        Names of its columns.
    column
        Function of a name that returns the column as an array, without a copy where the layout
        allows it.
    write
        Function that makes a table of this kind of the columns of a result.
    matrix
        The array, of a table that has no names.
    block
        Function of names that returns a function of a range of rows, for the array with these
        columns as rows; None where their dtypes differ.
    """

    names: Sequence[str]
    column: Callable[[str], np.ndarray]
    write: Callable[[Results], Any]
    matrix: np.ndarray | None = None
    block: Callable[[Sequence[str]], Block | None] = lambda names: None


def table_of(table: Any, columns: Sequence[OutputColumn]) -> Table:
    """Return how to read a table, and to write a result of columns.

    Raises
    ------
    ScoringError
        If it is no table.
    """
    if isinstance(table, Mapping):
        return Table(list(table), lambda name: _array(table[name]), dict)
    if isinstance(table, np.ndarray):
        return _of_numpy(table)
    if isinstance(table, _classes("pandas", "DataFrame")):
        return Table(
            list(table.columns),
            partial(_of_pandas, table),
            partial(_to_pandas, table),
            block=partial(_block_of_pandas, table),
        )
    if isinstance(table, _classes("polars", "DataFrame")):
        return Table(table.columns, lambda name: _of_polars(table[name]), _to_polars)
    if isinstance(table, _classes("pyarrow", "Table", "RecordBatch")):
        from pytensor_onnx_scoring.arrow import array_of, schema_of, to_arrow

        write = partial(to_arrow, type(table), schema_of(columns))
        return Table(table.schema.names, lambda name: array_of(_single(table, name)), write)
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow

        try:
            return table_of(pyarrow.table(table), columns)
        except pyarrow.ArrowInvalid:
            pass  # A single column has a stream, too.
    raise ScoringError(
        f"{type(table).__module__}.{type(table).__qualname__} is no table: give a dict of columns, "
        "an array, or a DataFrame, Table or RecordBatch of pandas, Polars or pyarrow"
    )


def _classes(library: str, *names: str) -> tuple[Any, ...]:
    """Return classes of a library if it is imported, since a table is of no other.

    While another thread imports a library, its module has no classes yet.
    """
    module = sys.modules.get(library)
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


def _single(table: Any, name: str) -> Any:
    if len(table.schema.get_all_field_indices(name)) > 1:
        raise Problem(TWICE)
    return table[name]


def _array(values: Any) -> np.ndarray:
    """Return a column of any library as an array."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise Problem(NULLS)
        return values.filled()
    if type(values).__module__.partition(".")[0] == "pandas":
        import pandas

        return _of_series(pandas.Series(values))
    if isinstance(values, _classes("polars", "Series")):
        return _of_polars(values)
    if isinstance(values, _classes("pyarrow", "Array", "ChunkedArray")):
        from pytensor_onnx_scoring.arrow import array_of

        return array_of(values)
    if kind := no_sequence(values):
        raise Problem(f"is {kind}")
    try:
        return of_objects(values)
    except ValueError:
        raise Problem("has arrays of different sizes") from None


def _of_numpy(table: np.ndarray) -> Table:
    if table.dtype.names is not None:
        return Table(table.dtype.names, lambda name: _array(table[name]), _structured)
    return Table((), lambda name: _array(table), _to_numpy, matrix=table)


def _to_numpy(results: Results) -> np.ndarray:
    """Return the array of one column, or an array of records."""
    if len(results) == 1:
        return next(iter(results.values()))
    return _structured(results)


def _structured(results: Results) -> np.ndarray:
    dtype = [(name, x.dtype, x.shape[1:]) for name, x in results.items()]
    records = np.empty(len(next(iter(results.values()))), dtype)
    for name, values in results.items():
        records[name] = values
    return records


def _of_pandas(frame: Any, name: str) -> np.ndarray:
    series = frame[name]
    if series.ndim != 1:
        raise Problem(TWICE)
    return _of_series(series)


def _of_series(series: Any) -> np.ndarray:
    if isinstance(series.dtype, np.dtype) and series.dtype != object:
        return series.to_numpy()
    if hasattr(series.dtype, "pyarrow_dtype"):
        import pyarrow

        from pytensor_onnx_scoring.arrow import array_of

        return array_of(pyarrow.array(series.array))
    if series.isna().any():
        raise Problem(NULLS)
    return series.to_numpy(getattr(series.dtype, "numpy_dtype", None))


def _block_of_pandas(frame: Any, names: Sequence[str]) -> Block | None:
    """Return columns of floats at once: a single one takes ten microseconds."""
    none = frame.iloc[:0][list(names)]
    dtypes = set(none.dtypes)
    if len(none.columns) != len(names) or len(dtypes) != 1 or str(*dtypes) not in _FLOATS:
        return None
    return Block(len(frame), lambda start, stop: frame.iloc[start:stop][list(names)].to_numpy().T)


def _to_pandas(frame: Any, results: Results) -> Any:
    import pandas

    cells = {name: x if x.ndim == 1 else list(x) for name, x in results.items()}
    return pandas.DataFrame(cells, index=frame.index)


def _of_polars(series: Any) -> np.ndarray:
    """Return a series as an array, of more axes for lists of equal lengths.

    `to_numpy` takes nulls within lists for NaN, and structs for lists.
    """
    import polars

    kind = series.dtype
    if series.null_count():
        raise Problem(NULLS)
    if isinstance(kind, polars.List | polars.Array):
        lengths = (series.list if kind == polars.List else series.arr).len().unique().to_list()
        if len(lengths) > 1:
            raise Problem(LENGTHS)
        length = lengths[0] if lengths else 0
        elements = _of_polars(series.explode()) if length else np.empty(0)
        return elements.reshape(len(series), length, *elements.shape[1:])
    if kind.is_decimal() or kind in (polars.Int128, polars.UInt128):
        narrow = series.to_physical().cast(polars.Int64, strict=False)
        fits = not narrow.null_count()
        found = scaled(narrow.to_numpy(), getattr(kind, "scale", 0)) if fits else None
        return np.array(series.to_list(), object) if found is None else found
    plain = (polars.Boolean, polars.String, polars.Categorical, polars.Enum, polars.Object)
    if kind.is_numeric() or kind in (*plain, polars.Null):
        return series.to_numpy()
    raise Problem(f"is of {kind}, and not of numbers or strings")


def _to_polars(results: Results) -> Any:
    import polars

    return polars.DataFrame(
        {
            name: polars.Series(x.tolist(), dtype=polars.String) if x.dtype.kind == "O" else x
            for name, x in results.items()
        }
    )
