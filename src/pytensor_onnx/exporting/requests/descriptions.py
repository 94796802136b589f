"""Short descriptions of models, values and arguments."""

from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx_scoring.exact_casts import no_sequence


def describe(value: ir.Value) -> str:
    """Return name, dtype and shape of a value.

    Examples
    --------
    >>> describe(ir.val("x", dtype=ir.DataType.FLOAT, shape=("batch", 3)))
    'x: float32[batch, 3]'
    """
    dtype = "?" if value.dtype is None else str(value.dtype.numpy())
    dims = dims_of(value)
    shape = "" if dims is None else ", ".join("?" if d is None else str(d) for d in dims)
    return f"{value.name}: {dtype}[{shape}]"


def describe_given(argument: Any) -> str:
    """Return dtype and shape of an argument that does not fit, or its class and how to give it."""
    if kind := no_sequence(argument):
        return kind
    try:
        array = np.asarray(argument)
    except ValueError:
        return f"a {type(argument).__name__} that is no array"
    return f"{array.dtype}{list(array.shape)}"
