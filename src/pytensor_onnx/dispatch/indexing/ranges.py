"""Build ranges and diagonal masks, and keep indices within bounds."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.dispatch.control_flow.raise_op import check_that
from pytensor_onnx.dispatch.elementwise.integer_arithmetic import floor_modulo
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints

_LONGEST_CONSTANT = 4096


def count_up(build: Builder, size: ir.Value) -> ir.Value:
    """Return ``0, 1, ..., size - 1``, a constant for a small constant size.

    Examples
    --------
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> count_up(build, build.constant(np.int64(3))).const_value.numpy()
    array([0, 1, 2])
    """
    known = constant_ints(size)
    if known and known[0] <= _LONGEST_CONSTANT:
        return build.constant(np.arange(known[0]))
    return build.Range(np.int64(0), build.cast(size, "int64"), np.int64(1))


def column(build: Builder, vector: ir.Value) -> ir.Value:
    """Return a vector as a matrix of one column."""
    if vector.const_value is not None:
        return build.constant(vector.const_value.numpy()[:, None])
    return build.Unsqueeze(vector, build.ints([1]))


def diagonal_mask(
    build: Builder, rows: ir.Value, columns: ir.Value, offset: ir.Value | None = None
) -> ir.Value:
    """Return a bool matrix that is true on one diagonal.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    rows, columns
        0-d int64 values.
    offset
        Offset of the diagonal to the right of the main one, a 0-d integer.
    """
    first, second = count_up(build, rows), count_up(build, columns)
    if offset is not None and constant_ints(offset) != [0]:
        first = build.Add(first, build.cast(offset, "int64"))
    return build.Equal(column(build, first), second)


def within_bounds(
    build: Builder, index: ir.Value, size: ir.Value, mode: str, error: Exception
) -> ir.Value:
    """Return int64 indices below a 0-d size.

    Parameters
    ----------
    build
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
        return wrapped(build, index, size)
    if mode == "clip":
        return build.Max(build.Min(index, build.Sub(size, 1)), 0)
    return check_that(build, [all_below(build, index, size)], index, error)


def wrapped(build: Builder, index: ir.Value, size: ir.Value) -> ir.Value:
    """Return indices modulo a 0-d size; zero for a size of zero."""
    result = floor_modulo(build, index, size)
    result.shape = index.shape
    return result


def all_below(build: Builder, index: ir.Value, size: ir.Value) -> ir.Value:
    """Return, as a 0-d bool, whether all indices are in the range of a size."""
    outside = build.Or(build.Less(index, 0), build.GreaterOrEqual(index, size))
    count = build.ReduceMax(build.cast(outside, "int32"), keepdims=0)
    return build.LessOrEqual(count, 0)
