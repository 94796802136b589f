"""The native library of kernels, which ONNX Runtime loads."""

from __future__ import annotations

import ctypes
import os
import platform
import secrets
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import onnx_ir as ir
    import onnxruntime

__all__ = ["function_kernels", "library", "register"]

REGION_DOMAIN = "pytensor.kernels"
"""The domain of regions, which a session makes and no file may have."""

_LINE = 64
"""Bytes of a line of the processor's cache."""

_LONGEST_ENTRY = 1000
"""Length of the value of an entry of a session's configuration."""

SWITCH = "PYTENSOR_ONNX_KERNELS"
"""Environment variable: ``0`` switches all kernels off, without an option."""


@cache
def library() -> Path | None:
    """Return the path of the library of kernels, None if it was not built for this machine.

    Any program that runs a file can register it with ONNX Runtime: it has then the kernels of
    functions, and refuses files with regions.

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


@cache
def handle() -> ctypes.CDLL:
    """Return the library as Python calls it; it must exist."""
    opened = ctypes.CDLL(str(library()))
    opened.FunctionKernels.restype = ctypes.c_char_p
    opened.pytensor_onnx_operator.restype = ctypes.c_char_p
    opened.pytensor_onnx_region_key.restype = ctypes.c_char_p
    opened.pytensor_onnx_core_runs.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    opened.pytensor_onnx_time_tape.restype = ctypes.c_char_p
    return opened


def is_on(wanted: bool | None = None) -> bool:
    """Return whether sessions use the kernels: the library exists, and nothing forbids it.

    Parameters
    ----------
    wanted
        The option of a session; None leaves it to the environment variable.
    """
    if wanted is None:
        wanted = os.environ.get(SWITCH, "1") != "0"
    return wanted and library() is not None


def register(options: onnxruntime.SessionOptions, functions: Iterable[str] | None = None) -> None:
    """Register the kernels of functions with the options of a session.

    Parameters
    ----------
    options
        Options of ONNX Runtime.
    functions
        Names of the functions that the model may call, all if None: the runtime takes tens of
        milliseconds for each hundred of them.
    """
    _register(options, entries(functions))


def register_with_regions(
    options: onnxruntime.SessionOptions,
    functions: Iterable[str] | None = None,
    threads: int | None = 1,
) -> None:
    """Register the kernels of functions and regions, for a model that `fuse` has made.

    A region reads and writes memory as its tape says, so a model from outside must never be opened
    with these options. Long steps of regions run in several threads, in one for each processor if
    None.
    """
    in_threads = {"pytensor_onnx.threads": str(threads or processors())}
    _register(options, entries(functions, with_regions=True) | in_threads)


def processors() -> int:
    """Return the number of processors that the process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _register(options: onnxruntime.SessionOptions, configuration: dict[str, str]) -> None:
    for key, text in configuration.items():
        options.add_session_config_entry(key, text)
    options.register_custom_ops_library(str(library()))


def entries(functions: Iterable[str] | None, with_regions: bool = False) -> dict[str, str]:
    """Return the entries of a session's configuration for its functions and its regions."""
    names = "".join(f"{name}," for name in functions or ())
    is_short = functions is not None and len(names) < _LONGEST_ENTRY
    made = {"pytensor_onnx.functions": names} if is_short else {}
    return made | ({"pytensor_onnx.regions": _region_key()} if with_regions else {})


@cache
def _region_key() -> str:
    """Return the key by which sessions of this process have regions; no file can know it."""
    return handle().pytensor_onnx_region_key(secrets.token_hex(16).encode()).decode()


def refuse_regions(model: ir.Model) -> None:
    """Refuse a model from outside that has regions, in graphs, bodies or functions.

    Raises
    ------
    PyTensorONNXError
        If it has some: only sessions make them, of their own models.
    """
    from pytensor_onnx.errors import PyTensorONNXError
    from pytensor_onnx.graph.traversal import nodes_of_model

    # The quantisation tools of ONNX Runtime import the domains of all registered libraries.
    if any(node.domain == REGION_DOMAIN for node in nodes_of_model(model)):
        raise PyTensorONNXError(
            f"the model has operators of {REGION_DOMAIN}, which only sessions make: "
            "export the graph again"
        )


