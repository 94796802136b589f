"""The command ``demo``: small complete examples."""

from pathlib import Path
from typing import Annotated

import typer

from pytensor_onnx.cli.arguments_of_commands import AsJson
from pytensor_onnx.cli.terminal import print_json, show


def digits(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "digits.onnx"
    ),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 40,
    as_json: AsJson = False,
) -> None:
    """Train, export and run a network for handwritten digits."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pytensor_onnx.cli.demo import run_digits
    from pytensor_onnx.cli.tables import digits_table
    from pytensor_onnx.exporting.requests.paths import check_file
    from pytensor_onnx.extras import require

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
