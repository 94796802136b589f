"""Build ranges and diagonal masks, and keep indices within bounds."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.dispatch.integer import floor_modulo
from pytensor_onnx.dispatch.raise_op import check_that
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints

_LONGEST_CONSTANT = 4096


def count_up(onnx: Builder, size: ir.Value) -> ir.Value:
    """Return ``0, 1, ..., size - 1``, a constant for a small constant size.

    Examples
    --------
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> onnx = Builder(ModelScope(21))
    >>> count_up(onnx, onnx.constant(np.int64(3))).const_value.numpy()
    array([0, 1, 2])
    """
    known = constant_ints(size)
    if known and known[0] <= _LONGEST_CONSTANT:
        return onnx.constant(np.arange(known[0]))
    return onnx.Range(np.int64(0), onnx.cast(size, "int64"), np.int64(1))


def column(onnx: Builder, vector: ir.Value) -> ir.Value:
    """Return a vector as a matrix of one column."""
    if vector.const_value is not None:
        return onnx.constant(vector.const_value.numpy()[:, None])
    return onnx.Unsqueeze(vector, onnx.ints([1]))


def diagonal_mask(
    onnx: Builder, rows: ir.Value, columns: ir.Value, offset: ir.Value | None = None
) -> ir.Value:
    """Return a bool matrix that is true on one diagonal.

    Parameters
    ----------
    onnx
        Builder that receives the nodes.
    rows, columns
        0-d int64 values.
    offset
        Offset of the diagonal to the right of the main one, a 0-d integer.
    """
    first, second = count_up(onnx, rows), count_up(onnx, columns)
    if offset is not None and constant_ints(offset) != [0]:
        first = onnx.Add(first, onnx.cast(offset, "int64"))
    return onnx.Equal(column(onnx, first), second)


def within_bounds(
    onnx: Builder, index: ir.Value, size: ir.Value, mode: str, error: Exception
) -> ir.Value:
    """Return int64 indices below a 0-d size.

    Parameters
    ----------
    onnx
        Builder that receives the nodes.
    index
        Indices, possibly out of bounds.
    size
        The upper bound.
    mode
        Treatment of indices out of bounds: ``"wrap"``, ``"clip"`` or ``"raise"``.
    error
        Exception of the mode ``"raise"``.
    """
    if mode == "wrap":
        return wrapped(onnx, index, size)
    if mode == "clip":
        return onnx.Max(onnx.Min(index, onnx.Sub(size, 1)), 0)
    return check_that(onnx, [all_below(onnx, index, size)], index, error)


def wrapped(onnx: Builder, index: ir.Value, size: ir.Value) -> ir.Value:
    """Return indices modulo a 0-d size; zero for a size of zero."""
    result = floor_modulo(onnx, index, size)
    result.shape = index.shape
    return result


def all_below(onnx: Builder, index: ir.Value, size: ir.Value) -> ir.Value:
    """Return, as a 0-d bool, whether all indices are in the range of a size."""
    outside = onnx.Or(onnx.Less(index, 0), onnx.GreaterOrEqual(index, size))
    count = onnx.ReduceMax(onnx.cast(outside, "int32"), keepdims=0)
    return onnx.LessOrEqual(count, 0)
