"""Commands on ONNX files of any exporter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytensor_onnx.cli.arguments_of_commands import AsJson, File, Precision, Target
from pytensor_onnx.cli.terminal import one_line, print_json, progress_bar, show, working
from pytensor_onnx.errors import VerificationError

if TYPE_CHECKING:
    from pytensor_onnx.exporting.files.file_differences import FileDifferences


def inspect(
    file: File,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="List the nodes, those of subgraphs included.")
    ] = False,
    functions: Annotated[
        bool, typer.Option("--functions", help="List the nodes of each model-local function.")
    ] = False,
    pytensor: Annotated[
        bool, typer.Option("--pytensor", help="Print the PyTensor graph that from_onnx imports.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the contents of an ONNX file.

    These are inputs and outputs, state, operators, functions, sizes and metadata.
    """
    from pytensor_onnx.cli.inspection import inspect_file
    from pytensor_onnx.cli.tables import inspection_tables

    if pytensor:
        _print_graph(file, as_json)
    elif nodes or functions:
        _list_nodes(file, nodes, functions, as_json)
    elif as_json:
        print_json(asdict(inspect_file(file)))
    else:
        show(*inspection_tables(inspect_file(file)))


def _list_nodes(file: Path, nodes: bool, functions: bool, as_json: bool) -> None:
    from pytensor_onnx.cli.node_listing import listed_functions, listed_nodes
    from pytensor_onnx.exporting.files.model_reading import read_model

    model = read_model(file)
    main = listed_nodes(model) if nodes else []
    local = listed_functions(model) if functions else []
    if as_json:
        listed = {"nodes": [asdict(node) for node in main]} if nodes else {}
        print_json(listed | ({"functions": [asdict(f) for f in local]} if functions else {}))
        return
    show(*map(one_line, main))
    show(*(one_line(line) for function in local for line in function.lines()))


def _print_graph(file: Path, as_json: bool) -> None:
    with working("importing"):
        from pytensor.printing import debugprint

        from pytensor_onnx import from_onnx

        text = debugprint(from_onnx(file).outputs, print_type=True, file="str")
    lines = str(text).splitlines()
    if as_json:
        print_json({"pytensor": lines})
    else:
        show(*map(one_line, lines))


def bench(
    files: Annotated[
        list[Path],
        typer.Argument(exists=True, dir_okay=False, readable=True, help="ONNX files."),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="NumPy file (.npz) with all inputs."),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Threads within one operator; may be repeated."),
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(help="Provider of ONNX Runtime: cpu, cuda, ...; may be repeated."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Time of the runs of each session.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Measure the latency of ONNX files.

    Each file runs in ONNX Runtime with each number of threads on each provider, in turns, on given
    or sampled inputs. The table has the median, the percentiles 90 and 99 and the least time of a
    run.
    """
    from pytensor_onnx.cli.tables import latency_lines, latency_table
    from pytensor_onnx.exporting.files.file_latency import measure_latency
    from pytensor_onnx.exporting.files.model_reading import external_bytes

    # Unreadable models and missing weights are errors of input, before the runtime refuses them.
    for file in files:
        external_bytes(file)
    with progress_bar("measuring") as progress:
        found = measure_latency(
            files,
            inputs,
            threads=threads or [None],
            providers=provider or ["cpu"],
            seconds=seconds,
            progress=progress,
        )
    if as_json:
        print_json(list(map(asdict, found)))
        return
    show(latency_table(found), *latency_lines(found))


def verify(
    file: File,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which the verification ends.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Check and run an ONNX file.

    It runs on sampled inputs. Where the file has test vectors, which export --vectors stores, its
    results are compared with those of PyTensor. The file runs in a separate process with a time
    limit and, on Linux, a memory limit.
    """
    from pytensor_onnx.exporting.files.file_verification import verify_file_apart
    from pytensor_onnx.exporting.files.model_reading import external_bytes

    data_bytes = external_bytes(file)
    started = time.perf_counter()
    with working("verifying"):
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
    """Compare two ONNX files.

    Inputs and outputs, operators and weights are compared, and results on sampled inputs. Exits
    with 1 if the files differ.
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


def optimize(
    file: File,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write. [default: FILE.TARGET.onnx]"),
    ] = None,
    target: Target = "onnxruntime",
    precision: Precision = None,
    as_json: AsJson = False,
) -> None:
    """Optimize an ONNX file for a target.

    A file of any exporter is imported as a PyTensor graph and exported again, and the results are
    compared with those of the file. To see whether it runs faster, give both files to bench.
    """
    from pytensor_onnx.cli.inspection import inspect_file

    path = output or file.with_name(f"{file.stem}.{target}.onnx")
    given = {"precision": precision} if precision else {}
    with working("optimizing"):
        from pytensor_onnx import optimize_onnx, registered_mode  # noqa: F401

        program = optimize_onnx(file, path, target=target, **given)
    before, after = inspect_file(file), inspect_file(path)
    changes = [str(change) for change in program.changes]
    if as_json:
        print_json({"before": asdict(before), "after": asdict(after), "changes": changes})
        return
    show(
        *(f"changed: {change}" for change in changes),
        f"nodes: {before.nodes:,} -> {after.nodes:,}",
        f"bytes: {before.file_bytes:,} -> {after.file_bytes:,}",
        f"wrote {path}: {program.verification}",
    )
