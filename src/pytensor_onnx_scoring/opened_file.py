"""A file with its session in a process: runs of batches, and results of all rows."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx_scoring.columns import Problem, constant
from pytensor_onnx_scoring.file_kinds import why_no_model
from pytensor_onnx_scoring.interface import Interface, OutputColumn, Tensor
from pytensor_onnx_scoring.problems import (
    MissingConstantError,
    ScoringError,
    is_interruption,
    raise_problems,
)
from pytensor_onnx_scoring.zip_maps import probabilities

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


_LONGEST_BATCH = 10_000
_GATHERED_BYTES = 32_000_000
"""Rows, and bytes of inputs, that are gathered at once."""

_BYTES_OF_BATCH = 2_000_000
"""Bytes of the largest array of a batch of automatic size, which stays in the processor's cache."""

_COMPARED_ROWS = 4
"""Rows that are scored twice, to see that they do not depend on each other.

They are spread over the table, as rows that follow each other are often alike.
"""

_ROUNDING = 1e-3
"""Relative difference from which results of float32 are not equal but for rounding."""


@dataclass
class OpenedFile:
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

    @cached_property
    def gathered(self) -> int:
        """Rows of some runs, whose inputs are made at once."""
        row = sum(map(_bytes_of_row, self.interface.inputs))
        return max(1, min(_LONGEST_BATCH, _GATHERED_BYTES // row) // self.step) * self.step

    def run(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the outputs of a batch, with the rows first.

        Raises
        ------
        ScoringError
            If the run fails.
        """
        names = [x.name for x in self.tensors]
        try:
            results = self.session.run(names, {**feeds, **self.constants})
        except Exception as error:
            # Errors of the runtime have no base class of their own.
            if is_interruption(error):
                raise
            raise ScoringError(f"the run of the file failed: {error}") from error
        return [_rows_first(x, result) for x, result in zip(self.tensors, results, strict=True)]

    def check_rows(self, feeds: Mapping[str, np.ndarray]) -> None:
        """Raise if the results of some rows are others where one of them is alone.

        Rows of equal results, or of NaN, tell nothing, so that the next ones are compared as well.

        Raises
        ------
        ScoringError
            With the output that differs.
        """
        n = rows_of(feeds)
        if self.is_checked or n < 2:
            return
        rows = np.unique(np.linspace(0, n - 1, _COMPARED_ROWS).astype(int))
        whole, first, others = (
            self.run({name: x[part] for name, x in feeds.items()})
            for part in (rows, rows[:1], rows[1:])
        )
        for tensor, result, *parts in zip(self.tensors, whole, first, others, strict=True):
            if len(result) != len(rows) or not _are_parts(parts, result):
                raise ScoringError(
                    f"output {tensor.name} of a row depends on the other rows of a batch, and so "
                    "on how a table is split. For draws of a PyMC model, export it with row_id=; "
                    "else run the file with ONNX Runtime, on all rows at once"
                )
        self.is_checked = any(map(_differ, whole))


class Results:
    """The outputs of all rows, put together of batches."""

    def __init__(self, opened: OpenedFile, rows: int) -> None:
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


def outputs_of_rows(interface: Interface) -> Sequence[Tensor]:
    """Return the outputs that have rows.

    Raises
    ------
    ScoringError
        If there are none, or no inputs of rows.
    """
    problems = []
    if not interface.inputs:
        fixed = ", ".join(f"{x.name}: {x}" for x in interface.others)
        problems.append(
            f"no input has an axis of rows of any size ({fixed}): export the model with "
            "dynamic_axes, as in {'x': {0: 'row'}}; a PyMC model with shape=x.shape in the "
            "likelihood of data x; by other converters with a first axis of size None"
        )
    if not interface.outputs:
        problems.append("no output has an axis of rows")
    raise_problems(problems, "the file takes no table")
    return interface.outputs


def read_constants(interface: Interface, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the inputs without rows."""
    problems, found = [], {}
    kind = ScoringError
    for tensor in interface.others:
        if tensor.name not in given:
            kind = MissingConstantError
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
    raise_problems(problems, "constants do not fit the file", kind)
    return found


def rows_of(feeds: Mapping[str, np.ndarray]) -> int:
    """Return the number of rows of inputs."""
    return len(next(iter(feeds.values())))


def _rows_first(tensor: Tensor, result: Any) -> np.ndarray:
    if tensor.labels:
        return probabilities(result, tensor.labels, tensor.dtype)
    return np.moveaxis(np.asarray(result), int(tensor.axis or 0), 0)


def _are_parts(parts: Sequence[np.ndarray], whole: np.ndarray) -> bool:
    if any(part.shape[1:] != whole.shape[1:] for part in parts):
        return False
    return _are_close(whole, np.concatenate(parts))


def _differ(results: np.ndarray) -> bool:
    """Return whether rows have other results than the first, and numbers."""
    is_other = results[1:] != results[:1]
    return bool(
        np.any(is_other & ~np.isnan(results[1:]) if results.dtype.kind == "f" else is_other)
    )


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


_sessions: dict[tuple[Any, ...], tuple[Any, InferenceSession]] = {}
"""For each file and options the state of the file when it was opened, and the session."""

_lock = Lock()

_REGIONS = "pytensor.kernels"
"""The domain of regions, which no file may have."""


def session_of(
    model: str | bytes, threads: int, providers: Sequence[str] | None
) -> InferenceSession:
    """Return the session of a file, opened once for each process and state of the file.

    Raises
    ------
    ScoringError
        If a provider is not there, in whose place the runtime would take the CPU, or the file is
        no ONNX model that the runtime can load.
    """
    name, state = _identity(model)
    # A forked process must not use the threads of its parent.
    key = (os.getpid(), name, threads, repr(list(providers or ())))
    with _lock:
        if key not in _sessions or _sessions[key][0] != state:
            _sessions[key] = state, _open(model, threads, providers)
        return _sessions[key][1]


def _identity(model: str | bytes) -> tuple[Any, Any]:
    """Return the name of a file, and what changes with its contents."""
    if isinstance(model, bytes):
        return hashlib.sha256(model).digest(), None
    found = Path(model).stat()
    return str(Path(model).resolve()), (found.st_mtime_ns, found.st_size)


def _open(model: str | bytes, threads: int, providers: Sequence[str] | None) -> InferenceSession:
    import onnxruntime

    wanted = list(providers or ["CPUExecutionProvider"])
    names = [provider if isinstance(provider, str) else provider[0] for provider in wanted]
    known = onnxruntime.get_available_providers()
    if missing := [name for name in names if name not in known]:
        raise ScoringError(
            f"ONNX Runtime has no {', '.join(missing)} here: choose of {', '.join(known)}"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if names == ["CPUExecutionProvider"] and (library := _kernels()):
        options.register_custom_ops_library(library)
    try:
        return onnxruntime.InferenceSession(model, options, providers=wanted)
    except Exception as error:
        # The library offers no regions to files, so the runtime does not know the operator.
        if f"{_REGIONS}:" in str(error):
            raise ScoringError(
                f"the file has operators of {_REGIONS}, which only sessions of pytensor-onnx "
                "make: export the graph again"
            ) from error
        # Errors of the runtime have no base class of their own.
        name = "the bytes" if isinstance(model, bytes) else model
        if reason := why_no_model(model):
            raise ScoringError(f"{name} cannot be read as an ONNX model: {reason}") from error
        raise ScoringError(f"ONNX Runtime refuses {name}: {error}") from error


def _kernels() -> str | None:
    """Return the library of `pytensor_onnx.native`, None where it is switched off or not built.

    It is found beside this package, since `pytensor_onnx` imports PyTensor.
    """
    if os.environ.get("PYTENSOR_ONNX_KERNELS", "1") == "0":
        return None
    folder = Path(__file__).parents[1] / "pytensor_onnx" / "kernels"
    found = folder.glob(f"kernels-{sys.platform}-{platform.machine().lower()}.*")
    return next(map(str, found), None)
