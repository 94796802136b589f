"""Arguments and options that several commands have."""

from math import isfinite
from pathlib import Path
from typing import Any

import click

FILE: Any = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
"""A file that exists."""
NEW_PATH: Any = click.Path(path_type=Path)
"""A file or folder to write."""


class Seconds(click.FloatRange):
    """A finite number of seconds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail as for a number out of range."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


TARGETS = ("onnxruntime", "web", "webgpu", "node", "portable", "openvino", "tract")

with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
with_target = click.option(
    "--target",
    default="onnxruntime",
    show_default=True,
    shell_complete=lambda *_: list(TARGETS),
    help=f"Runtime: {', '.join(TARGETS[:-1])} or {TARGETS[-1]}.",
)
with_precision = click.option(
    "--precision",
    shell_complete=lambda *_: ["float64", "float32", "float16"],
    help="float32 or float16 for all wider floats; float64 keeps all.",
)


def with_file(command: Any) -> Any:
    """Give a command the argument ``file``, an ONNX file."""
    return click.argument("file", type=FILE)(command)
