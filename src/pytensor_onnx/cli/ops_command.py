"""The command ``ops``: the operations of PyTensor that are covered."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import NoReturn

import click

from pytensor_onnx.cli.arguments_of_commands import with_json
from pytensor_onnx.cli.terminal import print_json, terminal_width
from pytensor_onnx.errors import PyTensorONNXError, did_you_mean


@click.command
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Show what is not covered as well.")
@click.option(
    "--kernels",
    is_flag=True,
    help="Show the operators and functions of the native library instead.",
)
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@with_json
def ops(name: str | None, everything: bool, kernels: bool, markdown: bool, as_json: bool) -> None:
    """List the covered operations of PyTensor.

    Each line has the dtypes, ranks and shapes with which an operation is tested, its form in ONNX,
    the largest relative error, and cases that are refused.
    """
    from pytensor_onnx.cli.coverage import describe_row, load_coverage, markdown_lines, select

    if kernels:
        _print_kernels(name or "", as_json)
        return
    coverage = load_coverage()
    rows, reasons = select(coverage, name)
    if not rows and not reasons:
        known = {**coverage.rows, **coverage.uncovered, **coverage.excluded}
        _refuse(str(name), [key.rpartition(".")[2] for key in known], "operation of PyTensor")
    shown = reasons if everything or name else {}
    if as_json:
        covered = [asdict(row) for row in rows]
        print_json({"covered": covered, "not_covered": shown})
        return
    if markdown:
        print("\n".join(markdown_lines(rows, shown)))
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
    if not operators and not functions:
        known = [*covered_operators(), *native.function_kernels()]
        _refuse(part, known, "operator or function of the native library")
    if as_json:
        print_json({"operators": operators, "functions": functions})
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


def _refuse(part: str, known: Sequence[str], kind: str) -> NoReturn:
    """Raise for a text that no name has in it, with the most similar name."""
    names = [name.lower() for name in known]
    hint = did_you_mean(part.lower(), names, "without a name, ops lists all")
    raise PyTensorONNXError(f"no {kind} has {part!r} in its name: {hint}")


def _print_wrapped(lines: Sequence[str]) -> None:
    width = terminal_width()
    for line in lines:
        wrapped = textwrap.wrap(line, width, subsequent_indent="    ") if width else [line]
        print("\n".join(wrapped))
