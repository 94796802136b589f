"""Score tables with an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_BYTES_OF_BATCH = 32_000_000
"""Rows, and bytes of inputs and outputs, of a batch of automatic size."""


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
        Rows of a run, or ``"auto"`` for as many as fit a bound on memory, 10,000 at most.
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
        step = self._step(opened)
        results = _Results(opened, feeder.rows)
        for start in range(0, feeder.rows, step):
            stop = min(start + step, feeder.rows)
            results.put(start, stop, opened.run(feeder.feeds(start, stop)))
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
            )
        return self._opened

    def _step(self, opened: _Opened) -> int:
        if isinstance(self._batch_size, int):
            return self._batch_size
        tensors = [*opened.interface.inputs, *opened.tensors]
        return max(1, min(_LONGEST_BATCH, _BYTES_OF_BATCH // sum(map(_bytes_of_row, tensors))))


@dataclass(frozen=True)
class _Opened:
    """A session, and what a scorer needs of it."""

    process: int
    session: InferenceSession
    interface: Interface
    columns: tuple[OutputColumn, ...]
    constants: Mapping[str, np.ndarray]

    @property
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


class _Results:
    """The outputs of all rows, put together of batches."""

    def __init__(self, opened: _Opened, rows: int) -> None:
        self._columns, self._tensors, self._rows = opened.columns, opened.tensors, rows
        self._arrays = {x: np.zeros((0, *map(_size, x.of_row)), x.dtype) for x in self._tensors}

    def put(self, start: int, stop: int, results: Sequence[np.ndarray]) -> None:
        """Put the outputs of a batch in their places."""
        for tensor, values in zip(self._tensors, results, strict=True):
            if len(values) != stop - start:
                raise ScoringError(
                    f"output {tensor.name} has {len(values)} rows for {stop - start}: it is no "
                    "function of single rows"
                )
            if len(values) == self._rows:
                self._arrays[tensor] = values
                continue
            if start == 0:
                self._arrays[tensor] = np.empty((self._rows, *values.shape[1:]), values.dtype)
            self._arrays[tensor][start:stop] = values

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


def _bytes_of_row(tensor: Tensor) -> int:
    return int(np.prod([_size(dim) or 1 for dim in tensor.of_row])) * tensor.dtype.itemsize


def _size(dim: int | str | None) -> int:
    return dim if isinstance(dim, int) else 0


def _text(dtype: np.dtype) -> str:
    return f"{dtype.base}{list(dtype.shape)}" if dtype.shape else str(dtype)
