"""Lower `repeat`, `unique` and other operations of PyTensor's `extra_ops`."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import Bartlett, CpuContiguous, Repeat, Unique

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.raise_op import check_that
from pytensor_onnx.dispatch.ranges import count_up
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints

_LONGEST_CONSTANT = 4096


@onnx_funcify.register(CpuContiguous)
def lower_cpu_contiguous(op: CpuContiguous, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Return the input, as every ONNX value is contiguous."""
    return x


@onnx_funcify.register(Repeat)
def lower_repeat(
    op: Repeat, node: Apply, onnx: Builder, x: ir.Value, repeats: ir.Value
) -> ir.Value:
    """Gather each slice as often as its count; a single count applies to all slices."""
    return onnx.Gather(x, _repeated_positions(onnx, x, repeats, op.axis), axis=op.axis)


def _repeated_positions(onnx: Builder, x: ir.Value, repeats: ir.Value, axis: int) -> ir.Value:
    size, counts = onnx.dims(x)[axis], constant_ints(repeats)
    if isinstance(size, int) and counts is not None:
        total = sum(counts) * (size if len(counts) == 1 else 1)
        if len(counts) in (1, size) and min(counts, default=0) >= 0 and total <= _LONGEST_CONSTANT:
            return onnx.constant(np.repeat(np.arange(size), counts))
    each = _count_for_each(onnx, onnx.cast(repeats, "int64"), onnx.size(x, axis))
    return onnx.call("RepeatedPositions", _positions_by_count, each, variant="", shapes=[("n",)])


def _count_for_each(onnx: Builder, repeats: ir.Value, size: ir.Value) -> ir.Value:
    """Return one count for each slice, with a check of their number."""
    length = onnx.size(repeats, 0)
    if length is not size:
        fits = onnx.Or(onnx.Equal(length, size), onnx.Equal(length, 1))
        error = ValueError("repeats has another length than the axis that it is for")
        repeats = check_that(onnx, [fits], repeats, error)
        repeats = onnx.Expand(repeats, onnx.Unsqueeze(size, onnx.ints([0])))
    below = onnx.ReduceMax(onnx.cast(onnx.Less(repeats, 0), "int32"), keepdims=0)
    error = ValueError("repeats may not contain negative values.")
    return check_that(onnx, [onnx.LessOrEqual(below, 0)], repeats, error)


def _positions_by_count(onnx: Builder, counts: ir.Value) -> ir.Value:
    """Return each position as often as its count, from the cumulative counts."""
    ends = onnx.CumSum(counts, np.int64(0))
    total = onnx.ReduceSum(counts, onnx.ints([0]))
    places = onnx.ConstantOfShape(onnx.Add(total, 1), value=np.zeros(1, "int64"))
    ones = onnx.Expand(np.int64(1), onnx.Shape(ends))
    ended = onnx.ScatterND(places, onnx.Unsqueeze(ends, onnx.ints([1])), ones, reduction="add")
    return onnx.Slice(onnx.CumSum(ended, np.int64(0)), onnx.ints([0]), total)


@onnx_funcify.register(Unique)
def lower_unique(op: Unique, node: Apply, onnx: Builder, x: ir.Value) -> list[ir.Value]:
    """Return the unique elements, or slices along an axis, in ascending order."""
    wanted = [0]
    wanted += [1] if op.return_index else []
    wanted += [2] if op.return_inverse else []
    wanted += [3] if op.return_counts else []
    axis = {} if op.axis is None else {"axis": op.axis}
    results = onnx.Unique(x, outputs=wanted[-1] + 1, **axis)
    results = [results] if isinstance(results, ir.Value) else results
    return [results[i] for i in wanted]


@onnx_funcify.register(Bartlett)
def lower_bartlett(op: Bartlett, node: Apply, onnx: Builder, size: ir.Value) -> ir.Value:
    """Return a triangular window; a window of one element is one."""
    size = onnx.cast(size, "int64")
    last = onnx.Sub(size, 1)
    distance = onnx.Abs(onnx.Sub(onnx.Mul(count_up(onnx, size), 2), last))
    length = onnx.Where(onnx.Equal(last, 0), np.int64(1), last)
    return onnx.Sub(1.0, onnx.Div(onnx.cast(distance, "float64"), onnx.cast(length, "float64")))
