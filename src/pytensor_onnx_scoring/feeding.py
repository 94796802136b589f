"""Inputs of a run from the columns of a table."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from pytensor_onnx_scoring.columns import Problem, check_shape, converted
from pytensor_onnx_scoring.interface import Tensor
from pytensor_onnx_scoring.problems import meant, raise_problems
from pytensor_onnx_scoring.tables import Block, Table

_CACHE_LINE = 64
_SHORT_COLUMN = 1024
"""Bytes that a processor reads at once, and of columns that share no lines of its cache."""


class Feeder:
    """The columns of a table that a file takes, as inputs of any range of rows.

    Attributes
    ----------
    rows
        Number of rows of the table.

    Raises
    ------
    ScoringError
        If columns are missing, or do not fit; with all of them.
    """

    def __init__(self, inputs: Sequence[Tensor], table: Table) -> None:
        self._inputs = _with_features(inputs, table)
        self._whole = table.matrix is not None
        self._columns: dict[str, np.ndarray] = {}
        self._blocks: dict[str, Block] = {}
        problems = self._read(table)
        lengths = {name: len(x) for name, x in self._columns.items() if x.ndim}
        self.rows = max([*lengths.values(), *(x.rows for x in self._blocks.values())], default=0)
        problems += [
            f"column {name} has {n} rows, others have {self.rows}"
            for name, n in lengths.items()
            if n != self.rows
        ]
        raise_problems(
            problems and [*problems, *self._wrong_dtypes()], "the table does not fit the file"
        )

    def _wrong_dtypes(self) -> Iterator[str]:
        """Yield a problem for each column that does not convert, beside the missing columns."""
        for tensor in self._inputs:
            for name in tensor.features or (tensor.name,):
                try:
                    converted(self._columns.get(name, np.empty(0, tensor.dtype)), tensor.dtype)
                except Problem as problem:
                    yield f"column {name} {problem}"

    def _read(self, table: Table) -> list[str]:
        """Read the columns, and return their problems."""
        if self._whole:
            if len(self._inputs) > 1:
                named = ", ".join(x.name for x in self._inputs)
                return [f"an array without names has no columns {named}: give a dict of columns"]
            try:
                self._columns[self._inputs[0].name] = column = table.column("")
            except Problem as problem:
                return [f"column {self._inputs[0].name} {problem}"]
            return [] if column.ndim else ["the array has no axis of rows"]
        names = list(dict.fromkeys(name for x in self._inputs for name in x.features or (x.name,)))
        known = set(table.names)
        missing = [name for name in names if name not in known]
        unused = known.difference(names) if missing else set()
        problems = [f"column {name} is missing{self._way_out(name, unused)}" for name in missing]
        for tensor in self._inputs:
            if tensor.features and not missing and (block := table.block(tensor.features)):
                self._blocks[tensor.name] = block
        single = [x for x in self._inputs if x.name not in self._blocks]
        for name in dict.fromkeys(name for x in single for name in x.features or (x.name,)):
            if name not in known:
                continue
            try:
                self._columns[name] = column = table.column(name)
                if column.ndim == 0:
                    problems.append(f"column {name} is a single value: give one for each row")
            except Problem as problem:
                problems.append(f"column {name} {problem}")
        return problems

    def _way_out(self, name: str, unused: Collection[object]) -> str:
        """Return how to give a missing column: by a similar name, or as columns of a matrix."""
        matrices = [x for x in self._inputs if x.name == name and len(x.of_row) == 1]
        if (similar := meant(name, unused)) or not matrices or matrices[0].features:
            return similar
        size = matrices[0].of_row[0]
        if size == 1:
            return ""
        count = f" of {size} columns" if isinstance(size, int) else ""
        return f": it is a matrix{count}, name them by feature_names={{{name!r}: [...]}}"

    def feeds(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Return the inputs of a range of rows.

        Raises
        ------
        ScoringError
            If dtypes or sizes of columns do not fit; with all of them.
        """
        problems: list[str] = []
        sizes: dict[str, int] = {}
        found = {}
        for tensor in self._inputs:
            if tensor.features and not self._whole:
                matrix = self._gathered(tensor, start, stop, problems)
                found[tensor.name] = matrix if tensor.of_row else matrix[:, 0]
                continue
            try:
                values = converted(self._columns[tensor.name][start:stop], tensor.dtype, start)
                if values.ndim == 1 and tensor.is_single:
                    values = values.reshape(len(values), *(1 for _ in tensor.of_row))
                check_shape(values.shape, tensor.shape, sizes)
                found[tensor.name] = np.ascontiguousarray(values)
            except Problem as problem:
                problems.append(f"column {tensor.name} {problem}")
        raise_problems(problems, "the table does not fit the file")
        return found

    def _gathered(self, tensor: Tensor, start: int, stop: int, problems: list[str]) -> np.ndarray:
        """Return the matrix of the columns that the file names.

        Columns are copied to rows, and all at once to columns: half the time of single columns.
        """
        given = self._blocks.get(tensor.name)
        columns = (
            [self._columns[name][start:stop] for name in tensor.features]
            if given is None
            else list(given.read(start, stop))
        )
        rows = stop - start
        filler = np.empty(_space_after(rows, tensor.dtype.itemsize), tensor.dtype)
        block = np.empty((len(columns), rows + len(filler)), tensor.dtype)
        if all(values.dtype == tensor.dtype and values.ndim == 1 for values in columns):
            parts = [x for column in columns for x in (column, filler)] if len(filler) else columns
            np.concatenate(parts, out=block.reshape(-1))
        else:
            problems += _converted_rows(block[:, :rows], columns, tensor, start)
        return np.ascontiguousarray(block[:, :rows].T)


def _with_features(inputs: Sequence[Tensor], table: Table) -> Sequence[Tensor]:
    """Return inputs; a lone matrix without names takes as many columns of a table in order."""
    if len(inputs) != 1 or inputs[0].features or len(inputs[0].of_row) != 1:
        return inputs
    [matrix], names = inputs, list(table.names)
    size = matrix.of_row[0]
    # A lone column of one element may have the name of the input, misspelled.
    if size == 1 or len(names) != size or len(set(names)) != size or matrix.name in names:
        return inputs
    if names != list(range(len(names))):
        warnings.warn(
            f"the file does not name the columns of {matrix.name}, which are taken as they stand "
            f"in the table. To take them by name: feature_names={{{matrix.name!r}: {names}}}",
            stacklevel=4,
        )
    return [replace(matrix, features=tuple(names))]


def _space_after(size: int, itemsize: int) -> int:
    """Return how many elements put columns an odd number of cache lines apart.

    Equal places of columns whose distance is a power of two share few lines of the processor's
    cache, and a transpose takes five times as long. Short columns fit anyway.
    """
    n_bytes = size * itemsize
    if n_bytes < _SHORT_COLUMN:
        return 0
    return ((-(-n_bytes // _CACHE_LINE) | 1) * _CACHE_LINE - n_bytes) // itemsize


def _converted_rows(
    block: np.ndarray, columns: Sequence[np.ndarray], tensor: Tensor, first: int
) -> Iterator[str]:
    """Copy columns to the rows of a block, and yield their problems."""
    for row, name, values in zip(block, tensor.features, columns, strict=True):
        try:
            check_shape(values.shape, (None,), {})
            row[:] = converted(values, tensor.dtype, first)
        except Problem as problem:
            yield f"column {name} {problem}"
