"""Kernels of ONNX Runtime for the functions in files of pytensor-onnx."""

import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["library", "register"]


def library() -> str:
    """Return the path of the library for ``register_custom_ops_library``, of all languages.

    Raises
    ------
    OSError
        If the package has none for this machine.
    """
    machine = platform.machine().lower()
    found = sorted(Path(__file__).parent.glob(f"kernels-{sys.platform}-{machine}.*"))
    if not found:
        raise OSError(f"there are no kernels for {sys.platform} on {machine}")
    return str(found[0])


def register(options: Any, functions: Iterable[str] = ()) -> None:
    """Register the kernels with the options of a session.

    Parameters
    ----------
    options
        ``onnxruntime.SessionOptions``.
    functions
        Names of the functions that the model calls, such as ``GammaLn_float64``: the runtime takes
        0.03 to 0.1 ms to register each. All if empty.
    """
    names = "".join(f"{name}," for name in functions)
    if names and len(names) < 1000:
        options.add_session_config_entry("pytensor_onnx.functions", names)
    options.register_custom_ops_library(library())
