"""Commands on ONNX files of any exporter: ``inspect``, ``bench`` and ``verify``."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pytensor_onnx.cli.arguments_of_commands import AsJson, File
from pytensor_onnx.cli.terminal import print_json, show
from pytensor_onnx.errors import VerificationError


def inspect(file: File, as_json: AsJson = False) -> None:
    """Show inputs, outputs, state, operators, functions and sizes of an ONNX file."""
    from pytensor_onnx.cli.inspection import inspect_file

    found = inspect_file(file)
    if as_json:
        print_json(asdict(found))
        return
    from pytensor_onnx.cli.tables import inspection_tables

    show(*inspection_tables(found))


def bench(
    file: File,
    inputs: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="NumPy file (.npz) with all inputs."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads within one operator.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time of the runs measured.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Measure the latency of an ONNX file in ONNX Runtime, on given or sampled inputs."""
    from pytensor_onnx.cli.inspection import read_model
    from pytensor_onnx.exporting.files.file_latency import measure_latency
    from pytensor_onnx.graph.weights import weight_files

    # Unreadable models and missing weights are errors of input, before the runtime refuses them.
    weight_files(read_model(file), file)
    latency = measure_latency(file, inputs, threads=threads, seconds=seconds)
    if as_json:
        print_json({"file": str(file), **asdict(latency)})
        return
    from pytensor_onnx.cli.tables import latency_table

    show(latency_table(str(file), latency))


def verify(
    file: File,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which the verification is ended.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Check an ONNX file, load it into ONNX Runtime, and run it on sampled inputs.

    The file runs in a separate process with a time limit and, on Linux, a memory limit.
    """
    from pytensor_onnx.cli.inspection import external_bytes
    from pytensor_onnx.exporting.files.file_verification import verify_file_apart

    data_bytes = external_bytes(file)
    started = time.perf_counter()
    outcome = verify_file_apart(file, timeout=timeout, data_bytes=data_bytes)
    seconds = round(time.perf_counter() - started, 2)
    if as_json:
        result = {"file": str(file), "verified": outcome.error is None, "seconds": seconds}
        print_json({**result, **asdict(outcome)})
        raise typer.Exit(0 if outcome.error is None else 1)
    show(*(f"ok: {line}" for line in outcome.steps))
    if outcome.error is not None:
        raise VerificationError(outcome.error)
    show(f"{file} verified in {seconds:.2f} s")
