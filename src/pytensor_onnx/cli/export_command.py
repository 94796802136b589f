"""Commands on objects of Python modules: ``export`` to a file, and ``calibrate``."""

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


@click.command
@click.argument("name", metavar="MODULE:NAME")
@click.option(
    "--simulations", type=click.IntRange(min=1), default=200, show_default=True, help="Simulations."
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=99,
    show_default=True,
    help="Posterior draws that parameters are ranked among.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="Steps of the warm-up of each simulation.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all numbers.")
@with_json
def calibrate(
    name: str, simulations: int, draws: int, warmup: int, seed: int, as_json: bool
) -> int:
    """Test a PyMC model and its sampler by simulation-based calibration.

    MODULE:NAME is a Python module and a PyMC model in it. Each simulation draws parameters from the
    prior and data from them, and ranks the parameters among draws of the posterior of these data.
    The ranks are equally frequent where model and sampler agree: the table has the p-values of a
    chi-squared test. The exit code is 1 if one is too small.
    """
    with working("loading"):
        from pytensor_onnx.cli.inspection import named_object
        from pytensor_onnx.cli.terminal import calibration_table
        from pytensor_onnx.pymc import calibrate as run

        model = named_object(name)
    found = run(model, simulations=simulations, draws=draws, warmup=warmup, seed=seed)
    if as_json:
        p_values = {key: x.tolist() for key, x in found.p_values.items()}
        told = {"failed": found.failed, "divergences": found.divergences}
        print_json({"p_values": p_values, **told, "is_calibrated": found.is_calibrated})
    else:
        verdict = "equally frequent" if found.is_calibrated else "NOT equally frequent"
        lines = [f"{found.divergences:,} divergences; ranks are {verdict}"]
        if found.failed:
            count = f"{len(found.failed):,} of {simulations:,} simulations"
            lines.insert(0, f"{count} have data or a start that are not finite")
        show(calibration_table(found), *lines)
    return int(not found.is_calibrated)
