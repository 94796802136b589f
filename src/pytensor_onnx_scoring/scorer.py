"""Score tables with an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx_scoring.columns import Problem, constant
from pytensor_onnx_scoring.feeding import Feeder
from pytensor_onnx_scoring.interface import (
    Interface,
    OutputColumn,
    Tensor,
    interface_of,
    output_columns,
)
from pytensor_onnx_scoring.problems import ScoringError, raise_problems
from pytensor_onnx_scoring.sessions import session_of
from pytensor_onnx_scoring.tables import table_of

if TYPE_CHECKING:
    import pyarrow
    from onnxruntime import InferenceSession

_PICKLED_BYTES = 10_000_000
"""Size from which a model is too large to travel with each task."""

_LONGEST_BATCH = 10_000
"""Rows that are gathered at once."""

_BYTES_OF_BATCH = 2_000_000
"""Bytes of the largest array of a batch of automatic size, which stays in the processor's cache."""

_COMPARED_ROWS = 4
"""Rows that are scored twice, to see that they do not depend on each other."""

_ROUNDING = 1e-3
"""Relative difference from which results of float32 are not equal but for rounding."""


class Scorer:
    """A file as a function of tables: the columns of a table become inputs, and outputs columns.

    Rows are scored independently of each other, in batches of bounded size. A scorer pickles as its
    arguments. Its session is opened once in each process, which scorers of one file share.

    Parameters
    ----------
    model
        Path of a file, or its bytes.
    outputs
        Columns of the result, by their names or those of outputs; all unless given.
    batch_size
        Rows of a run, 10,000 at most, or ``"auto"`` for as many as fit a bound on memory.
    threads
        Threads of a run. One is right where workers run side by side.
    providers
        Execution providers of ONNX Runtime, the CPU unless given.
    constants
        Values of the inputs that have no axis of rows, such as ``{"seed": 1}``.

    Raises
    ------
    ScoringError
        If the file cannot score rows, or an argument does not fit it.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> width, height = pt.vector("width"), pt.vector("height")
    >>> area = {"area": width * height}
    >>> _ = export_onnx([width, height], area, "area.onnx", dynamic_axes={"width": {0: "row"}})
    >>> scorer = Scorer("area.onnx")
    >>> scorer
    Scorer('area.onnx': width float64, height float64 -> area float64)
    >>> scorer({"width": [1.0, 2.0], "height": [3.0, 4.0]})
    {'area': array([3., 8.])}
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        *,
        outputs: Sequence[str] | None = None,
        batch_size: int | str = "auto",
        threads: int = 1,
        providers: Sequence[str] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self._model = bytes(model) if isinstance(model, bytes | bytearray) else os.fspath(model)
        self._outputs = [outputs] if isinstance(outputs, str) else outputs
        self._batch_size = batch_size
        self._threads = threads
        self._providers = providers
        self._constants = dict(constants or {})
        if batch_size != "auto" and not (isinstance(batch_size, int) and batch_size > 0):
            raise ScoringError(f"batch_size={batch_size!r}: give a number of rows, or 'auto'")
        self._opened: _Opened | None = None
        self._open()

    @property
    def input_columns(self) -> dict[str, np.dtype]:
        """Names and dtypes of the columns that a table must have."""
        inputs = self._open().interface.inputs
        return {name: dtype for x in inputs for name, dtype in x.columns().items()}

    @property
    def output_columns(self) -> dict[str, np.dtype]:
        """Names and dtypes of the columns of a result."""
        return {column.name: column.dtype for column in self._open().columns}

    @property
    def schema(self) -> pyarrow.Schema:
        """The schema of a result of pyarrow."""
        from pytensor_onnx_scoring.arrow import schema_of

        return schema_of(self._open().columns)

    def __call__(self, table: Any) -> Any:
        """Return the result for a table, as a table of the same kind.

        Parameters
        ----------
        table
            A dict of columns; a DataFrame of pandas or Polars; a Table or RecordBatch of pyarrow;
            an array of records; or the array of the one input of the file.

        Raises
        ------
        ScoringError
            If columns are missing, or their dtypes, sizes or nulls do not fit; with all of them.
        """
        opened = self._open()
        given = table_of(table, opened.columns)
        feeder = Feeder(opened.interface.inputs, given)
        results = _Results(opened, feeder.rows)
        step = opened.step
        for first in range(0, feeder.rows, _LONGEST_BATCH):
            feeds = feeder.feeds(first, min(first + _LONGEST_BATCH, feeder.rows))
            opened.check_rows(feeds)
            for start in range(0, _rows(feeds), step):
                batch = {name: x[start : start + step] for name, x in feeds.items()}
                results.put(first + start, opened.run(batch))
        return given.write(results.columns())

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments, without the session."""
        if isinstance(self._model, bytes) and len(self._model) > _PICKLED_BYTES:
            raise ScoringError(
                f"a model of {len(self._model) / 1e6:.0f} MB is too large to pickle: write it to a "
                "file that all workers can read, and give its path"
            )
        return {**self.__dict__, "_opened": None}

    def __repr__(self) -> str:
        model = "bytes" if isinstance(self._model, bytes) else repr(Path(self._model).name)
        inputs, outputs = (
            ", ".join(f"{name} {_text(dtype)}" for name, dtype in columns.items())
            for columns in (self.input_columns, self.output_columns)
        )
        return f"Scorer({model}: {inputs} -> {outputs})"

    def _open(self) -> _Opened:
        """Return the session with its interface, of this process."""
        if self._opened is None or self._opened.process != os.getpid():
            session = session_of(self._model, self._threads, self._providers)
            interface = interface_of(session, self._constants)
            self._opened = _Opened(
                os.getpid(),
                session,
                interface,
                output_columns(_outputs_of_rows(interface), self._outputs),
                _constants(interface, self._constants),
                self._batch_size if isinstance(self._batch_size, int) else None,
            )
        return self._opened


