"""Lowerings of diagonals, triangles and row exchanges."""

from functools import reduce

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import AllocDiag, ExtractDiag, Eye
from pytensor.tensor.extra_ops import FillDiagonal, FillDiagonalOffset

from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import vector_of
from pytensor_onnx.dispatch.shape.tensor_basic import count_up, diagonal_mask
from pytensor_onnx.graph.binary_reduction import merge_axes
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import mark_guarded
from pytensor_onnx.ops.linalg.matrix_parts import (
    Elements,
    NextPivot,
    PivotPosition,
    Triangle,
    Window,
)


@onnx_funcify.register(Eye)
def lower_eye(
    op: Eye, node: Apply, build: Builder, rows: ir.Value, columns: ir.Value, offset: ir.Value
) -> ir.Value:
    """Compare row numbers and column numbers."""
    return build.cast(diagonal_mask(build, rows, columns, offset), op.dtype)


@onnx_funcify.register(AllocDiag)
def lower_alloc_diag(op: AllocDiag, node: Apply, build: Builder, diagonal: ir.Value) -> ir.Value:
    """Select between the diagonal and zero, then pad for the offset and move the new axes."""
    rank = node.inputs[0].type.ndim
    size = build.size(diagonal, rank - 1)
    rows = build.Unsqueeze(diagonal, build.ints([rank - 1]))
    matrix = build.Where(diagonal_mask(build, size, size), rows, build.number_like(diagonal, 0))
    if op.offset:
        below, right = max(-op.offset, 0), max(op.offset, 0)
        batch = [0] * (rank - 1)
        matrix = build.Pad(matrix, build.ints([*batch, below, right, *batch, right, below]))
    order = list(range(rank - 1))
    order.insert(op.axis1, rank - 1)
    order.insert(op.axis2, rank)
    return matrix if order == sorted(order) else build.Transpose(matrix, perm=order)


@onnx_funcify.register(ExtractDiag)
def lower_extract_diag(op: ExtractDiag, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Select every ``m + 1``-th element of the flattened matrices of ``m`` columns."""
    columns = build.size(x, op.axis2)
    flat = merge_axes(build, x, [op.axis1, op.axis2])
    if columns.const_value is not None:
        m = int(columns.const_value.numpy())
        bounds = [
            build.ints([bound])
            for bound in (
                max(op.offset, -op.offset * m),
                max((m - op.offset) * m, 0),
                m + 1,
            )
        ]
        start, stop, step = bounds
    else:
        shifted = build.Sub(columns, op.offset) if op.offset else columns
        end = build.Mul(build.Max(shifted, 0) if op.offset > 0 else shifted, columns)
        first = build.constant(np.int64(op.offset))
        if op.offset < 0:
            first = build.Mul(columns, -op.offset)
        start, stop, step = (
            vector_of(build, [bound]) for bound in (first, end, build.Add(columns, 1))
        )
    last = len(build.dims(flat)) - 1
    return build.Slice(flat, start, stop, build.ints([last]), step)


@onnx_funcify.register(FillDiagonal)
def lower_fill_diagonal(
    op: FillDiagonal, node: Apply, build: Builder, x: ir.Value, value: ir.Value
) -> ir.Value:
    """Replace the elements with equal indices; arrays beyond matrices need equal sizes."""
    rank = node.inputs[0].type.ndim
    sizes = [build.size(x, axis) for axis in range(rank)]
    if rank == 2:
        return build.Where(diagonal_mask(build, *sizes), value, x)
    same = [build.Equal(sizes[0], size) for size in sizes[1:]]
    error = ValueError("All dimensions of input must be of equal length")
    x = check_that(build, same, x, error)
    counts = [
        build.Unsqueeze(count_up(build, size), build.ints(range(1, rank - axis)))
        if axis < rank - 1
        else count_up(build, size)
        for axis, size in enumerate(sizes)
    ]
    mask = reduce(build.And, [build.Equal(counts[0], count) for count in counts[1:]])
    return build.Where(mask, value, x)


@onnx_funcify.register(FillDiagonalOffset)
def lower_fill_diagonal_offset(
    op: FillDiagonalOffset,
    node: Apply,
    build: Builder,
    x: ir.Value,
    value: ir.Value,
    offset: ir.Value,
) -> ir.Value:
    """Replace the elements of one diagonal."""
    return build.Where(diagonal_mask(build, build.size(x, 0), build.size(x, 1), offset), value, x)


@onnx_funcify.register(Elements)
def lower_elements(
    op: Elements, node: Apply, build: Builder, x: ir.Value, places: ir.Value
) -> ir.Value:
    """Return the elements by GatherElements."""
    return build.GatherElements(x, places, axis=0)


@onnx_funcify.register(Window)
def lower_window(
    op: Window, node: Apply, build: Builder, x: ir.Value, start: ir.Value, end: ir.Value
) -> ir.Value:
    """Return the rows and columns by Slice."""
    return build.Slice(x, start, end)


@onnx_funcify.register(PivotPosition)
def lower_pivot_position(op: PivotPosition, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the position of the largest magnitude, without the guard that NaN would need."""
    position = build.ArgMax(build.Abs(x), axis=op.axis, keepdims=0)
    mark_guarded(position)
    return position


@onnx_funcify.register(NextPivot)
def lower_next_pivot(
    op: NextPivot, node: Apply, build: Builder, column: ir.Value, candidates: ir.Value
) -> list[ir.Value]:
    """Return the position, the pivot and the other candidates; an exchange takes two operators."""
    magnitudes = build.Abs(build.GatherElements(column, candidates, axis=0))
    position = build.ArgMax(magnitudes, axis=0, keepdims=1)
    mark_guarded(position)
    first = build.Gather(candidates, build.ints([0]), axis=0)
    exchanged = build.ScatterElements(candidates, position, first, axis=0)
    end = build.ints([np.iinfo(np.int64).max])
    left = build.Slice(exchanged, build.ints([1]), end, build.ints([0]))
    return [position, build.Gather(candidates, position, axis=0), left]


@onnx_funcify.register(Triangle)
def lower_triangle(op: Triangle, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the triangle by Trilu."""
    diagonal = [build.constant(np.int64(op.diagonal))] if op.diagonal else []
    return build.Trilu(x, *diagonal, upper=int(not op.lower))
