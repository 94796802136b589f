"""The command ``export``: an object of a Python module as an ONNX file."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pytensor_onnx.cli.arguments_of_commands import (
    NEW_PATH,
    with_json,
    with_precision,
    with_target,
)
from pytensor_onnx.cli.terminal import print_json, show
from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.progress import working


@click.command
@click.argument("name", metavar="MODULE:NAME")
@click.option("--output", "-o", type=NEW_PATH, help="File to write. [default: NAME.onnx]")
@click.option(
    "--dynamic",
    metavar="INPUT:AXIS=NAME",
    multiple=True,
    help="Leave the size of an axis open, and name it; may be repeated.",
)
@with_target
@click.option(
    "--runtime-version", help="Lowest version of ONNX Runtime for the file, such as 1.20."
)
@with_precision
@click.option(
    "--opset",
    type=click.IntRange(min=1),
    help="Version of the operator set of ONNX. [default: that of the target]",
)
@click.option(
    "--vectors",
    is_flag=True,
    help="Store inputs and PyTensor's results in the file, for verify.",
)
@with_json
def export(
    name: str,
    output: Path | None,
    dynamic: tuple[str, ...],
    target: str,
    runtime_version: str | None,
    precision: str | None,
    opset: int | None,
    vectors: bool,
    as_json: bool,
) -> None:
    """Export a graph or model of a Python module.

    MODULE:NAME is a Python module and an object in it, such as package.module:name: a tuple of
    inputs and outputs, an output, a compiled PyTensor function, a PyMC model or a network of
    pytensor-ml. The file is compared with PyTensor before it is written. Modules of the present
    folder are found.

    Example: pytensor-onnx export mymodule:graph --dynamic x:0=batch
    """
    from pytensor_onnx.exporting.requests.output_names import check_file

    file = output or Path(f"{name.rpartition(':')[2].rpartition('.')[2] or 'model'}.onnx")
    check_file(file, "--output")
    options: dict[str, Any] = {"target": target, "dynamic_axes": read_axes(dynamic)}
    options |= {"precision": precision, "runtime_version": runtime_version}
    options |= {"opset_version": opset}
    given = {key: value for key, value in options.items() if value}
    with working("exporting"):
        # Graphs of the module may use mode ONNX.
        from pytensor_onnx.cli.inspection import export_object, named_object

        program = export_object(named_object(name), **given)
        program.save(file, vectors=vectors)
    if as_json:
        print_json(_described(program, file, vectors))
        return
    show(f"{program!r}", *(f"changed: {change}" for change in program.changes))
    show(f"wrote {file}: {program.verification}")


def _described(program: Any, file: Path, vectors: bool) -> dict[str, Any]:
    from pytensor_onnx.exporting.requests.descriptions import describe

    return {
        "file": str(file),
        "inputs": [describe(value) for value in program.inputs],
        "outputs": [describe(value) for value in program.model.graph.outputs],
        "target": program.target,
        "changes": [str(change) for change in program.changes],
        "verification": {**asdict(program.verification), "losses": list(map(str, program.losses))},
        "vectors": vectors,
    }


def read_axes(texts: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the names of axes in texts such as ``x:0=batch``.

    Raises
    ------
    ArgumentError
        If a text has another form.

    Examples
    --------
    >>> read_axes(["x:0=batch", "x:1=time"])
    {'x': {0: 'batch', 1: 'time'}}
    """
    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        place, _, name = text.partition("=")
        value, _, axis = place.rpartition(":")
        if not (value and axis.isdecimal() and name):
            raise ArgumentError(f"--dynamic {text}: write an input, an axis and a name, x:0=batch")
        axes.setdefault(value, {})[int(axis)] = name
    return axes
