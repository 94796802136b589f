"""Rules for the dimensions of the first output of operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.dims import (
    Dim,
    Dims,
    broadcast,
    dims_of,
    product_dim,
    quotient_dim,
    slice_dim,
    sum_dim,
)
from pytensor_onnx.graph.sizes import constant_ints, sizes_in

Operands = Sequence[ir.Value | None]

_INTEGERS = (ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64)


def broadcasting(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of an elementwise operator."""
    dims: Dims = ()
    for value in inputs:
        if value is None:
            continue
        operand = dims_of(value)
        if operand is None:
            return None
        dims = broadcast(dims, operand)
    return dims


def same_as_first(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of the first operand."""
    return dims_of(inputs[0])


def transposition(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Transpose."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    perm = attributes.get("perm", range(len(dims))[::-1])
    return tuple(dims[i] for i in perm)


def unsqueezing(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Unsqueeze."""
    dims, axes = dims_of(inputs[0]), constant_ints(inputs[1])
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(dims)
    return tuple(1 if axis in new else next(rest) for axis in range(rank))


def squeezing(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Squeeze."""
    dims = dims_of(inputs[0])
    axes = constant_ints(inputs[1] if len(inputs) > 1 else None)
    if dims is None or axes is None:
        return None
    gone = {axis % len(dims) for axis in axes}
    return tuple(d for axis, d in enumerate(dims) if axis not in gone)


def reduction(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of a reduction with axes as an operand."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    axes = constant_ints(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else []
    if axes == [] and not attributes.get("noop_with_empty_axes"):
        axes = list(range(len(dims)))
    if axes is None:
        return None
    return _reduced(dims, axes, attributes.get("keepdims", 1))


def arg_reduction(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of ArgMax and ArgMin."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    return _reduced(dims, [attributes.get("axis", 0)], attributes.get("keepdims", 1))


def _reduced(dims: Dims, axes: Sequence[int], keepdims: int) -> Dims:
    gone = {axis % len(dims) for axis in axes} if dims else set()
    if keepdims:
        return tuple(1 if axis in gone else d for axis, d in enumerate(dims))
    return tuple(d for axis, d in enumerate(dims) if axis not in gone)


def matrix_product(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of MatMul."""
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    batch = broadcast(a[:-2], b[:-2])
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def gemm(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Gemm."""
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    return a[1 if attributes.get("transA") else 0], b[0 if attributes.get("transB") else 1]


def gathering(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Gather."""
    data, indices = dims_of(inputs[0]), dims_of(inputs[1])
    if data is None or indices is None:
        return None
    axis = attributes.get("axis", 0) % len(data)
    return data[:axis] + indices + data[axis + 1 :]


def gathering_nd(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of GatherND."""
    data, indices = dims_of(inputs[0]), dims_of(inputs[1])
    if data is None or not indices or not isinstance(indices[-1], int):
        return None
    return indices[:-1] + data[attributes.get("batch_dims", 0) + indices[-1] :]


def gathering_elements(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of GatherElements."""
    return dims_of(inputs[1])


def concatenation(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Concat."""
    shapes = [dims_of(value) for value in inputs]
    if any(dims is None for dims in shapes):
        return None
    known = [dims for dims in shapes if dims is not None]
    axis = attributes["axis"] % len(known[0])
    size = sum_dim([dims[axis] for dims in known])
    return tuple(
        size if i == axis else next((s[i] for s in known if isinstance(s[i], int)), d)
        for i, d in enumerate(known[0])
    )


def filling(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of ConstantOfShape."""
    sizes = sizes_in(inputs[0])
    return None if sizes is None else tuple(map(_size_or_unknown, sizes))


def _size_or_unknown(size: Dim) -> Dim:
    return None if isinstance(size, int) and size < 0 else size


def reshaping(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Reshape."""
    sizes, dims = sizes_in(inputs[1]), dims_of(inputs[0])
    if sizes is None:
        return None
    if not attributes.get("allowzero"):
        copied = (*(dims or ()), *[None] * len(sizes))
        sizes = tuple(copied[i] if size == 0 else size for i, size in enumerate(sizes))
    if -1 in sizes and dims is not None:
        rest = [size for size in sizes if size != -1]
        sizes = tuple(quotient_dim(dims, rest) if size == -1 else size for size in sizes)
    return tuple(map(_size_or_unknown, sizes))


def flattening(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Flatten."""
    dims, axis = dims_of(inputs[0]), attributes.get("axis", 1)
    return None if dims is None else (product_dim(dims[:axis]), product_dim(dims[axis:]))


def expansion(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Expand."""
    dims, sizes = dims_of(inputs[0]), sizes_in(inputs[1])
    return None if dims is None or sizes is None else broadcast(dims, sizes)


def counting(inputs: Operands, attributes: Mapping[str, Any]) -> Dims:
    """Return the dimensions of Range."""
    if constant_ints(inputs[0]) == [0] and constant_ints(inputs[2]) == [1]:
        sizes = sizes_in(inputs[1])
        return (None,) if sizes is None else tuple(map(_size_or_unknown, sizes))
    ends = [constant_ints(value) for value in inputs]
    if inputs[0] is None or inputs[0].dtype not in _INTEGERS or None in ends:
        return (None,)
    return (len(range(*(end[0] for end in ends if end))),)


def slicing(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Slice."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    starts, stops = constant_ints(inputs[1]), constant_ints(inputs[2])
    n_axes = len(dims) if starts is None else len(starts)
    axes = constant_ints(inputs[3]) if len(inputs) > 3 else list(range(n_axes))
    if axes is None:
        return (None,) * len(dims)
    steps = constant_ints(inputs[4]) if len(inputs) > 4 else [1] * len(axes)
    result = list(dims)
    for i, axis in enumerate(axes):
        bounds = (starts[i], stops[i], steps[i]) if starts and stops and steps else None
        result[axis] = None if bounds is None else slice_dim(dims[axis], *bounds)
    return tuple(result)


def shape(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Shape."""
    dims = dims_of(inputs[0])
    if dims is None:
        return (None,)
    return (len(dims[attributes.get("start", 0) : attributes.get("end")]),)


def scalar(inputs: Operands, attributes: Mapping[str, Any]) -> Dims:
    """Return no dimensions, for a 0-d result."""
    return ()


def padding(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Pad."""
    dims, pads = dims_of(inputs[0]), constant_ints(inputs[1])
    if dims is None:
        return None
    if pads is None or len(pads) != 2 * len(dims):
        return (None,) * len(dims)
    added = [before + after for before, after in zip(pads, pads[len(dims) :], strict=False)]
    return tuple(sum_dim(pair) for pair in zip(dims, added, strict=True))


def tiling(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Tile."""
    dims, repeats = dims_of(inputs[0]), sizes_in(inputs[1])
    if dims is None:
        return None
    if repeats is None or len(repeats) != len(dims):
        return (None,) * len(dims)
    return tuple(product_dim(pair) for pair in zip(dims, repeats, strict=True))


def top_k(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of TopK."""
    dims, k = dims_of(inputs[0]), sizes_in(inputs[1])
    if dims is None:
        return None
    axis = attributes.get("axis", -1) % len(dims)
    return (*dims[:axis], k[0] if k else None, *dims[axis + 1 :])
