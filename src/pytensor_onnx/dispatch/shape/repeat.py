"""Lower the repetition of slices."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import Repeat

from pytensor_onnx.dispatch.control_flow.raise_op import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints

_LONGEST_CONSTANT = 4096


@onnx_funcify.register(Repeat)
def lower_repeat(
    op: Repeat, node: Apply, build: Builder, x: ir.Value, repeats: ir.Value
) -> ir.Value:
    """Gather each slice as often as its count; a single count applies to all slices."""
    return build.Gather(x, _repeated_positions(build, x, repeats, op.axis), axis=op.axis)


def _repeated_positions(build: Builder, x: ir.Value, repeats: ir.Value, axis: int) -> ir.Value:
    size, counts = build.dims(x)[axis], constant_ints(repeats)
    if isinstance(size, int) and counts is not None:
        total = sum(counts) * (size if len(counts) == 1 else 1)
        if len(counts) in (1, size) and min(counts, default=0) >= 0 and total <= _LONGEST_CONSTANT:
            return build.constant(np.repeat(np.arange(size), counts))
    each = _count_for_each(build, build.cast(repeats, "int64"), build.size(x, axis))
    return build.call("RepeatedPositions", _positions_by_count, each, variant="", shapes=[("n",)])


def _count_for_each(build: Builder, repeats: ir.Value, size: ir.Value) -> ir.Value:
    """Return one count for each slice, with a check of their number."""
    length = build.size(repeats, 0)
    if length is not size:
        fits = build.Or(build.Equal(length, size), build.Equal(length, 1))
        error = ValueError("repeats has another length than the axis that it is for")
        repeats = check_that(build, [fits], repeats, error)
        repeats = build.Expand(repeats, build.Unsqueeze(size, build.ints([0])))
    below = build.ReduceMax(build.cast(build.Less(repeats, 0), "int32"), keepdims=0)
    error = ValueError("repeats may not contain negative values.")
    return check_that(build, [build.LessOrEqual(below, 0)], repeats, error)


def _positions_by_count(build: Builder, counts: ir.Value) -> ir.Value:
    """Return each position as often as its count, from the cumulative counts."""
    ends = build.CumSum(counts, np.int64(0))
    total = build.ReduceSum(counts, build.ints([0]))
    places = build.ConstantOfShape(build.Add(total, 1), value=np.zeros(1, "int64"))
    ones = build.Expand(np.int64(1), build.Shape(ends))
    ended = build.ScatterND(places, build.Unsqueeze(ends, build.ints([1])), ones, reduction="add")
    return build.Slice(build.CumSum(ended, np.int64(0)), build.ints([0]), total)
