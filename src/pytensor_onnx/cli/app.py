"""The command line: its commands, and the end of each with a status."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence

import click
from click.shell_completion import get_completion_class

from pytensor_onnx._version import __version__
from pytensor_onnx.cli.catalogue_command import catalogue
from pytensor_onnx.cli.coverage import ops
from pytensor_onnx.cli.demo_command import digits
from pytensor_onnx.cli.export_command import calibrate, export
from pytensor_onnx.cli.file_commands import bench, diff, inspect, optimize, verify
from pytensor_onnx.cli.folder_commands import serve_config, web
from pytensor_onnx.cli.terminal import printable
from pytensor_onnx.errors import PyTensorONNXError, RunError, VerificationError, did_you_mean

PROGRAM = "pytensor-onnx"
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""
TRACEBACK = "PYTENSOR_ONNX_TRACEBACK"
"""Environment variable that shows the traceback of an unexpected error, if it is ``1``."""

SHELLS = ("bash", "zsh", "fish", "powershell")


def _print_completion(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    if not shell or context.resilient_parsing:
        return
    completion = get_completion_class(shell)
    if completion is None:
        raise click.ClickException(f"completion in {shell} needs click 8.5: pip install -U click")
    print(completion(app, {}, PROGRAM, "_PYTENSOR_ONNX_COMPLETE").source())
    context.exit()


class _Commands(click.Group):
    """Commands whose similar names a wrong name is answered by."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            names = self.list_commands(ctx)
            hint = did_you_mean(name, names, f"there are {', '.join(names)}")
            ctx.fail(f"No such command {name!r}: {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    epilog="Exit codes: 0 success, 1 the file fails or differs, 2 wrong arguments or no ONNX file.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(
    __version__, prog_name=PROGRAM, message="%(prog)s %(version)s", help="Show the version."
)
@click.option(
    "--show-completion",
    type=click.Choice(SHELLS),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the script that completes commands and options in a shell.",
)
def app() -> None:
    """Export PyTensor graphs to ONNX; compare, verify, measure and optimize ONNX files."""


@app.group(cls=_Commands)
def demo() -> None:
    """Small complete examples."""


demo.add_command(digits)
_COMMANDS = (
    *(export, inspect, diff, verify, bench, optimize, ops, web, calibrate, catalogue),
    serve_config,
)
for _command in _COMMANDS:
    app.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors of input end it with one line and status 2.

    A file that was read, but does not run or gives other results, ends it with status 1, and so
    does an error that the program does not expect.
    """
    _print_log("onnx_ir")
    try:
        with warnings.catch_warnings():
            # One line, without the line of code that caused it.
            warnings.showwarning = lambda message, *_, **__: _print_line(f"warning: {message}")
            status = app.main(arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.exit(status or 0)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as help_of_group:
        print(help_of_group.format_message())
        sys.exit(2)
    except click.ClickException as error:
        _print_error(error.format_message())
        sys.exit(2)
    except (RunError, VerificationError) as error:
        _print_error(str(error))
        sys.exit(1)
    except PyTensorONNXError as error:
        _print_error(str(error))
        sys.exit(2)
    except OSError as error:
        is_of_file = error.filename is not None and error.strerror
        _print_error(f"{error.filename}: {error.strerror}" if is_of_file else str(error))
        sys.exit(2)
    except MemoryError as error:
        _print_error(f"the memory does not suffice{f': {error}' if str(error) else ''}")
        sys.exit(1)
    except Exception as error:
        if os.environ.get(TRACEBACK) == "1":
            raise
        text = " ".join(str(error).split())
        _print_error(f"{type(error).__name__}: {text} ({TRACEBACK}=1 shows the traceback)")
        sys.exit(1)


class _Lines(logging.Handler):
    """Prints messages of a log as warnings, each once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        if text not in self.printed:
            self.printed.add(text)
            _print_line(f"warning: {text}")


def _print_log(name: str) -> None:
    """Print the log records of a package in the form of this program's warnings."""
    logger = logging.getLogger(name)
    logger.handlers = [_Lines()]
    logger.propagate = False


def _print_error(text: str) -> None:
    _print_line(f"error: {text}")


def _print_line(text: str) -> None:
    print(printable(text), file=sys.stderr)


if __name__ == "__main__":
    main()
