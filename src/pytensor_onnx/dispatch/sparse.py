"""Lower operations on the vectors of compressed sparse matrices."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.sparse import (
    EntryRows,
    RowProducts,
    ScaledRowSums,
    SegmentSum,
    Take,
)

CHUNK = 2**21
"""Number of elements of a dense matrix that are gathered at once, or more for a large result."""
FEWEST_COLUMNS = 8
"""Number of columns of many rows that are gathered at once."""


@onnx_funcify.register(EntryRows)
def lower_entry_rows(
    op: EntryRows, node: Apply, build: Builder, indptr: ir.Value, indices: ir.Value
) -> ir.Value:
    """Count the rows that start at or before each entry."""
    pointers, entries = build.cast(indptr, "int32"), build.Shape(indices)
    rows = build.call("EntryRows", _entry_rows, pointers, entries, shapes=[("rows",), (1,)])
    rows.shape = indices.shape
    return rows


def _entry_rows(build: Builder, indptr: ir.Value, entries: ir.Value) -> ir.Value:
    starts = build.Slice(indptr, build.ints([1]), build.ints([-1]))
    ones = build.Expand(np.int32(1), build.Shape(starts))
    # Rows after the last entry start past the end.
    places = build.ConstantOfShape(build.Add(entries, 1), value=np.zeros(1, "int32"))
    started = build.ScatterElements(places, starts, ones, axis=0, reduction="add")
    return build.Slice(build.CumSum(started, np.int64(0)), build.ints([0]), entries)


@onnx_funcify.register(SegmentSum)
def lower_segment_sum(
    op: SegmentSum, node: Apply, build: Builder, values: ir.Value, places: ir.Value, size: ir.Value
) -> ir.Value:
    """Scatter the values into zeros."""
    others = [build.size(values, axis) for axis in range(1, node.inputs[0].type.ndim)]
    sizes = vector_of(build, [build.cast(size, "int64"), *others])
    zeros = build.ConstantOfShape(sizes, value=np.zeros(1, dtype_of(values).numpy()))
    if not others:
        return build.ScatterElements(zeros, places, values, axis=0, reduction="add")
    points = build.Unsqueeze(build.cast(places, "int64"), build.ints([1]))
    return build.ScatterND(zeros, points, values, reduction="add")


@onnx_funcify.register(Take)
def lower_take(op: Take, node: Apply, build: Builder, x: ir.Value, positions: ir.Value) -> ir.Value:
    """Gather single elements, which takes a runtime a third of the time of gathering slices."""
    return build.GatherElements(x, positions, axis=0)


@onnx_funcify.register(ScaledRowSums)
def lower_scaled_row_sums(
    op: ScaledRowSums,
    node: Apply,
    build: Builder,
    factors: ir.Value,
    places: ir.Value,
    x: ir.Value,
    rows: ir.Value,
    size: ir.Value,
) -> ir.Value:
    """Gather, multiply and scatter one chunk of rows after the other, which bounds the memory.

    A step copies the result, so that chunks have half of its rows at least.
    """
    height, width = build.cast(size, "int64"), build.size(x, 1)
    zeros = build.ConstantOfShape(
        vector_of(build, [height, width]), value=np.zeros(1, dtype_of(x).numpy())
    )
    fitting = build.Div(np.int64(CHUNK), build.Add(vector_of(build, [width]), 1))
    half = build.Add(build.Div(vector_of(build, [height]), 2), 1)
    chunk = build.Max(fitting, half)
    steps = build.Div(build.Add(build.Shape(factors), build.Sub(chunk, 1)), chunk)

    def step(loop: Builder, i: ir.Value, total: ir.Value) -> list[ir.Value]:
        start = loop.Mul(chunk, i)
        end = loop.Add(start, chunk)
        factor, place, row = (
            loop.Slice(v, start, end, build.ints([0])) for v in (factors, places, rows)
        )
        scaled = loop.Mul(loop.Unsqueeze(factor, build.ints([1])), loop.Gather(x, row, axis=0))
        points = loop.Unsqueeze(loop.cast(place, "int64"), build.ints([1]))
        return [loop.ScatterND(total, points, scaled, reduction="add")]

    return build.loop(build.Squeeze(steps, build.ints([0])), None, [zeros], step)[0]


@onnx_funcify.register(RowProducts)
def lower_row_products(
    op: RowProducts,
    node: Apply,
    build: Builder,
    x: ir.Value,
    rows: ir.Value,
    y: ir.Value,
    others: ir.Value,
) -> ir.Value:
    """Gather, multiply and add a few columns after the other, which bounds the memory."""
    dtype = node.outputs[0].type.dtype
    zeros = build.ConstantOfShape(build.Shape(rows), value=np.zeros(1, dtype))
    width = build.Shape(x, start=1)
    fitting = build.Div(np.int64(CHUNK), build.Add(build.Shape(rows), 1))
    block = build.Add(fitting, FEWEST_COLUMNS)
    steps = build.Div(build.Add(width, build.Sub(block, 1)), block)

    def step(loop: Builder, i: ir.Value, total: ir.Value) -> list[ir.Value]:
        start = loop.Mul(block, i)
        end = loop.Add(start, block)
        taken = [
            loop.Gather(loop.Slice(v, start, end, build.ints([1])), places, axis=0)
            for v, places in ((x, rows), (y, others))
        ]
        products = loop.cast(loop.Mul(*taken), dtype)
        return [loop.Add(total, loop.ReduceSum(products, loop.ints([1]), keepdims=0))]

    return build.loop(build.Squeeze(steps, build.ints([0])), None, [zeros], step)[0]
