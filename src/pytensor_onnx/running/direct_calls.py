"""Calls of models that are one region, past the session of ONNX Runtime.

A call of the runtime takes 3 µs, as long as the density of a small model.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx

from pytensor_onnx import native
from pytensor_onnx.kernels.graph_scope import constants_of
from pytensor_onnx.kernels.regions import whole_region

DirectCall = Callable[..., "list[np.ndarray] | None"]
"""Function of the arrays of the inputs in order; None where the session has to run."""

# In the order of the structure in native/python_calls.c.
_INTERPRETER = (
    *("PyCFunction_NewEx", "PyCapsule_New", "PyCapsule_GetPointer", "PyObject_Vectorcall"),
    *("PyList_New", "PyList_SetItem", "PyTuple_New", "PyTuple_SetItem", "PyLong_FromLongLong"),
    *("PyErr_Clear", "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread"),
)
_DTYPE_NUMBERS = 24
_HEAD = 16
"""Bytes before the fields of an object: interpreters without a global lock have more."""


def no_call(*arrays: Any) -> None:
    """Run nothing: the session has to."""


def direct_call(
    model: bytes, inputs: Sequence[str], outputs: Sequence[str], *, threads: int | None = 1
) -> DirectCall:
    """Return a function that runs a model of one region without a session.

    It reads contiguous arrays of the dtypes of the inputs. It returns None for other arguments,
    and where the region refuses them or fails.

    Parameters
    ----------
    model
        The serialized model with its region, which this process has made.
    inputs
        Names of the inputs, in the order of the arguments.
    outputs
        Names of the outputs, in the order of the results.
    threads
        Threads of a long step; None for one on each processor.
    """
    graph = onnx.load_model_from_string(model).graph
    region = whole_region(graph)
    if region is None or not _is_known_interpreter():
        return no_call
    constants = {
        name: native.aligned(x) for name, x in constants_of(graph).items() if name in region.input
    }
    types = {x.name: x.type.tensor_type for x in (*graph.input, *graph.output)}
    operands = (native.Array * (len(region.input) + 1))()
    for operand, name in zip(operands, region.input, strict=False):
        if name in constants:
            native.describe(operand, constants[name])
        elif name in inputs:
            type_ = types[name]
            dims = [x.dim_value if x.HasField("dim_value") else -1 for x in type_.shape.dim]
            if len(dims) > len(operand.shape):
                return no_call
            operand.dtype = type_.elem_type
            operand.rank = len(dims) if type_.HasField("shape") else -1
            operand.shape[: len(dims)] = dims
        else:
            return no_call
    read = list(region.input)
    argument = [read.index(x) if x in read else -1 for x in inputs]
    numbers = [types[x].elem_type for x in region.output]
    dtypes = [np.dtype(onnx.helper.tensor_dtype_to_np_dtype(x)) for x in numbers]
    tape = region.attribute[0].s
    made = _interpreter().pytensor_onnx_python_call(
        tape,
        ctypes.c_size_t(len(tape)),
        operands,
        len(inputs),
        (ctypes.c_int64 * (len(inputs) + 1))(*argument),
        (ctypes.c_int64 * (len(outputs) + 1))(*(outputs.index(x) for x in region.output)),
        (ctypes.c_int32 * (len(outputs) + 1))(*numbers),
        (ctypes.c_void_p * (len(outputs) + 1))(*map(id, dtypes)),
        ctypes.py_object((constants, dtypes)),
        threads or native.processors(),
    )
    return made or no_call


def _is_known_interpreter() -> bool:
    """Return whether arrays lie in memory as the library reads them."""
    is_locked = not sysconfig.get_config_var("Py_GIL_DISABLED")
    is_cpython = sys.implementation.name == "cpython" and object.__basicsize__ == _HEAD
    return is_cpython and is_locked and sys.byteorder == "little"


@cache
def _interpreter() -> ctypes.PyDLL:
    """Return the library, which knows the functions of the interpreter."""
    library = ctypes.PyDLL(str(native.library()))
    library.pytensor_onnx_python_call.restype = ctypes.py_object
    numbers = [0] * _DTYPE_NUMBERS
    for code in np.typecodes["AllInteger"] + "?fd":
        dtype = np.dtype(code)
        numbers[dtype.num] = int(onnx.helper.np_dtype_to_tensor_dtype(dtype))

    class Interpreter(ctypes.Structure):
        _fields_ = (
            *((name, ctypes.c_void_p) for name in ("array_type", "none", "empty")),
            ("dtypes", ctypes.c_int64 * _DTYPE_NUMBERS),
            *((name, ctypes.c_void_p) for name in _INTERPRETER),
        )

    functions = (ctypes.cast(getattr(ctypes.pythonapi, x), ctypes.c_void_p) for x in _INTERPRETER)
    known = Interpreter(
        id(np.ndarray),
        id(None),
        id(np.empty),
        (ctypes.c_int64 * _DTYPE_NUMBERS)(*numbers),
        *(function.value for function in functions),
    )
    library.pytensor_onnx_set_python(ctypes.byref(known))
    return library
