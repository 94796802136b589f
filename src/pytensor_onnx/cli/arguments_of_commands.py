"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="An ONNX file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
