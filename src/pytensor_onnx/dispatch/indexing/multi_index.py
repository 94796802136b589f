"""Convert between flat indices and indices along each axis."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import RavelMultiIndex, UnravelIndex

from pytensor_onnx.dispatch.indexing.ranges import within_bounds
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.sizes import constant_ints


@onnx_funcify.register(UnravelIndex)
def lower_unravel_index(
    op: UnravelIndex, node: Apply, build: Builder, indices: ir.Value, dims: ir.Value
) -> list[ir.Value]:
    """Divide by the sizes, fastest axis first; the remainder is the index along it."""
    rest, sizes = build.cast(indices, "int64"), _elements(build, dims, len(node.outputs))
    error = ValueError("index is out of bounds for an array of the given shape")
    rest = within_bounds(build, rest, _product(build, sizes), "raise", error)
    fastest_first = sizes if op.order == "F" else sizes[::-1]
    coordinates = []
    for size in fastest_first[:-1]:
        divisor = _positive(build, size)
        coordinates.append(build.Mod(rest, divisor))
        rest = build.Div(rest, divisor)
    coordinates.append(rest)
    return (coordinates if op.order == "F" else coordinates[::-1])[: len(sizes)]


@onnx_funcify.register(RavelMultiIndex)
def lower_ravel_multi_index(
    op: RavelMultiIndex, node: Apply, build: Builder, *operands: ir.Value
) -> ir.Value:
    """Sum the indices along all axes, each times the stride of the axis."""
    *indices, dims = operands
    sizes = _elements(build, dims, len(indices))
    error = ValueError("invalid entry in coordinates array")
    limited = [
        within_bounds(build, build.cast(index, "int64"), size, op.mode, error)
        for index, size in zip(indices, sizes, strict=True)
    ]
    pairs = list(zip(limited, sizes, strict=True))
    first, *others = pairs if op.order == "C" else pairs[::-1]
    flat = first[0]
    for index, size in others:
        flat = build.Add(build.Mul(flat, size), index)
    return flat


def _elements(build: Builder, vector: ir.Value, count: int) -> list[ir.Value]:
    known = constant_ints(vector)
    if known is not None:
        return [build.constant(np.int64(size)) for size in known]
    vector = build.cast(vector, "int64")
    return [build.Gather(vector, np.int64(i), axis=0) for i in range(count)]


def _product(build: Builder, sizes: Sequence[ir.Value]) -> ir.Value:
    known = [constant_ints(size) for size in sizes]
    if None not in known:
        return build.constant(np.int64(np.prod([k[0] for k in known if k], dtype="int64")))
    product = sizes[0]
    for size in sizes[1:]:
        product = build.Mul(product, size)
    return product


def _positive(build: Builder, size: ir.Value) -> ir.Value:
    """Replace a size of zero by one, as divisor for an empty array."""
    known = constant_ints(size)
    if known:
        return build.constant(np.int64(max(known[0], 1)))
    return build.Where(build.Greater(size, 0), size, np.int64(1))
