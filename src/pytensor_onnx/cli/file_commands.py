"""Commands on ONNX files of any exporter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from pytensor_onnx.cli.arguments_of_commands import (
    FILE,
    NEW_PATH,
    Seconds,
    with_file,
    with_json,
    with_precision,
    with_target,
)
from pytensor_onnx.cli.terminal import one_line, print_json, show
from pytensor_onnx.errors import VerificationError
from pytensor_onnx.progress import progress_bar, working

if TYPE_CHECKING:
    from pytensor_onnx.exporting.files.file_differences import FileDifferences


@click.command
@with_file
@click.option("--nodes", is_flag=True, help="List the nodes, those of subgraphs included.")
@click.option("--functions", is_flag=True, help="List the nodes of each model-local function.")
@click.option("--pytensor", is_flag=True, help="Print the PyTensor graph that from_onnx imports.")
@click.option(
    "--import", "imports", is_flag=True, help="Tell what from_onnx imports, or all that stops it."
)
@click.option("--svg", is_flag=True, help="Draw the graph as an SVG file.")
@click.option("--output", "-o", type=NEW_PATH, help="File of --svg. [default: FILE.svg]")
@with_json
def inspect(
    file: Path,
    nodes: bool,
    functions: bool,
    pytensor: bool,
    imports: bool,
    svg: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show the contents of an ONNX file.

    These are inputs and outputs, state, operators, functions, sizes and metadata.
    """
    from pytensor_onnx.cli.inspection import inspect_file, inspect_import
    from pytensor_onnx.cli.terminal import import_tables, inspection_tables

    if output and not svg:
        raise click.UsageError("--output is the file of --svg.")
    if svg:
        from pytensor_onnx.graph.model_reading import read_model
        from pytensor_onnx.pictures.graph_picture import draw_graph

        picture = draw_graph(read_model(file)).save(output or file.with_suffix(".svg"))
        if as_json:
            print_json({"file": str(file), "svg": str(picture)})
        else:
            show(f"wrote {picture}")
    elif imports:
        with working("importing"):
            found = inspect_import(file)
        if as_json:
            print_json(asdict(found))
        else:
            show(*import_tables(found))
    elif nodes or functions or pytensor:
        _list_parts(file, nodes, functions, pytensor, as_json)
    elif as_json:
        print_json(asdict(inspect_file(file)))
    else:
        show(*inspection_tables(inspect_file(file)))


def _list_parts(file: Path, nodes: bool, functions: bool, pytensor: bool, as_json: bool) -> None:
    from pytensor_onnx.cli.inspection import listed_functions, listed_nodes
    from pytensor_onnx.graph.model_reading import read_model

    model = read_model(file)
    main = listed_nodes(model) if nodes else []
    local = listed_functions(model) if functions else []
    imported = _imported_graph(file) if pytensor else []
    if as_json:
        listed: dict[str, Any] = {"nodes": [asdict(node) for node in main]} if nodes else {}
        listed |= {"functions": [asdict(f) for f in local]} if functions else {}
        print_json(listed | ({"pytensor": imported} if pytensor else {}))
        return
    show(*map(one_line, main))
    show(*(one_line(line) for function in local for line in function.lines()))
    show(*map(one_line, imported))


def _imported_graph(file: Path) -> list[str]:
    """Return the lines of the PyTensor graph of a file."""
    with working("importing"):
        from pytensor.printing import debugprint

        from pytensor_onnx import from_onnx

        return str(debugprint(from_onnx(file).outputs, print_type=True, file="str")).splitlines()


