"""The command line: its commands, and the end of each with a status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from pytensor_onnx._version import __version__
from pytensor_onnx.cli.demo_command import digits
from pytensor_onnx.cli.export_command import export
from pytensor_onnx.cli.file_commands import bench, diff, inspect, optimize, verify
from pytensor_onnx.cli.ops_command import ops
from pytensor_onnx.cli.serving_command import serve_config
from pytensor_onnx.cli.web_command import web
from pytensor_onnx.errors import PyTensorONNXError, RunError, VerificationError

app = typer.Typer(
    epilog="Exit codes: 0 success, 1 the file fails or differs, 2 wrong arguments or no ONNX file.",
    no_args_is_help=True,
    # Help in the form of rich takes longer to import than all the rest.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
demo = typer.Typer(help="Small complete examples.", no_args_is_help=True, rich_markup_mode=None)
demo.command()(digits)
for command in (export, inspect, diff, verify, bench, optimize, ops, web, serve_config):
    app.command()(command)
app.add_typer(demo, name="demo")

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""

# The base class of typer's own errors, which typer exports only by its subclasses.
_TyperError: type[Any] = typer.BadParameter.__mro__[2]


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
    """Export PyTensor graphs to ONNX; compare, verify, measure and optimize ONNX files."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors of input end it with one line and status 2.

    A file that was read, but does not run or gives other results, ends it with status 1.
    """
    try:
        sys.exit(app(args=arguments, prog_name="pytensor-onnx", standalone_mode=False) or 0)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except (RunError, VerificationError) as error:
        _print_error(str(error))
        sys.exit(1)
    except (PyTensorONNXError, OSError) as error:
        _print_error(str(error))
        sys.exit(2)
    except _TyperError as error:
        message = error.format_message()
        # A command without arguments shows its help, as an error of typer's.
        if message.startswith("Usage:"):
            print(message)
        else:
            _print_error(message)
        sys.exit(2)


def _print_error(text: str) -> None:
    from rich.console import Console

    from pytensor_onnx.cli.terminal import plain

    Console(stderr=True).print(plain(f"error: {text}"), soft_wrap=True)


if __name__ == "__main__":
    main()
