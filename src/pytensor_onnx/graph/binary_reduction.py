"""Reduce along axes by a binary operator."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import Dim, Dims, product_dim
from pytensor_onnx.operators.inference import dtype_of


def merge_axes(build: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Move axes to the end and merge them into one, of size one without axes.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    x
        Value of known rank.
    axes
        Axes to merge, counted from the start.
    """
    dims = build.dims(x)
    rank = len(dims)
    kept = [axis for axis in range(rank) if axis not in axes]
    order = [*kept, *axes]
    moved = x if order == list(range(rank)) else build.Transpose(x, perm=order)
    if len(axes) == 1:
        return moved
    sizes = build.dims(moved)
    size = product_dim(sizes[len(kept) :])
    target = _constant_target(sizes[: len(kept)], size)
    if target is not None:
        merged = build.Reshape(moved, build.ints(target), allowzero=0)
    else:
        merged = build.Reshape(moved, _merged_shape(build, moved, len(kept)), allowzero=1)
    merged.shape = ir.Shape([*sizes[: len(kept)], size])
    return merged


def _constant_target(kept: Dims, size: Dim) -> list[int] | None:
    """Return a target shape for Reshape in which zeros stand for unchanged sizes."""
    static = [d if isinstance(d, int) else 0 for d in kept]
    if isinstance(size, int) and size > 0:
        return [*static, size]
    return None if 0 in static else [*static, -1]


def _merged_shape(build: Builder, moved: ir.Value, n_kept: int) -> ir.Value:
    """Compute the kept sizes and the product of the others."""
    sizes = [build.Shape(moved, start=i, end=i + 1) for i in range(n_kept, len(build.dims(moved)))]
    return build.Concat(build.Shape(moved, start=0, end=n_kept), reduce(build.Mul, sizes), axis=0)


def fold_last_axis(build: Builder, x: ir.Value, operator: str, identity: int) -> ir.Value:
    """Reduce the last axis by combining one half of the elements with the other, repeatedly.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    x
        Value of one dimension or more.
    operator
        An associative and commutative operator.
    identity
        Identity element of the operator; the result for no elements.
    """
    rank = len(build.dims(x))
    size = build.dims(x)[-1]
    neutral = build.constant(np.asarray(identity).astype(dtype_of(x).numpy()))
    if size == 0:
        return build.Expand(neutral, build.Shape(x, start=0, end=rank - 1))
    if isinstance(size, int):
        return _fold_static(build, x, operator, size)
    last = build.ints([rank - 1])

    def step(loop: Builder, i: ir.Value, rest: ir.Value) -> list[ir.Value]:
        length = loop.Shape(rest, start=rank - 1, end=rank)
        half = loop.Div(length, 2)
        twice = loop.Mul(half, 2)
        first = loop.Slice(rest, [0], half, last)
        second = loop.Slice(rest, half, twice, last)
        odd = loop.Slice(rest, twice, length, last)
        halved = loop.Concat(loop.op(operator, first, second), odd, axis=rank - 1)
        return [loop.Greater(loop.Squeeze(loop.Sub(length, half), [0]), 1), halved]

    one_more = build.Concat(build.Shape(x, start=0, end=rank - 1), build.ints([1]), axis=0)
    padded = build.Concat(x, build.Expand(neutral, one_more), axis=rank - 1)
    padded.shape = ir.Shape([*build.dims(x)[:-1], None])
    any_left = build.Greater(build.Squeeze(build.Shape(x, start=rank - 1, end=rank), [0]), 0)
    (folded,) = build.loop(None, any_left, [padded], step)
    return build.Squeeze(folded, last)


def _fold_static(build: Builder, x: ir.Value, operator: str, size: int) -> ir.Value:
    """Reduce a last axis of known positive size in unrolled rounds."""
    axis = len(build.dims(x)) - 1
    while size > 1:
        half = size // 2
        halves = [build.Slice(x, [i * half], [(i + 1) * half], [axis]) for i in range(2)]
        odd = [build.Slice(x, [2 * half], [size], [axis])] if size % 2 else []
        x = build.op(operator, *halves)
        x = build.Concat(x, *odd, axis=axis) if odd else x
        size -= half
    return build.Squeeze(x, [axis])
