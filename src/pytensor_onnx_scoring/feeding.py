"""Inputs of a run from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pytensor_onnx_scoring.columns import Problem, check_shape, converted
from pytensor_onnx_scoring.interface import Tensor
from pytensor_onnx_scoring.problems import raise_problems
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
        self._inputs = inputs
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
            self._columns[self._inputs[0].name] = column = table.column("")
            return [] if column.ndim else ["the array has no axis of rows"]
        names = list(dict.fromkeys(name for x in self._inputs for name in x.features or (x.name,)))
        known = set(table.names)
        missing = [name for name in names if name not in known]
        problems = [f"column {name} is missing" for name in missing]
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
                found[tensor.name] = self._gathered(tensor, start, stop, problems)
                continue
            try:
                values = converted(self._columns[tensor.name][start:stop], tensor.dtype)
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
            problems += _converted_rows(block[:, :rows], columns, tensor)
        return np.ascontiguousarray(block[:, :rows].T)


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
    block: np.ndarray, columns: Sequence[np.ndarray], tensor: Tensor
) -> Iterator[str]:
    """Copy columns to the rows of a block, and yield their problems."""
    for row, name, values in zip(block, tensor.features, columns, strict=True):
        try:
            check_shape(values.shape, (None,), {})
            row[:] = converted(values, tensor.dtype)
        except Problem as problem:
            yield f"column {name} {problem}"
