"""Entry point of the command line, which loads PyTensor only where a command has a graph.

``import pytensor_onnx`` imports PyTensor and registers mode ``"ONNX"`` with it, unless this module
was imported before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; see `pytensor_onnx.cli.app.main`."""
    try:
        from pytensor_onnx.cli.app import main as run

        run(arguments)
    except KeyboardInterrupt:
        # Ctrl-C while modules are imported.
        sys.exit(130)
