"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="An ONNX file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Target = Annotated[
    str,
    typer.Option(
        help="Runtime: onnxruntime, web, webgpu, node or standard.",
        autocompletion=lambda: ["onnxruntime", "web", "webgpu", "node", "standard"],
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="float32 or float16 for all wider floats; float64 keeps all.",
        autocompletion=lambda: ["float64", "float32", "float16"],
    ),
]
