"""Forms of TopK and Unique for runtimes with wrong results for NaN and empty slices.

The order is NumPy's: a NaN is larger than every number.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.binary_reduction import merge_axes
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.node_flags import is_bare, mark_guarded
from pytensor_onnx.passes.matching import required


def top_k(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Sort with the runtime's kernel if no element is NaN, else in two stable rounds."""
    axis, largest = node.attributes.get_int("axis", -1), node.attributes.get_int("largest", 1)
    order = {"axis": axis, "largest": largest}

    def body(inner: Builder, x: ir.Value, k: ir.Value) -> list[ir.Value]:
        is_nan = inner.IsNaN(x)
        any_nan = inner.ReduceMax(inner.cast(is_nan, "int32"), keepdims=0)
        return inner.cond(
            inner.Greater(any_nan, 0),
            lambda careful: _numbers_then_nan(careful, x, k, is_nan, order),
            lambda plain: _guarded(plain.TopK(x, k, outputs=2, **order)),
        )

    x, k = node.inputs
    name = f"TopK{'Largest' if largest else 'Smallest'}Axis{axis}".replace("-", "Minus")
    return list(build.call(name, body, required(x), required(k), variant=str(dtype_of(x).numpy())))


def _numbers_then_nan(
    build: Builder, x: ir.Value, k: ir.Value, is_nan: ir.Value, order: dict[str, int]
) -> list[ir.Value]:
    """Sort with infinity in place of NaN, then by a NaN mask; both sorts are stable."""
    axis = order["axis"]
    size = build.Shape(x, start=axis, **({} if axis == -1 else {"end": axis + 1}))
    numbers = build.Where(is_nan, float("inf"), x)
    first = _guarded(build.TopK(numbers, size, outputs=2, **order))[1]
    flags = build.GatherElements(build.cast(is_nan, "int32"), first, axis=axis)
    second = build.TopK(flags, k, outputs=2, **order)[1]
    positions = build.GatherElements(first, second, axis=axis)
    return [build.GatherElements(x, positions, axis=axis), positions]


def unique(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return the unique numbers, then one NaN if there is any; or all in order of appearance."""
    is_sorted = _is_sorted(node)

    def body(inner: Builder, x: ir.Value) -> list[ir.Value]:
        flat = inner.Reshape(x, inner.ints([-1]))
        is_nan = inner.IsNaN(flat)
        numbers = inner.Squeeze(inner.NonZero(inner.Not(is_nan)), inner.ints([0]))
        others = inner.Squeeze(inner.NonZero(is_nan), inner.ints([0]))
        values, index, inverse, counts = _guarded(
            inner.Unique(inner.Gather(flat, numbers, axis=0), outputs=4)
        )
        first = inner.Slice(others, inner.ints([0]), inner.ints([1]))
        zeros = inner.ConstantOfShape(inner.Shape(flat), value=np.zeros(1, "int64"))
        last = inner.Add(zeros, inner.Shape(values))
        found = [
            inner.Concat(values, inner.Gather(flat, first, axis=0), axis=0),
            inner.Concat(inner.Gather(numbers, index, axis=0), first, axis=0),
            inner.ScatterElements(last, numbers, inverse, axis=0),
            inner.Concat(
                counts,
                inner.Slice(inner.Shape(others), inner.ints([0]), inner.Shape(first)),
                axis=0,
            ),
        ]
        if is_sorted:
            return found
        order, *rest = _by_appearance(inner, found[1:])
        return [inner.Gather(found[0], order, axis=0), *rest]

    name = "Unique" if is_sorted else "UniqueUnsorted"
    return list(build.call(name, body, required(node.inputs[0])))[: len(node.outputs)]


def _is_sorted(node: ir.Node) -> bool:
    return bool(node.attributes.get_int("sorted", 1))


def _by_appearance(build: Builder, results: list[ir.Value]) -> list[ir.Value]:
    """Return the order of first places, and first places, inverse and counts in that order."""
    first, inverse, counts = results
    order = build.TopK(first, build.Shape(first), largest=0, outputs=2)[1]
    ranks = build.TopK(order, build.Shape(first), largest=0, outputs=2)[1]
    return [
        order,
        build.Gather(first, order, axis=0),
        build.Gather(ranks, inverse, axis=0),
        build.Gather(counts, order, axis=0),
    ]


def unique_slices(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Compare slices as rows of ranks, never empty, with a unique rank for a slice with NaN.

    As in NumPy, slices with NaN are all different, and stay in order.
    """
    x = required(node.inputs[0])
    dims = dims_of(x)
    if dims is None:
        raise build.unsupported("Unique of slices of a value of unknown rank")
    axis = node.attributes.get_int("axis", 0) % len(dims)
    rows = merge_axes(build, x, [i for i in range(len(dims)) if i != axis])
    one_each = build.Concat(build.Shape(x, start=axis, end=axis + 1), build.ints([1]), axis=0)
    if dtype_of(x).is_floating_point():
        ranks = build.Reshape(build.Unique(rows, outputs=4)[2], build.Shape(rows), allowzero=1)
        has_nan = build.ReduceMax(build.cast(build.IsNaN(rows), "int32"), build.ints([1]))
        number = build.CumSum(build.Expand(build.ints([1]), one_each), build.ints([0]))
        last = build.Where(build.Greater(has_nan, 0), number, 0)
    else:
        ranks = rows
        last = build.Expand(build.number_like(x, 0), one_each)
    last.shape = ir.Shape([dims[axis], 1])
    padded = build.Concat(ranks, last, axis=1)
    _, *rest = _guarded(build.Unique(padded, axis=0, outputs=4))
    if not _is_sorted(node):
        _, *rest = _by_appearance(build, rest)
    return [build.Gather(x, rest[0], axis=axis), *rest][: len(node.outputs)]


def is_of_elements(node: ir.Node) -> bool:
    """Return whether a Unique compares elements, not slices."""
    return is_bare(node) and "axis" not in node.attributes


def is_of_slices(node: ir.Node) -> bool:
    """Return whether a Unique compares slices along an axis."""
    return is_bare(node) and "axis" in node.attributes


def may_have_empty_slices(node: ir.Node) -> bool:
    """Return whether a Unique along an axis may get slices without elements."""
    if not is_of_slices(node):
        return False
    dims = dims_of(node.inputs[0])
    if dims is None:
        return True
    axis = node.attributes.get_int("axis", 0) % len(dims)
    return not all(isinstance(d, int) and d > 0 for i, d in enumerate(dims) if i != axis)


def _guarded(values: list[ir.Value]) -> list[ir.Value]:
    mark_guarded(values[0])
    return values
