"""Attributes of operators."""

import numpy as np
import onnx_ir as ir


def is_float32(number: float, dtype: ir.DataType) -> bool:
    """Return whether a float attribute, which is float32, holds a number as a dtype does.

    Examples
    --------
    >>> is_float32(0.1, ir.DataType.DOUBLE), is_float32(0.1, ir.DataType.FLOAT)
    (False, True)
    """
    return dtype != ir.DataType.DOUBLE or float(np.float32(number)) == number
