"""Sessions of ONNX Runtime, of which a process has one for each file and its options."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pytensor_onnx_scoring.file_kinds import why_no_model
from pytensor_onnx_scoring.problems import ScoringError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_sessions: dict[tuple[Any, ...], tuple[Any, InferenceSession]] = {}
"""For each file and options the state of the file when it was opened, and the session."""

_lock = Lock()

_REGIONS = "pytensor.kernels"
"""The domain of regions, which no file may have."""


def session_of(
    model: str | bytes, threads: int, providers: Sequence[str] | None
) -> InferenceSession:
    """Return the session of a file, opened once for each process and state of the file.

    Raises
    ------
    ScoringError
        If a provider is not there, in whose place the runtime would take the CPU, or the file is
        no ONNX model that the runtime can load.
    """
    name, state = _identity(model)
    # A forked process must not use the threads of its parent.
    key = (os.getpid(), name, threads, repr(list(providers or ())))
    with _lock:
        if key not in _sessions or _sessions[key][0] != state:
            _sessions[key] = state, _open(model, threads, providers)
        return _sessions[key][1]


def _identity(model: str | bytes) -> tuple[Any, Any]:
    """Return the name of a file, and what changes with its contents."""
    if isinstance(model, bytes):
        return hashlib.sha256(model).digest(), None
    found = Path(model).stat()
    return str(Path(model).resolve()), (found.st_mtime_ns, found.st_size)


def _open(model: str | bytes, threads: int, providers: Sequence[str] | None) -> InferenceSession:
    import onnxruntime

    wanted = list(providers or ["CPUExecutionProvider"])
    names = [provider if isinstance(provider, str) else provider[0] for provider in wanted]
    known = onnxruntime.get_available_providers()
    if missing := [name for name in names if name not in known]:
        raise ScoringError(
            f"ONNX Runtime has no {', '.join(missing)} here: choose of {', '.join(known)}"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if names == ["CPUExecutionProvider"] and (library := _kernels()):
        options.register_custom_ops_library(library)
    try:
        return onnxruntime.InferenceSession(model, options, providers=wanted)
    except Exception as error:
        # The library offers no regions to files, so the runtime does not know the operator.
        if f"{_REGIONS}:" in str(error):
            raise ScoringError(
                f"the file has operators of {_REGIONS}, which only sessions of pytensor-onnx "
                "make: export the graph again"
            ) from error
        # Errors of the runtime have no base class of their own.
        name = "the bytes" if isinstance(model, bytes) else model
        if reason := why_no_model(model):
            raise ScoringError(f"{name} cannot be read as an ONNX model: {reason}") from error
        raise ScoringError(f"ONNX Runtime refuses {name}: {error}") from error


def _kernels() -> str | None:
    """Return the library of `pytensor_onnx.native`, None where it is switched off or not built.

    It is found beside this package, since `pytensor_onnx` imports PyTensor.
    """
    if os.environ.get("PYTENSOR_ONNX_KERNELS", "1") == "0":
        return None
    folder = Path(__file__).parents[1] / "pytensor_onnx" / "kernels"
    found = folder.glob(f"kernels-{sys.platform}-{platform.machine().lower()}.*")
    return next(map(str, found), None)
