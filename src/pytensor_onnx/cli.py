"""The command line: ``pytensor-onnx demo``, ``inspect``, ``verify`` and ``ops``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from pytensor_onnx.errors import PyTensorONNXError

if TYPE_CHECKING:
    import onnx_ir as ir

    from pytensor_onnx.demo import DigitsResult

app = typer.Typer(
    help="Export PyTensor graphs to ONNX, and look into ONNX files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
demo = typer.Typer(help="Small complete examples.", no_args_is_help=True)
app.add_typer(demo, name="demo")

File = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="An ONNX file.")
]


@demo.command()
def digits(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "digits.onnx"
    ),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 40,
) -> None:
    """Train a network on handwritten digits, export it, and run the file in ONNX Runtime."""
    from pytensor_onnx.demo import run_digits

    console = Console()
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs, loss {task.fields[loss]}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=epochs, loss="…")

        def show(done: int, loss: float) -> None:
            progress.update(task, completed=done, loss=f"{loss:.4f}", refresh=done == epochs)

        result = run_digits(output, epochs=epochs, on_epoch=show)
    console.print(digits_table(result))
    console.print(Text(f"wrote {result.path}: {result.verification}"))


@app.command()
def inspect(file: File) -> None:
    """Show inputs, outputs, operators, functions and sizes of an ONNX file."""
    from pytensor_onnx.program import describe, weight_bytes
    from pytensor_onnx.report import function_sizes, operator_counts

    model = _read(file)
    graph = model.graph
    counts = operator_counts(model)
    given = [describe(v) for v in graph.inputs if v.name not in graph.initializers]
    defaults = [f"{describe(v)}, with a default" for v in graph.inputs if v.is_initializer()]
    opsets = ", ".join(f"{domain or 'onnx'} {v}" for domain, v in graph.opset_imports.items())

    console = Console()
    interface = [
        ("inputs", "\n".join([*given, *defaults])),
        ("outputs", "\n".join(map(describe, graph.outputs))),
        ("operator sets", f"{opsets}; IR version {model.ir_version}"),
        ("made by", f"{model.producer_name or '?'} {model.producer_version or ''}".strip()),
        ("nodes", f"{counts.total():,}"),
        ("constants", f"{len(graph.initializers):,}, {weight_bytes(model):,} bytes"),
        ("file size", f"{file.stat().st_size:,} bytes"),
    ]
    console.print(_table(str(file), "", "", rows=interface))
    console.print(_table("operators", "operator", "count", rows=_rows(counts.most_common())))
    if model.functions:
        console.print(_table("functions", "function", "nodes", rows=_rows(function_sizes(model))))


@app.command()
def verify(file: File) -> None:
    """Check an ONNX file, load it into ONNX Runtime, and run it on sampled inputs."""
    from pytensor_onnx.verification import verify_file

    _read(file)
    started = time.perf_counter()
    console = Console()
    for line in verify_file(file):
        console.print(Text(f"ok: {line}"))
    console.print(Text(f"{file} verified in {time.perf_counter() - started:.2f} s"))


@app.command()
def ops(
    name: Annotated[str | None, typer.Argument(help="Part of the name of an operation.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show what is not covered as well.")
    ] = False,
) -> None:
    """Show which operations of PyTensor are covered, and what the tests showed of them."""
    from pytensor_onnx.coverage import cells, load_coverage, select

    rows, reasons = select(load_coverage(), name)
    console = Console()
    columns = ("dtypes", "ranks", "shapes", "lowering", "error", "limits")
    table = Table("operation", *columns, title="covered", title_justify="left")
    for row in rows:
        table.add_row(*map(Text, (row.name.rpartition(".")[2], *cells(row))))
    if rows:
        console.print(table)
    if reasons and (everything or name):
        short = [(key.removeprefix("pytensor."), reason) for key, reason in reasons.items()]
        console.print(_table("not covered", "operation", "reason", rows=short))
    if not rows and not reasons:
        raise PyTensorONNXError(f"PyTensor has no operation whose name has {name!r} in it")


def digits_table(result: DigitsResult) -> Table:
    """Return the table of what the demo measured."""
    equal = int((result.predictions == result.runtime_predictions).sum())
    largest = float(abs(result.probabilities - result.runtime_probabilities).max())
    table = _table("handwritten digits", "", "PyTensor", "ONNX Runtime")
    table.add_row(
        "accuracy on the test images",
        f"{(result.predictions == result.labels).mean():.2%}",
        f"{(result.runtime_predictions == result.labels).mean():.2%}",
    )
    n_images = len(result.labels)
    for name, value in (
        ("equal predictions", f"{equal} of {n_images}"),
        ("largest difference of a probability", f"{largest:.1e}"),
        ("operators", ", ".join(result.operators)),
        ("nodes", str(len(result.operators))),
        ("file size", f"{result.path.stat().st_size:,} bytes"),
        ("training", f"{result.train_seconds:.2f} s"),
        ("export and verification", f"{result.export_seconds:.2f} s"),
        ("latency, one image", f"{1e6 * result.single_seconds:.0f} µs"),
        (f"latency, {n_images} images", f"{1e6 * result.batch_seconds:.0f} µs"),
    ):
        table.add_row(name, "", value)
    return table


def _table(title: str, *columns: str, rows: Sequence[tuple[str, str]] = ()) -> Table:
    table = Table(*columns, title=title, title_justify="left", show_header=any(columns))
    for column in table.columns[1:]:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _read(file: Path) -> ir.Model:
    import onnx_ir as ir

    try:
        model = ir.load(file)
        _ = model.graph.opset_imports
    except Exception as error:
        raise PyTensorONNXError(f"{file} cannot be read as an ONNX model: {error}") from error
    return model


def _rows(counts: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in counts]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors of the package end it with their message alone."""
    try:
        app(args=arguments)
    except PyTensorONNXError as error:
        Console(stderr=True).print(Text(f"error: {error}"))
        sys.exit(1)


if __name__ == "__main__":
    main()
