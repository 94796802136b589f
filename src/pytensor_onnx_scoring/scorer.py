"""Score tables with an ONNX file."""

from __future__ import annotations

import os
import sys
from collections.abc import Buffer, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx_scoring.feeding import Feeder
from pytensor_onnx_scoring.interface import (
    interface_of,
    output_columns,
)
from pytensor_onnx_scoring.opened_file import (
    OpenedFile,
    Results,
    outputs_of_rows,
    read_constants,
    rows_of,
    session_of,
)
from pytensor_onnx_scoring.problems import ScoringError
from pytensor_onnx_scoring.tables import table_of

if TYPE_CHECKING:
    import pyarrow

_PICKLED_BYTES = 10_000_000
"""Size from which a model is too large to travel with each task."""


class Scorer:
    """A file as a function of tables: the columns of a table become inputs, and outputs columns.

    Rows are scored independently of each other, in batches of bounded size. A scorer pickles as its
    arguments. Its session is opened once in each process, which scorers of one file share.

    Parameters
    ----------
    model
        Path of a file, its bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model``, or a program of
        `pytensor_onnx`.
    outputs
        Columns of the result, by their names or those of outputs; all unless given.
    batch_size
        Rows of a run, or ``"auto"`` for as many as fit a bound on memory.
    threads
        Threads of a run. One is right where workers run side by side.
    providers
        Execution providers of ONNX Runtime, the CPU unless given.
    constants
        Values of the inputs that have no axis of rows, such as ``{"seed": 1}``.
    feature_names
        Names of the columns of matrices, by inputs and outputs, for files that do not have them:
        ``{"X": ["age", "income"]}``.

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
        model: Any,
        *,
        outputs: Sequence[str] | None = None,
        batch_size: int | str = "auto",
        threads: int = 1,
        providers: Sequence[str] | None = None,
        constants: Mapping[str, Any] | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._model = _path_or_bytes(model)
        self._outputs = [outputs] if isinstance(outputs, str) else outputs
        self._batch_size = batch_size
        self._threads = threads
        self._providers = [providers] if isinstance(providers, str) else providers
        self._constants = dict(constants or {})
        if not isinstance(feature_names, Mapping | None):
            raise ScoringError(
                f"feature_names={feature_names!r}: give names by inputs and outputs, as in "
                "{'X': ['age', 'income']}"
            )
        self._feature_names = dict(feature_names or {})
        if batch_size != "auto" and not (isinstance(batch_size, int) and batch_size > 0):
            raise ScoringError(f"batch_size={batch_size!r}: give a number of rows, or 'auto'")
        self._opened: OpenedFile | None = None
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
        """The schema of a result of pyarrow.

        Raises
        ------
        ScoringError
            If pyarrow is not installed.
        """
        try:
            from pytensor_onnx_scoring.arrow import schema_of
        except ModuleNotFoundError as error:
            raise ScoringError(
                "the schema of a result is one of pyarrow, which is not installed: pip install "
                "pyarrow, or take output_columns, the dtypes by name"
            ) from error
        return schema_of(self._open().columns)

    def __call__(self, table: Any) -> Any:
        """Return the result for a table, as a table of the same kind.

        Parameters
        ----------
        table
            A dict of columns; a DataFrame of pandas or Polars; a Table or RecordBatch of pyarrow;
            another table with Arrow's stream of batches, such as a relation of DuckDB, whose result
            is a Table; an array of records; or the array of the one input of the file.

        Raises
        ------
        ScoringError
            If columns are missing, or their dtypes, sizes or nulls do not fit; with all of them.
        """
        opened = self._open()
        given = table_of(table, opened.columns)
        feeder = Feeder(opened.interface.inputs, given)
        results = Results(opened, feeder.rows)
        step = opened.step
        for first in range(0, feeder.rows, opened.gathered):
            feeds = feeder.feeds(first, min(first + opened.gathered, feeder.rows))
            opened.check_rows(feeds)
            for start in range(0, rows_of(feeds), step):
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

    def _open(self) -> OpenedFile:
        """Return the session with its interface, of this process."""
        if self._opened is None or self._opened.process != os.getpid():
            session = session_of(self._model, self._threads, self._providers)
            interface = interface_of(session, self._model, self._constants, self._feature_names)
            self._opened = OpenedFile(
                os.getpid(),
                session,
                interface,
                output_columns(outputs_of_rows(interface), self._outputs),
                read_constants(interface, self._constants),
                self._batch_size if isinstance(self._batch_size, int) else None,
            )
        return self._opened


def _path_or_bytes(model: Any) -> str | bytes:
    """Return the path of a file, or the bytes of a model."""
    if isinstance(model, str | os.PathLike):
        # A worker may have another folder than the process that made the scorer.
        return os.path.abspath(os.fspath(model))
    if isinstance(model, Buffer):
        return bytes(model)
    given = f"{type(model).__module__}.{type(model).__qualname__}"
    # Imported by whoever has such a model, and not needed by a worker with a file.
    onnx_ir = sys.modules.get("onnx_ir")
    if onnx_ir is not None and isinstance(model, onnx_ir.Model):
        model = onnx_ir.to_proto(model)
    # A program's file has columns and labels of strings that its graph does not have.
    model = getattr(model, "proto", model)
    if type(model).__name__ != "ModelProto":
        raise ScoringError(
            "a Scorer takes a path, bytes, onnx.ModelProto, onnx_ir.Model or ONNXProgram; "
            f"got {given}"
        )
    try:
        return model.SerializeToString()
    except Exception as error:
        # Protocol Buffers have an error of their own, or ValueError, by their version.
        raise ScoringError(
            f"the model does not turn into bytes ({error}): write a file, and give its path"
        ) from error


def _text(dtype: np.dtype) -> str:
    return f"{dtype.base}{list(dtype.shape)}" if dtype.shape else str(dtype)
