"""Commands on ONNX files of any exporter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytensor_onnx.cli.arguments_of_commands import AsJson, File
from pytensor_onnx.cli.terminal import print_json, show, working
from pytensor_onnx.errors import VerificationError

if TYPE_CHECKING:
    from pytensor_onnx.exporting.files.file_differences import FileDifferences


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
    from pytensor_onnx.exporting.files.file_latency import measure_latency
    from pytensor_onnx.exporting.files.model_reading import read_model
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
    from pytensor_onnx.exporting.files.file_verification import verify_file_apart
    from pytensor_onnx.exporting.files.model_reading import external_bytes

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


def diff(
    first: File,
    second: File,
    as_json: AsJson = False,
) -> None:
    """Compare two ONNX files: interfaces, operators, weights, results.

    Results are compared on sampled inputs in ONNX Runtime. Exits with 1 if the files differ.
    """
    from pytensor_onnx.exporting.files.file_differences import diff_onnx

    with working("comparing"):
        found = diff_onnx(first, second)
    if as_json:
        print_json({"first": str(first), "second": str(second), **asdict(found)})
    else:
        show(*difference_lines(found))
    raise typer.Exit(1 if found else 0)


def difference_lines(found: FileDifferences) -> Iterator[str]:
    """Describe the differences of two files, line by line."""
    results = f"results on {found.sample}"
    parts = {"interface": found.interface, "operators": found.operators, "weights": found.weights}
    for name, lines in {**parts, results: found.results}.items():
        if name == results and not found.sample:
            yield "results: not compared, as the inputs differ"
            return
        yield f"{name}: {'different' if lines else 'equal'}"
        yield from (f"  {line}" for line in lines)
