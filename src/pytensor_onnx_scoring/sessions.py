"""Sessions of ONNX Runtime, of which a process has one for each file and its options."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_sessions: dict[tuple[Any, ...], InferenceSession] = {}
_lock = Lock()


def session_of(
    model: str | bytes, threads: int, providers: Sequence[str] | None
) -> InferenceSession:
    """Return the session of a file, opened once for each process and state of the file."""
    # A forked process must not use the threads of its parent.
    key = (os.getpid(), _identity(model), threads, repr(list(providers or ())))
    with _lock:
        if key not in _sessions:
            _sessions[key] = _open(model, threads, providers)
        return _sessions[key]


def _identity(model: str | bytes) -> tuple[Any, ...]:
    if isinstance(model, bytes):
        return (hashlib.sha256(model).digest(),)
    found = Path(model).stat()
    return str(Path(model).resolve()), found.st_mtime_ns, found.st_size


def _open(model: str | bytes, threads: int, providers: Sequence[str] | None) -> InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        model, options, providers=list(providers or ["CPUExecutionProvider"])
    )
