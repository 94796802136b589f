"""Lower the extraction, filling and allocation of diagonals."""

from functools import reduce

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import AllocDiag, ExtractDiag, Eye
from pytensor.tensor.extra_ops import FillDiagonal, FillDiagonalOffset

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.raise_op import check_that
from pytensor_onnx.dispatch.ranges import count_up, diagonal_mask
from pytensor_onnx.dispatch.shape import vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.folding import merge_axes


@onnx_funcify.register(Eye)
def lower_eye(
    op: Eye, node: Apply, onnx: Builder, rows: ir.Value, columns: ir.Value, offset: ir.Value
) -> ir.Value:
    """Compare row numbers and column numbers."""
    return onnx.cast(diagonal_mask(onnx, rows, columns, offset), op.dtype)


@onnx_funcify.register(AllocDiag)
def lower_alloc_diag(op: AllocDiag, node: Apply, onnx: Builder, diagonal: ir.Value) -> ir.Value:
    """Select between the diagonal and zero, then pad for the offset and move the new axes."""
    rank = node.inputs[0].type.ndim
    size = onnx.size(diagonal, rank - 1)
    rows = onnx.Unsqueeze(diagonal, onnx.ints([rank - 1]))
    matrix = onnx.Where(diagonal_mask(onnx, size, size), rows, onnx.number_like(diagonal, 0))
    if op.offset:
        below, right = max(-op.offset, 0), max(op.offset, 0)
        batch = [0] * (rank - 1)
        matrix = onnx.Pad(matrix, onnx.ints([*batch, below, right, *batch, right, below]))
    order = list(range(rank - 1))
    order.insert(op.axis1, rank - 1)
    order.insert(op.axis2, rank)
    return matrix if order == sorted(order) else onnx.Transpose(matrix, perm=order)


@onnx_funcify.register(ExtractDiag)
def lower_extract_diag(op: ExtractDiag, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Select every ``m + 1``-th element of the flattened matrices of ``m`` columns."""
    columns = onnx.size(x, op.axis2)
    flat = merge_axes(onnx, x, [op.axis1, op.axis2])
    if columns.const_value is not None:
        m = int(columns.const_value.numpy())
        bounds = [
            onnx.ints([bound])
            for bound in (
                max(op.offset, -op.offset * m),
                max((m - op.offset) * m, 0),
                m + 1,
            )
        ]
        start, stop, step = bounds
    else:
        shifted = onnx.Sub(columns, op.offset) if op.offset else columns
        end = onnx.Mul(onnx.Max(shifted, 0) if op.offset > 0 else shifted, columns)
        first = onnx.constant(np.int64(op.offset))
        if op.offset < 0:
            first = onnx.Mul(columns, -op.offset)
        start, stop, step = (
            vector_of(onnx, [bound]) for bound in (first, end, onnx.Add(columns, 1))
        )
    last = len(onnx.dims(flat)) - 1
    return onnx.Slice(flat, start, stop, onnx.ints([last]), step)


@onnx_funcify.register(FillDiagonal)
def lower_fill_diagonal(
    op: FillDiagonal, node: Apply, onnx: Builder, x: ir.Value, value: ir.Value
) -> ir.Value:
    """Replace the elements with equal indices; arrays beyond matrices need equal sizes."""
    rank = node.inputs[0].type.ndim
    sizes = [onnx.size(x, axis) for axis in range(rank)]
    if rank == 2:
        return onnx.Where(diagonal_mask(onnx, *sizes), value, x)
    same = [onnx.Equal(sizes[0], size) for size in sizes[1:]]
    error = ValueError("All dimensions of input must be of equal length")
    x = check_that(onnx, same, x, error)
    counts = [
        onnx.Unsqueeze(count_up(onnx, size), onnx.ints(range(1, rank - axis)))
        if axis < rank - 1
        else count_up(onnx, size)
        for axis, size in enumerate(sizes)
    ]
    mask = reduce(onnx.And, [onnx.Equal(counts[0], count) for count in counts[1:]])
    return onnx.Where(mask, value, x)


@onnx_funcify.register(FillDiagonalOffset)
def lower_fill_diagonal_offset(
    op: FillDiagonalOffset,
    node: Apply,
    onnx: Builder,
    x: ir.Value,
    value: ir.Value,
    offset: ir.Value,
) -> ir.Value:
    """Replace the elements of one diagonal."""
    return onnx.Where(diagonal_mask(onnx, onnx.size(x, 0), onnx.size(x, 1), offset), value, x)
