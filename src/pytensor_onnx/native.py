"""The native library of kernels, which ONNX Runtime loads."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path

__all__ = ["library"]

SWITCH = "PYTENSOR_ONNX_KERNELS"
"""Environment variable that switches the kernels off if it is ``0``."""


@cache
def library() -> Path | None:
    """Return the path of the library of kernels, None if it was not built for this machine.

    Any program that runs a file can register it with ONNX Runtime.

    Examples
    --------
    >>> import onnxruntime
    >>> from pytensor_onnx import native
    >>> options = onnxruntime.SessionOptions()
    >>> if native.library():
    ...     options.register_custom_ops_library(str(native.library()))
    """
    folder = Path(__file__).parent / "kernels"
    pattern = f"kernels-{sys.platform}-{platform.machine().lower()}.*"
    return next(iter(folder.glob(pattern)), None)


def is_on() -> bool:
    """Return whether sessions use the kernels: the library exists, and no variable forbids it."""
    return os.environ.get(SWITCH, "1") != "0" and library() is not None
