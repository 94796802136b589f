"""Measure the latency of ONNX files of any exporter in ONNX Runtime."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import InputError, PyTensorONNXError
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.exporting.requests.descriptions import describe, describe_given
from pytensor_onnx.exporting.verification.sampling import Sample
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.running.session import Session

TURNS = 10
"""Number of times that each session has its turn."""


@dataclass(frozen=True)
class Latency:
    """Times of an ONNX file in one session of ONNX Runtime.

    Attributes
    ----------
    file, provider, threads
        The file, the execution provider, and the threads within one operator, None for the
        runtime's default.
    inputs
        The inputs and their shapes.
    load_seconds
        Time to load the file and to make a session.
    first_seconds
        Time of the first run, in which the runtime allocates memory.
    runs
        Number of later runs.
    least_seconds, median_seconds, p90_seconds, p99_seconds
        Least time and percentiles 50, 90 and 99 of these runs.
    """

    file: str
    provider: str
    threads: int | None
    inputs: str
    load_seconds: float
    first_seconds: float
    runs: int
    least_seconds: float
    median_seconds: float
    p90_seconds: float
    p99_seconds: float


def measure_latency(
    files: str | os.PathLike | Sequence[str | os.PathLike],
    inputs: str | os.PathLike | None = None,
    *,
    threads: int | Sequence[int | None] | None = None,
    providers: str | Sequence[str] = "cpu",
    seconds: float = 1.0,
    progress: Callable[[float], None] | None = None,
) -> list[Latency]:
    """Return the latency of each file with each number of threads on each provider.

    The sessions run in turns, so that other work on the machine slows all of them alike.

    Parameters
    ----------
    files
        ONNX files of any exporter, or one.
    inputs
        A file of NumPy's ``savez`` with an array for each input, by name; sampled arrays without,
        those of the first file for all that take them.
    threads
        Numbers of threads within one operator, or one; the runtime's default if None.
    providers
        Execution providers, or one; operators that a provider lacks run on the CPU.
    seconds
        Time of all measured runs of a session together; one run at least.
    progress
        Function of the share of the work that is done, from 0 to 1.

    Raises
    ------
    InputError
        If the given inputs cannot be read, or do not fit the inputs of a file.
    RunError
        If a file does not run on the given inputs.
    VerificationError
        If ONNX Runtime refuses a file, or no sampled inputs fit.

    Examples
    --------
    >>> import tempfile, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, measure_latency
    >>> x = pt.vector("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = export_onnx([x], pt.exp(x), folder + "/exp.onnx")
    ...     one, two = measure_latency(folder + "/exp.onnx", threads=[1, 2], seconds=0.01)
    >>> one.threads, two.threads, one.least_seconds <= one.median_seconds <= one.p99_seconds
    (1, 2, True)
    """
    report = progress or (lambda _: None)
    paths = [files] if isinstance(files, str | os.PathLike) else files
    counts = [threads] if threads is None or isinstance(threads, int) else threads
    names = [providers] if isinstance(providers, str) else providers
    choices = [(Path(f), name, count) for f in paths for name in names for count in counts]
    given = None if inputs is None else Path(inputs)
    runs: list[_Runs] = []
    for file, name, count in choices:
        runs.append(_Runs.of(file, given, name, count, runs[0].drawn if runs else None))
    for turn in range(TURNS):
        for i, each in enumerate(runs):
            each.run_for(seconds / TURNS)
            report((turn * len(runs) + i + 1) / (TURNS * len(runs)))
    return [each.latency() for each in runs]


@dataclass
class _Runs:
    """The runs of a session, with their times."""

    file: Path
    provider: str
    threads: int | None
    drawn: Sample
    session: Session
    load_seconds: float
    first_seconds: float
    times: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        file: Path,
        inputs: Path | None,
        provider: str,
        threads: int | None,
        shared: Sample | None,
    ) -> _Runs:
        """Load a file, and run it once; on the sample of another file if it takes that."""
        path = str(file)
        session = load(path, threads=threads, providers=provider)
        if inputs is not None:
            drawn = _given(inputs, file)
        elif shared is not None and _takes(session, file, shared):
            drawn = shared
        else:
            drawn = run_on_sample(session, path)[0]
        # Another session, as the first one also imports the runtime, and has run on the sample.
        del session
        load_seconds, session = _timed(lambda: load(path, threads=threads, providers=provider))
        feed = dict(zip(drawn.names, drawn.arrays, strict=True))
        first_seconds, _ = _timed(lambda: session.run(feed))
        return cls(file, provider, threads, drawn, session, load_seconds, first_seconds)

    def run_for(self, seconds: float) -> None:
        """Run the file for a time; once at least, unless the time is zero and it has run."""
        feed = dict(zip(self.drawn.names, self.drawn.arrays, strict=True))
        end = time.perf_counter() + seconds
        while not self.times or time.perf_counter() < end:
            self.times.append(_timed(lambda: self.session.run(feed))[0])

    def latency(self) -> Latency:
        """Return the times in short."""
        percentiles = map(float, np.percentile(self.times, [0, 50, 90, 99]))
        return Latency(
            str(self.file),
            self.provider,
            self.threads,
            str(self.drawn),
            self.load_seconds,
            self.first_seconds,
            len(self.times),
            *percentiles,
        )


def _timed[T](call: Callable[[], T]) -> tuple[float, T]:
    """Return the time of a call, and its result."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def _takes(session: Session, model: Path, drawn: Sample) -> bool:
    """Return whether a model runs on a sample."""
    given = dict(zip(drawn.names, drawn.arrays, strict=True))
    values = read_model(model).graph.inputs
    inputs = {str(v.name): v for v in values if not v.is_initializer()}
    if given.keys() != inputs.keys() or not all(_fits(given[k], v) for k, v in inputs.items()):
        return False
    try:
        session.run(given)
    except PyTensorONNXError:
        return False
    return True


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
    inputs = {str(value.name): value for value in read_model(model).graph.inputs}
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
