"""Commands of the command line."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pytensor_onnx._version import __version__
from pytensor_onnx.cli.tables import digits_table, inspection_tables, latency_table
from pytensor_onnx.cli.terminal import plain
from pytensor_onnx.errors import PyTensorONNXError, RunError, VerificationError
from pytensor_onnx.exporting.requests.paths import check_file

app = typer.Typer(
    help="Export PyTensor graphs to ONNX, and inspect ONNX files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
demo = typer.Typer(help="Small complete examples.", no_args_is_help=True)
app.add_typer(demo, name="demo")

File = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="An ONNX file.")
]
# The base class of typer's own errors, which typer exports only by its subclasses.
_TyperError: type[Any] = typer.BadParameter.__mro__[2]
RuntimeSource = Literal["npm", "cdn"]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pytensor-onnx {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Export PyTensor graphs to ONNX, and inspect ONNX files."""


@demo.command()
def digits(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "digits.onnx"
    ),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 40,
) -> None:
    """Train a network on handwritten digits, export it, and run the file in ONNX Runtime."""
    from pytensor_onnx.cli.demo import run_digits

    check_file(output, "--output")
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
    console.print(plain(f"wrote {result.path}: {result.verification}"))


@app.command()
def inspect(file: File, as_json: AsJson = False) -> None:
    """Show inputs, outputs, state, operators, functions and sizes of an ONNX file."""
    from pytensor_onnx.cli.inspection import inspect_file

    found = inspect_file(file)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    console = Console()
    for table in inspection_tables(found):
        console.print(table)


@app.command()
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
        typer.echo(json.dumps({"file": str(file), **asdict(latency)}, indent=2))
        return
    Console().print(latency_table(str(file), latency))


@app.command()
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
        typer.echo(json.dumps({**result, **asdict(outcome)}, indent=2))
        raise typer.Exit(0 if outcome.error is None else 1)
    console = Console()
    for line in outcome.steps:
        console.print(plain(f"ok: {line}"))
    if outcome.error is not None:
        raise VerificationError(outcome.error)
    console.print(plain(f"{file} verified in {seconds:.2f} s"))


@app.command()
def ops(
    name: Annotated[str | None, typer.Argument(help="Part of the name of an operation.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show what is not covered as well.")
    ] = False,
    kernels: Annotated[
        bool,
        typer.Option(
            "--kernels", help="Show the operators and functions of the native library instead."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the operations of PyTensor that are covered, with their tested dtypes and ranks."""
    from pytensor_onnx.cli.coverage import describe_row, load_coverage, select

    if kernels:
        _print_kernels(name or "", as_json)
        return
    rows, reasons = select(load_coverage(), name)
    if not rows and not reasons:
        raise PyTensorONNXError(f"PyTensor has no operation whose name has {name!r} in it")
    shown = reasons if everything or name else {}
    if as_json:
        covered = [asdict(row) for row in rows]
        typer.echo(json.dumps({"covered": covered, "not_covered": shown}, indent=2))
        return
    lines = [describe_row(row) for row in rows]
    lines += [f"{key.removeprefix('pytensor.')}: not covered; {why}" for key, why in shown.items()]
    _print_wrapped(lines)


def _print_kernels(part: str, as_json: bool) -> None:
    """Print the operators and functions of the native library that have a text in their name."""
    from pytensor_onnx import native
    from pytensor_onnx.kernels.kernel_coverage import covered_operators

    if native.library() is None:
        raise PyTensorONNXError("the package was built without a C compiler: it has no kernels")
    wanted = part.lower()
    operators = {k: v for k, v in covered_operators().items() if wanted in k.lower()}
    functions = [name for name in native.function_kernels() if wanted in name.lower()]
    if as_json:
        typer.echo(json.dumps({"operators": operators, "functions": functions}, indent=2))
        return
    _print_wrapped(
        [
            *(
                f"{k}: {', '.join(dtypes) or 'the dtypes of its bodies'}"
                for k, dtypes in operators.items()
            ),
            *(f"{name}: a function" for name in functions),
        ]
    )


def _print_wrapped(lines: Sequence[str]) -> None:
    console = Console()
    for line in lines:
        # Output to a pipe has one line for each operation, of any length.
        wrapped = textwrap.wrap(line, console.width, subsequent_indent="    ")
        typer.echo("\n".join(wrapped) if console.is_terminal else line)


@app.command()
def web(
    model: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("site"),
    page: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="YAML file: title, text, inputs, outputs."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="First state of a model that updates one."),
    ] = None,
    runtime: Annotated[
        RuntimeSource, typer.Option(help="npm copies ONNX Runtime Web, cdn links a public host.")
    ] = "npm",
    webgpu: Annotated[bool, typer.Option(help="Use WebGPU where browser and model can.")] = False,
    serve: Annotated[bool, typer.Option(help="Open the page on this machine.")] = False,
    port: Annotated[int, typer.Option(help="Port for --serve.")] = 8000,
) -> None:
    """Make a web page around a model that runs it in the browser, without a server."""
    from pytensor_onnx.cli.inspection import read_model
    from pytensor_onnx.web.description import read_description
    from pytensor_onnx.web.server import ADDRESS, make_server
    from pytensor_onnx.web.site import build_site

    read_model(model)
    folder = build_site(
        model,
        output,
        page=read_description(page) if page else None,
        runtime=runtime,
        webgpu=webgpu,
        state=state,
    )
    typer.echo(f"wrote {folder}: copy it to any web server, or see it by --serve")
    described = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    if any(value["dtype"] == "float64" for value in described["inputs"] + described["outputs"]):
        typer.echo('its numbers are float64: target="web" exports float32, half as large')
    if serve:
        try:
            opened = make_server(folder, port)
        except OSError as error:
            reason = f"port {port} cannot be opened, name another by --port: {error}"
            raise PyTensorONNXError(reason) from None
        with opened as server:
            typer.echo(f"serving http://{ADDRESS}:{server.server_address[1]}/, Ctrl-C ends it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                typer.echo("ended")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors of input end it with one line and status 2.

    A file that was read, but does not run or gives other results, ends it with status 1.
    """
    try:
        sys.exit(app(args=arguments, standalone_mode=False) or 0)
    except typer.Abort:
        sys.exit(1)
    except (RunError, VerificationError) as error:
        _print_error(str(error))
        sys.exit(1)
    except (PyTensorONNXError, OSError) as error:
        _print_error(str(error))
        sys.exit(2)
    except _TyperError as error:
        # It is empty where typer has printed the help.
        if error.format_message():
            _print_error(error.format_message())
        sys.exit(2)


def _print_error(text: str) -> None:
    Console(stderr=True).print(plain(f"error: {text}"), soft_wrap=True)


if __name__ == "__main__":
    main()
