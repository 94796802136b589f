"""Measure the latency of any ONNX file in ONNX Runtime."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import InputError
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.exporting.requests.descriptions import describe, describe_given
from pytensor_onnx.exporting.verification.sampling import Sample
from pytensor_onnx.graph.dims import dims_of


@dataclass(frozen=True)
class Latency:
    """Times of an ONNX file in ONNX Runtime.

    Attributes
    ----------
    inputs
        The inputs and their shapes.
    load_seconds
        Time to load the file and to make a session.
    first_seconds
        Time of the first run, in which the runtime allocates memory.
    runs
        Number of later runs.
    median_seconds, least_seconds
        Median and least time of these runs.
    """

    inputs: str
    load_seconds: float
    first_seconds: float
    runs: int
    median_seconds: float
    least_seconds: float


def measure_latency(
    file: Path,
    inputs: Path | None = None,
    *,
    threads: int | None = None,
    seconds: float = 1.0,
) -> Latency:
    """Return the latency of a file.

    Parameters
    ----------
    file
        An ONNX file of any exporter.
    inputs
        A file of NumPy's ``savez`` with an array for each input, by name; sampled arrays without.
    threads
        Threads within one operator; the runtime's default if None.
    seconds
        Time of all measured runs together; one run at least.

    Raises
    ------
    InputError
        If the given inputs cannot be read, or do not fit the inputs of the file.
    RunError
        If the file does not run on the given inputs.
    VerificationError
        If ONNX Runtime refuses the file, or no sampled inputs fit.
    """
    path = str(file)
    session = load(path, threads=threads)
    drawn = run_on_sample(session, path)[0] if inputs is None else _given(inputs, file)
    # Another session, as the first one also imports the runtime, and has run on the sample.
    del session
    load_seconds, session = _timed(lambda: load(path, threads=threads))
    feed = dict(zip(drawn.names, drawn.arrays, strict=True))
    first_seconds, _ = _timed(lambda: session.run(feed))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        times.append(_timed(lambda: session.run(feed))[0])
    return Latency(
        str(drawn), load_seconds, first_seconds, len(times), float(np.median(times)), min(times)
    )


def _timed[T](call: Callable[[], T]) -> tuple[float, T]:
    """Return the time of a call, and its result."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def _given(file: Path, model: Path) -> Sample:
    """Return the arrays of a file, which must fit the inputs of a model."""
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise InputError(f"{file} is one array: numpy.savez('inputs.npz', x=array) names each")
        with loaded as archive:
            arrays = dict(archive)
    except (AttributeError, TypeError, ValueError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"{file} is no .npz file of arrays: {error}") from error
    inputs = {str(value.name): value for value in ir.load(model).graph.inputs}
    problems = [f"there is no input {name!r}" for name in arrays if name not in inputs]
    for name, value in inputs.items():
        if name not in arrays and not value.is_initializer():
            problems.append(f"{name} is missing")
        elif name in arrays and not _fits(arrays[name], value):
            problems.append(f"input {describe(value)} was given {describe_given(arrays[name])}")
    if problems:
        raise InputError(f"{file}: {'; '.join(problems)}")
    return Sample(list(arrays.values()), list(arrays))


def _fits(array: np.ndarray, value: ir.Value) -> bool:
    """Return whether an array has the dtype and the rank of an input, where these are known."""
    dims = dims_of(value)
    has_rank = dims is None or len(dims) == array.ndim
    return has_rank and (value.dtype is None or value.dtype.numpy() == array.dtype)
