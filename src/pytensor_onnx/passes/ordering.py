"""Forms of TopK and Unique for runtimes that go wrong where elements are NaN or slices are empty.

The order is NumPy's: a NaN is larger than every number.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.folding import merge_axes
from pytensor_onnx.inference import dims_of, dtype_of

_GUARD = "guarded order"


def is_guarded(node: ir.Node) -> bool:
    """Return whether an operator is the inner part of a form made here."""
    return _GUARD in node.meta


def top_k(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Order as the runtime does where no element is NaN, else in two stable rounds."""
    axis, largest = _int_attribute(node, "axis", -1), _int_attribute(node, "largest", 1)
    order = {"axis": axis, "largest": largest}

    def body(inner: Builder, x: ir.Value, k: ir.Value) -> list[ir.Value]:
        is_nan = inner.IsNaN(x)
        any_nan = inner.ReduceMax(inner.cast(is_nan, "int32"), keepdims=0)
        plain, careful = inner.subgraph(), inner.subgraph()
        return inner.if_else(
            inner.Greater(any_nan, 0),
            careful.graph([], _numbers_then_nan(careful, x, k, is_nan, order)),
            plain.graph([], _guarded(plain.TopK(x, k, outputs=2, **order))),
        )

    x, k = node.inputs
    name = f"TopK{'Largest' if largest else 'Smallest'}Axis{axis}".replace("-", "Minus")
    return list(onnx.call(name, body, _given(x), _given(k), variant=str(dtype_of(x).numpy())))


def _numbers_then_nan(
    onnx: Builder, x: ir.Value, k: ir.Value, is_nan: ir.Value, order: dict[str, int]
) -> list[ir.Value]:
    """Order with infinity in the place of NaN, then by being NaN: equal elements stay in order."""
    axis = order["axis"]
    size = onnx.Shape(x, start=axis, **({} if axis == -1 else {"end": axis + 1}))
    numbers = onnx.Where(is_nan, float("inf"), x)
    first = _guarded(onnx.TopK(numbers, size, outputs=2, **order))[1]
    flags = onnx.GatherElements(onnx.cast(is_nan, "int32"), first, axis=axis)
    second = onnx.TopK(flags, k, outputs=2, **order)[1]
    positions = onnx.GatherElements(first, second, axis=axis)
    return [onnx.GatherElements(x, positions, axis=axis), positions]


def unique(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Take the unique numbers, then one NaN if there is any."""

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
        return [
            inner.Concat(values, inner.Gather(flat, first, axis=0), axis=0),
            inner.Concat(inner.Gather(numbers, index, axis=0), first, axis=0),
            inner.ScatterElements(last, numbers, inverse, axis=0),
            inner.Concat(
                counts,
                inner.Slice(inner.Shape(others), inner.ints([0]), inner.Shape(first)),
                axis=0,
            ),
        ]

    return list(onnx.call("Unique", body, _given(node.inputs[0])))[: len(node.outputs)]


def unique_slices(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Compare slices as rows of ranks: never empty, and one with NaN unlike any other.

    As for NumPy, slices that hold NaN are all different, in the order in which they stand.
    """
    x = _given(node.inputs[0])
    dims = dims_of(x)
    if dims is None:
        raise onnx.unsupported("Unique of slices of a value of unknown rank")
    axis = _int_attribute(node, "axis", 0) % len(dims)
    rows = merge_axes(onnx, x, [i for i in range(len(dims)) if i != axis])
    one_each = onnx.Concat(onnx.Shape(x, start=axis, end=axis + 1), onnx.ints([1]), axis=0)
    if dtype_of(x).is_floating_point():
        ranks = onnx.Reshape(onnx.Unique(rows, outputs=4)[2], onnx.Shape(rows), allowzero=1)
        has_nan = onnx.ReduceMax(onnx.cast(onnx.IsNaN(rows), "int32"), onnx.ints([1]))
        number = onnx.CumSum(onnx.Expand(onnx.ints([1]), one_each), onnx.ints([0]))
        last = onnx.Where(onnx.Greater(has_nan, 0), number, 0)
    else:
        ranks = rows
        last = onnx.Expand(onnx.number_like(x, 0), one_each)
    last.shape = ir.Shape([dims[axis], 1])
    padded = onnx.Concat(ranks, last, axis=1)
    _, *rest = _guarded(onnx.Unique(padded, axis=0, outputs=4))
    return [onnx.Gather(x, rest[0], axis=axis), *rest][: len(node.outputs)]


def may_have_empty_slices(node: ir.Node) -> bool:
    """Return whether a Unique along an axis may meet slices without elements."""
    dims = dims_of(node.inputs[0])
    if "axis" not in node.attributes:
        return False
    if dims is None:
        return True
    axis = _int_attribute(node, "axis", 0) % len(dims)
    return not all(isinstance(d, int) and d > 0 for i, d in enumerate(dims) if i != axis)


def _guarded(values: list[ir.Value]) -> list[ir.Value]:
    node = values[0].producer()
    if node is not None:
        node.meta[_GUARD] = True
    return values


def _given(value: ir.Value | None) -> ir.Value:
    if value is None:
        raise TypeError("an operand is missing")
    return value


def _int_attribute(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()