@dataclass
class _Opened:
    """A session, and what a scorer needs of it."""

    process: int
    session: InferenceSession
    interface: Interface
    columns: tuple[OutputColumn, ...]
    constants: Mapping[str, np.ndarray]
    batch_size: int | None
    is_checked: bool = False

    @cached_property
    def step(self) -> int:
        """Rows of a run."""
        if self.batch_size is not None:
            return self.batch_size
        known = [_bytes_of_row(x) for x in (*self.interface.inputs, *self.tensors)]
        largest = max(self.interface.bytes_of_row, *known)
        return max(1, min(_LONGEST_BATCH, _BYTES_OF_BATCH // largest))

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """The outputs that the columns are of."""
        return tuple(dict.fromkeys(column.tensor for column in self.columns))

    def run(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        names = [x.name for x in self.tensors]
        try:
            results = self.session.run(names, {**feeds, **self.constants})
        except Exception as error:
            # Errors of the runtime have no base class of their own.
            raise ScoringError(f"the run of the file failed: {error}") from error
        return [
            np.moveaxis(np.asarray(x), int(tensor.axis or 0), 0)
            for tensor, x in zip(self.tensors, results, strict=True)
        ]

    def check_rows(self, feeds: Mapping[str, np.ndarray]) -> None:
        """Raise if the results of the first rows are others where these are alone.

        Raises
        ------
        ScoringError
            With the output that differs.
        """
        n = min(_COMPARED_ROWS, _rows(feeds))
        if self.is_checked or n < 2:
            return
        whole, first, others = (
            self.run({name: x[part] for name, x in feeds.items()})
            for part in (slice(n), slice(1), slice(1, n))
        )
        for tensor, result, *parts in zip(self.tensors, whole, first, others, strict=True):
            if len(result) != n or not _are_close(result, np.concatenate(parts)):
                raise ScoringError(
                    f"output {tensor.name} of a row depends on the other rows of a batch, and so "
                    "on how a table is split. For draws of a PyMC model, export it with row_id=; "
                    "else run the file with ONNX Runtime, on all rows at once"
                )
        self.is_checked = True


class _Results:
    """The outputs of all rows, put together of batches."""

    def __init__(self, opened: _Opened, rows: int) -> None:
        self._columns, self._tensors, self._rows = opened.columns, opened.tensors, rows
        self._arrays = {x: np.zeros((0, *map(_size, x.of_row)), x.dtype) for x in self._tensors}

    def put(self, start: int, results: Sequence[np.ndarray]) -> None:
        """Put the outputs of a batch in their places."""
        for tensor, values in zip(self._tensors, results, strict=True):
            if len(values) == self._rows:
                self._arrays[tensor] = values
                continue
            if start == 0:
                self._arrays[tensor] = np.empty((self._rows, *values.shape[1:]), values.dtype)
            self._arrays[tensor][start : start + len(values)] = values

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns of the result."""
        return {
            c.name: self._arrays[c.tensor]
            if c.place is None
            else self._arrays[c.tensor][:, c.place]
            for c in self._columns
        }


def _outputs_of_rows(interface: Interface) -> Sequence[Tensor]:
    problems = []
    if not interface.inputs:
        fixed = ", ".join(f"{x.name}: {x}" for x in interface.others)
        problems.append(
            f"no input has an axis of rows of any size ({fixed}): export the model with "
            "dynamic_axes, as in {'x': {0: 'row'}}; a PyMC model with shape=x.shape in the "
            "likelihood of data x"
        )
    if not interface.outputs:
        problems.append("no output has an axis of rows")
    raise_problems(problems, "a table")
    return interface.outputs


def _constants(interface: Interface, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the inputs without rows."""
    problems, found = [], {}
    for tensor in interface.others:
        if tensor.name not in given:
            problems.append(
                f"input {tensor.name}, {tensor}, has no axis of rows of any size: give its value, "
                f"constants={{{tensor.name!r}: ...}}, or export the model with this axis in "
                "dynamic_axes"
            )
            continue
        try:
            found[tensor.name] = constant(given[tensor.name], tensor)
        except Problem as problem:
            problems.append(f"the constant {tensor.name} {problem}")
    known = {x.name for x in interface.others}
    problems += [f"there is no input {name} without rows" for name in given if name not in known]
    raise_problems(problems, "constants")
    return found


def _rows(feeds: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(feeds.values())))


def _are_close(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether results are equal but for rounding."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    tolerance = _ROUNDING if a.dtype.itemsize <= 4 else _ROUNDING**2
    scale = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def _bytes_of_row(tensor: Tensor) -> int:
    return int(np.prod([_size(dim) or 1 for dim in tensor.of_row])) * tensor.dtype.itemsize


def _size(dim: int | str | None) -> int:
    return dim if isinstance(dim, int) else 0


def _text(dtype: np.dtype) -> str:
    return f"{dtype.base}{list(dtype.shape)}" if dtype.shape else str(dtype)
