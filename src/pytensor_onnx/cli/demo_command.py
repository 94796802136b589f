"""The command ``demo``: small complete examples."""

from pathlib import Path

import click

from pytensor_onnx.cli.arguments_of_commands import NEW_PATH, with_json
from pytensor_onnx.cli.terminal import print_json, show


@click.command
@click.option(
    "--output",
    "-o",
    type=NEW_PATH,
    default="digits.onnx",
    show_default=True,
    help="File to write.",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Passes over the training images.",
)
@with_json
def digits(output: Path, epochs: int, as_json: bool) -> None:
    """Train, export and run a network for handwritten digits."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pytensor_onnx.cli.demo import run_digits
    from pytensor_onnx.cli.terminal import digits_table
    from pytensor_onnx.exporting.requests.output_names import check_file
    from pytensor_onnx.late_names import require

    require("ml", "the demo")
    check_file(output, "--output")
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs, loss {task.fields[loss]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=epochs, loss="…")

        def advance(done: int, loss: float) -> None:
            progress.update(task, completed=done, loss=f"{loss:.4f}", refresh=done == epochs)

        result = run_digits(output, epochs=epochs, on_epoch=advance)
    if as_json:
        print_json(result.summary())
        return
    show(digits_table(result), f"wrote {result.path}: {result.verification}")
