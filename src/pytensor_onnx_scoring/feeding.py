"""Inputs of a run from the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytensor_onnx_scoring.columns import Problem, check_shape, converted
from pytensor_onnx_scoring.interface import Tensor
from pytensor_onnx_scoring.problems import raise_problems
from pytensor_onnx_scoring.tables import Table


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
        problems = self._read(table)
        lengths = {name: len(x) for name, x in self._columns.items() if x.ndim}
        self.rows = max(lengths.values(), default=0)
        problems += [
            f"column {name} has {n} rows, others have {self.rows}"
            for name, n in lengths.items()
            if n != self.rows
        ]
        raise_problems(problems, "the table")

    def _read(self, table: Table) -> list[str]:
        """Read the columns, and return what is wrong."""
        if self._whole:
            if len(self._inputs) > 1:
                named = ", ".join(x.name for x in self._inputs)
                return [f"an array without names has no columns {named}: give a dict of columns"]
            self._columns[self._inputs[0].name] = table.column("")
            return []
        names = list(dict.fromkeys(name for x in self._inputs for name in x.features or (x.name,)))
        known = set(table.names)
        missing = [name for name in names if name not in known]
        problems = [f"column {name} is missing" for name in missing]
        for name in names:
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
        raise_problems(problems, "the table")
        return found

    def _gathered(self, tensor: Tensor, start: int, stop: int, problems: list[str]) -> np.ndarray:
        """Return the matrix of the columns that the file names.

        Columns are copied to rows, and all at once to columns: half the time of single columns.
        """
        block = np.empty((len(tensor.features), stop - start), tensor.dtype)
        for place, name in enumerate(tensor.features):
            values = self._columns[name][start:stop]
            try:
                if values.ndim != 1:
                    check_shape(values.shape, (None,), {})
                block[place] = converted(values, tensor.dtype)
            except Problem as problem:
                problems.append(f"column {name} {problem}")
        return np.ascontiguousarray(block.T)