def functions_of(model: ir.Model) -> list[str]:
    """Return the names of functions that a model calls, for which the library may have kernels."""
    from pytensor_onnx.graph.traversal import STANDARD_DOMAIN, nodes_of_model

    found = (node.op_type for node in nodes_of_model(model) if node.domain == STANDARD_DOMAIN)
    return list(dict.fromkeys(found))


def function_kernels() -> list[str]:
    """Return the names of the functions for which the library has kernels, empty without one.

    Operands of other ranks, and sizes that are known, make other names of the same functions:
    ``Cholesky_lower_float64_batch1`` is that of a batch of matrices.

    Examples
    --------
    >>> from pytensor_onnx import native
    >>> not native.library() or "Cholesky_lower_float64" in native.function_kernels()
    True
    """
    if library() is None:
        return []
    return sorted(name for name in handle().FunctionKernels().decode().split(",") if name)


def has_kernel(function: str) -> bool:
    """Return whether the library has a kernel for a function of this name.

    Examples
    --------
    >>> from pytensor_onnx import native
    >>> not native.library() or native.has_kernel("Cholesky_lower_float64_batch1")
    True
    >>> native.has_kernel("Loop")
    False
    """
    return library() is not None and bool(handle().pytensor_onnx_has_kernel(function.encode()))


class Array(ctypes.Structure):
    """An array as the library reads it: `Array` of native/kernel.h."""

    _fields_ = (
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("size", ctypes.c_int64),
        ("shape", ctypes.c_int64 * 8),
        ("data", ctypes.c_void_p),
    )


def aligned(value: np.ndarray) -> np.ndarray:
    """Return a contiguous copy that begins at a line of the processor's cache.

    Vectors of the library cross no lines in it, which makes products a quarter faster.

    Examples
    --------
    >>> import numpy as np
    >>> aligned(np.arange(6.0).reshape(2, 3).T).ctypes.data % 64
    0
    """
    import numpy as np

    room = np.empty(value.nbytes + _LINE, "uint8")
    first = -room.ctypes.data % _LINE
    copy = room[first : first + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def describe(array: Array, value: np.ndarray) -> None:
    """Write type, shape and address of a contiguous array, which the caller keeps."""
    import onnx

    array.dtype = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    array.rank, array.size, array.data = value.ndim, value.size, value.ctypes.data
    array.shape[: value.ndim] = value.shape


def time_tape(
    tape: bytes, inputs: Sequence[np.ndarray], held: Sequence[bool], instructions: int, calls: int
) -> tuple[float, list[float], list[int], int]:
    """Measure a tape that a session has made, and its instructions.

    Parameters
    ----------
    tape
        The tape.
    inputs
        Contiguous arrays of its inputs.
    held
        Whether each of them is a constant of the model.
    instructions
        Number of the instructions of its first block.
    calls
        Number of runs that are measured.

    Returns
    -------
    whole
        Seconds of a call, the least of all.
    seconds
        Those of each instruction that is the first of some that run together.
    first
        The index of that instruction for each, -1 where an instruction takes no time.
    late
        Number of plans that are made in the course of a run.

    Raises
    ------
    RuntimeError
        If the library refuses to run the tape for these inputs, with its reason.
    """
    arrays = (Array * (len(inputs) + 1))()
    inputs = [aligned(x) if is_held else x for x, is_held in zip(inputs, held, strict=True)]
    for array, x in zip(arrays, inputs, strict=False):
        describe(array, x)
    times = (ctypes.c_int64 * (instructions + 1))()
    first, whole, late = (ctypes.c_int * (instructions + 1))(), ctypes.c_int64(), ctypes.c_int()
    problem = handle().pytensor_onnx_time_tape(
        tape,
        ctypes.c_size_t(len(tape)),
        arrays,
        bytes([*held, 0]),
        calls,
        times,
        first,
        ctypes.byref(whole),
        ctypes.byref(late),
    )
    if problem:
        raise RuntimeError(problem.decode())
    seconds = [1e-9 * x for x in times[:-1]]
    return 1e-9 * whole.value, seconds, first[:-1], late.value
