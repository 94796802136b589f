"""Models as C functions, which samplers call without Python."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime

from pytensor_onnx import native
from pytensor_onnx.errors import RunError
from pytensor_onnx.kernels.graph_scope import constants_of
from pytensor_onnx.kernels.regions import whole_region
from pytensor_onnx.native import Array, aligned, describe
from pytensor_onnx.running.session import Session

DENSITY = ctypes.CFUNCTYPE(
    c_int64, c_uint64, POINTER(c_double), POINTER(c_double), POINTER(c_double), c_void_p
)
"""Type of the C function of a log-density, which nuts-rs calls.

Its arguments are the size of the point, the point, the gradient and the log-density, which it
writes, and the address of two addresses of models: of the log-density, and of other results. It
returns 0, or a reason: positive for a divergence.
"""
EXPANSION = ctypes.CFUNCTYPE(
    c_int64, c_uint64, c_uint64, POINTER(c_double), POINTER(c_double), c_void_p
)
"""Type of the C function from a point to the point and all other results after it.

Its arguments are the size of the point, the number of results with the point, the point, the
results, which it writes, and the address of the two addresses.
"""


class _Settings(ctypes.Structure):
    """How the library opens a model."""

    _fields_ = (
        ("model", c_char_p),
        ("plain", c_char_p),
        ("bytes", c_uint64),
        ("plain_bytes", c_uint64),
        ("tape", c_char_p),
        ("tape_bytes", c_uint64),
        ("operands", POINTER(Array)),
        ("places", POINTER(c_int64)),
        ("entries", POINTER(c_char_p)),
        ("entry_count", c_int64),
        ("threads", c_int64),
        ("inputs", POINTER(c_char_p)),
        ("outputs", POINTER(c_char_p)),
        ("operand_count", c_int64),
        ("input_count", c_int64),
        ("output_count", c_int64),
        ("size", c_int64),
        ("dtype", c_int32),
    )


class CModel:
    """A model that C calls by an address.

    Parameters
    ----------
    session
        The model, in a session of Python; None for a model without results.
    point
        Name of the input that is a vector of floats.
    size
        Size of the point.
    data
        Values of the other inputs.

    Attributes
    ----------
    address
        Its address, which is valid as long as this object lives.
    """

    def __init__(
        self, session: Session | None, point: str, size: int, data: Mapping[str, Any]
    ) -> None:
        opened = _library()
        self._kept: list[Any] = []
        settings, arrays = _Settings(size=size, dtype=_number("float64")), (Array * 1)()
        if session is not None:
            names = [point, *(name for name in session.input_names if name != point)]
            arrays = (Array * len(names))()
            for i, name in enumerate(names[1:], 1):
                arrays[i] = self._array(np.asarray(data[name], session.input_dtype(name)))
            self._set_model(settings, session, names)
            self._set_tape(settings, session, dict(zip(names, arrays, strict=True)))
        address = opened.pytensor_onnx_open(ctypes.byref(settings), arrays)
        if not address:
            raise RunError("ONNX Runtime refuses the model as a C function")
        self.address: int = address
        weakref.finalize(self, opened.pytensor_onnx_close, c_void_p(address))

    def _set_model(self, settings: _Settings, session: Session, names: list[str]) -> None:
        model, plain = session.serialized
        entries = [text for entry in session.entries().items() for text in entry]
        self._kept += [model, plain]
        settings.model, settings.bytes = model, len(model)
        settings.plain, settings.plain_bytes = plain, len(plain or b"")
        settings.entries, settings.entry_count = self._texts(entries), len(entries) // 2
        settings.threads = session.runtime.get_session_options().intra_op_num_threads
        settings.inputs, settings.input_count = self._texts(names), len(names)
        outputs = session.output_names
        settings.outputs, settings.output_count = self._texts(outputs), len(outputs)
        settings.dtype = _number(str(session.input_dtype(names[0])))

    def _set_tape(self, settings: _Settings, session: Session, given: dict[str, Array]) -> None:
        """Have the model run without a session where one region is all of it."""
        graph = onnx.load_model_from_string(session.serialized[0]).graph
        region, point = whole_region(graph), next(iter(given))
        if region is None:
            return
        constants = {k: x for k, x in constants_of(graph).items() if k in region.input}
        arrays = {name: self._array(x) for name, x in constants.items()}
        arrays |= given | {point: Array(settings.dtype, 1, settings.size, (settings.size,))}
        if not arrays.keys() >= set(region.input):
            return
        operands = (Array * (len(region.input) + 1))(*(arrays[name] for name in region.input))
        names = list(session.output_names)
        places = (c_int64 * len(names))(*(names.index(name) for name in region.output))
        tape = region.attribute[0].s
        self._kept += [operands, places, tape]
        settings.tape, settings.tape_bytes = tape, len(tape)
        settings.operands, settings.places = operands, places
        settings.operand_count = len(region.input)

    def _texts(self, texts: list[str]) -> Any:
        array = (c_char_p * (len(texts) + 1))(*(text.encode() for text in texts))
        self._kept.append(array)
        return ctypes.cast(array, POINTER(c_char_p))

    def _array(self, value: np.ndarray) -> Array:
        array, value = Array(), aligned(value)
        self._kept.append(value)
        describe(array, value)
        return array


def log_density() -> int:
    """Return the address of a function of the type `DENSITY`."""
    return _address(_library().pytensor_onnx_log_density)


def expansion() -> int:
    """Return the address of a function of the type `EXPANSION`."""
    return _address(_library().pytensor_onnx_expand)


@cache
def _library() -> ctypes.CDLL:
    """Return the library, to which ONNX Runtime has made itself known."""
    opened = native.handle()
    opened.pytensor_onnx_open.restype = c_void_p
    native.register(onnxruntime.SessionOptions(), ())
    return opened


def _address(function: Any) -> int:
    return int(ctypes.cast(function, c_void_p).value or 0)


def _number(dtype: Any) -> int:
    """Return the number of a dtype in ONNX."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
