"""Reduction along axes by an operator that takes two operands."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.inference import Dim, dtype_of


def merge_axes(onnx: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Move axes to the end and merge them into one; it has size one where there are none.

    Parameters
    ----------
    onnx
        Builder that receives the nodes.
    x
        Value of known rank.
    axes
        Axes to merge, counted from the start.
    """
    dims = onnx.dims(x)
    rank = len(dims)
    kept = [axis for axis in range(rank) if axis not in axes]
    order = [*kept, *axes]
    moved = x if order == list(range(rank)) else onnx.Transpose(x, perm=order)
    if len(axes) == 1:
        return moved
    merged = onnx.Reshape(moved, _merged_shape(onnx, moved, len(kept)), allowzero=1)
    static = [d for d in (dims[axis] for axis in axes) if isinstance(d, int)]
    size: Dim = int(np.prod(static)) if len(static) == len(axes) else None
    merged.shape = ir.Shape([*(dims[axis] for axis in kept), size])
    return merged


def _merged_shape(onnx: Builder, moved: ir.Value, n_kept: int) -> ir.Value:
    dims = onnx.dims(moved)
    if all(isinstance(d, int) and d > 0 for d in dims[:n_kept]):
        return onnx.ints([*(d for d in dims[:n_kept] if isinstance(d, int)), -1])
    sizes = [onnx.Shape(moved, start=i, end=i + 1) for i in range(n_kept, len(dims))]
    size = reduce(onnx.Mul, sizes) if sizes else onnx.ints([1])
    return onnx.Concat(onnx.Shape(moved, start=0, end=n_kept), size, axis=0)


def fold_last_axis(onnx: Builder, x: ir.Value, operator: str, identity: int) -> ir.Value:
    """Reduce the last axis: each round combines one half of the elements with the other.

    Parameters
    ----------
    onnx
        Builder that receives the nodes.
    x
        Value of one dimension or more.
    operator
        An associative and commutative operator.
    identity
        What the operator leaves unchanged; the result for no elements.
    """
    rank = len(onnx.dims(x))
    last = onnx.ints([rank - 1])
    loop = onnx.subgraph()
    step = ir.Value(name="step", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(()))
    going = ir.Value(name="going", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(()))
    rest = ir.Value(name="rest", type=ir.TensorType(dtype_of(x)), shape=ir.Shape([None] * rank))
    size = loop.Shape(rest, start=rank - 1, end=rank)
    half = loop.Div(size, 2)
    first = loop.Slice(rest, [0], half, last)
    second = loop.Slice(rest, half, loop.Mul(half, 2), last)
    odd = loop.Slice(rest, loop.Mul(half, 2), size, last)
    halved = loop.Concat(loop.op(operator, first, second), odd, axis=rank - 1)
    again = loop.Greater(loop.Squeeze(loop.Sub(size, half), [0]), 1)
    body = loop.graph([step, going, rest], [again, halved])

    neutral = onnx.constant(np.asarray(identity).astype(dtype_of(x).numpy()))
    one_more = onnx.Concat(onnx.Shape(x, start=0, end=rank - 1), onnx.ints([1]), axis=0)
    padded = onnx.Concat(x, onnx.Expand(neutral, one_more), axis=rank - 1)
    padded.shape = ir.Shape([*onnx.dims(x)[:-1], None])
    any_left = onnx.Greater(onnx.Squeeze(onnx.Shape(x, start=rank - 1, end=rank), [0]), 0)
    (folded,) = onnx.loop(None, any_left, [padded], body)
    return onnx.Squeeze(folded, last)