@click.command
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--inputs", type=FILE, help="NumPy file (.npz) with all inputs.")
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    multiple=True,
    help="Threads within one operator; may be repeated.",
)
@click.option(
    "--provider",
    multiple=True,
    help="Provider of ONNX Runtime: cpu, cuda, ...; may be repeated.",
)
@click.option(
    "--seconds",
    type=Seconds(min=0.0),
    default=1.0,
    show_default=True,
    help="Time of the runs of each session.",
)
@with_json
def bench(
    files: tuple[Path, ...],
    inputs: Path | None,
    threads: tuple[int, ...],
    provider: tuple[str, ...],
    seconds: float,
    as_json: bool,
) -> None:
    """Measure the latency of ONNX files.

    Each file runs in ONNX Runtime with each number of threads on each provider, in turns, on given
    or sampled inputs. The table has the median, the percentiles 90 and 99 and the least time of a
    run.
    """
    from pytensor_onnx.cli.terminal import latency_lines, latency_table
    from pytensor_onnx.exporting.files.file_latency import measure_latency
    from pytensor_onnx.graph.model_reading import external_bytes

    # Unreadable models and missing weights are errors of input, before the runtime refuses them.
    for file in files:
        external_bytes(file)
    with progress_bar("measuring") as progress:
        found = measure_latency(
            list(files),
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


@click.command
@with_file
@click.option(
    "--timeout",
    type=Seconds(min=0.1),
    default=60.0,
    show_default=True,
    help="Seconds after which the verification ends.",
)
@with_json
def verify(file: Path, timeout: float, as_json: bool) -> None:
    """Check and run an ONNX file.

    It runs on sampled inputs. Where the file has test vectors, which export --vectors stores, its
    results are compared with those of PyTensor. The file runs in a separate process with a time
    limit and, on Linux, a memory limit.
    """
    from pytensor_onnx.exporting.files.file_verification import verify_file_apart

    started = time.perf_counter()
    with working("verifying"):
        outcome = verify_file_apart(file, timeout=timeout)
    seconds = round(time.perf_counter() - started, 2)
    if as_json:
        result = {"file": str(file), "verified": outcome.error is None, "seconds": seconds}
        print_json({**result, **asdict(outcome)})
        raise click.exceptions.Exit(0 if outcome.error is None else 1)
    show(*(f"ok: {line}" for line in outcome.steps))
    if outcome.error is not None:
        raise VerificationError(outcome.error)
    show(f"{file} verified in {seconds:.2f} s")


@click.command
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@with_json
def diff(first: Path, second: Path, as_json: bool) -> None:
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
    raise click.exceptions.Exit(1 if found else 0)


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


@click.command
@with_file
@click.option("--output", "-o", type=NEW_PATH, help="File to write. [default: FILE.TARGET.onnx]")
@with_target
@with_precision
@click.option(
    "--always", is_flag=True, help="Write the optimized file also where the given one is better."
)
@with_json
def optimize(
    file: Path,
    output: Path | None,
    target: str,
    precision: str | None,
    always: bool,
    as_json: bool,
) -> None:
    """Optimize an ONNX file for a target.

    A file of any exporter is imported as a PyTensor graph and exported again. Results, latency in
    ONNX Runtime, size and nodes of both files are compared. For the target onnxruntime in the
    precision of the file, the better one is written: the faster, of two as fast the smaller.
    """
    from pytensor_onnx.cli.inspection import inspect_file
    from pytensor_onnx.cli.terminal import comparison_table
    from pytensor_onnx.exporting.requests.output_names import check_file

    path = output or file.with_name(f"{file.stem}.{target}.onnx")
    check_file(path, "--output")
    given = {"precision": precision} if precision else {}
    with working("optimizing"):
        from pytensor_onnx import optimize_onnx
        from pytensor_onnx.exporting.files.optimized_files import compare_optimized

        program = optimize_onnx(file, target=target, **given)
        with TemporaryDirectory() as folder:
            found = compare_optimized(file, program.save(Path(folder) / "optimized.onnx"))
        is_kept = not (always or precision or target != "onnxruntime" or found.is_better)
        if is_kept:
            _copy(file, path)
        else:
            program.save(path)
    changes = [str(change) for change in program.changes]
    if as_json:
        before, after = asdict(inspect_file(file)), asdict(inspect_file(path))
        comparison = {**asdict(found), "kept": is_kept}
        print_json({"before": before, "after": after, "changes": changes, "comparison": comparison})
        return
    show(
        *(f"changed: {change}" for change in changes),
        comparison_table(found),
        f"wrote {path}, a copy of {file}, which is better; --always writes the other"
        if is_kept
        else f"wrote {path}: {program.verification}",
    )


def _copy(file: Path, path: Path) -> None:
    """Copy a model, with weights in one file beside it where it has files of weights."""
    import onnx_ir as ir

    from pytensor_onnx.graph.model_reading import external_bytes

    if external_bytes(file):
        ir.save(ir.load(file), path, external_data=f"{path.name}.data")
    elif not (path.exists() and path.samefile(file)):
        copyfile(file, path)
