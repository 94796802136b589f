"""Shapes of operators' results."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.dims import (
    Dim,
    Dims,
    broadcast,
    constant_ints,
    dims_of,
    product_dim,
    quotient_dim,
    sizes_in,
    slice_dim,
    sum_dim,
)

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


_END = 2**63 - 1


def convolution(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Conv: images of the batch, filters as channels.

    Examples
    --------
    >>> x = ir.val("x", shape=("batch", 3, 32, "width"))
    >>> w = ir.val("w", shape=(8, 3, 3, 3))
    >>> convolution([x, w], {"strides": [2, 2], "pads": [1, 1, 1, 1]})
    ('batch', 8, 16, width[::2])
    >>> convolution([x, w], {"pads": [1, 1, 1, 1]})
    ('batch', 8, 32, 'width')
    """
    images, filters = dims_of(inputs[0]), dims_of(inputs[1])
    if images is None or filters is None:
        return None
    filter_sizes = attributes.get("kernel_shape", filters[2:])
    return (images[0], filters[0], *_windows(images[2:], filter_sizes, attributes))


def transposed_convolution(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of ConvTranspose.

    Examples
    --------
    >>> x = ir.val("x", shape=("batch", 8, 16, "width"))
    >>> w = ir.val("w", shape=(8, 3, 2, 2))
    >>> transposed_convolution([x, w], {"strides": [2, 2]})
    ('batch', 3, 32, 2*width)
    """
    images, filters = dims_of(inputs[0]), dims_of(inputs[1])
    if images is None or filters is None:
        return None
    groups, rank = attributes.get("group", 1), len(images) - 2
    channels = filters[1] * groups if isinstance(filters[1], int) else None
    if "output_shape" in attributes or attributes.get("auto_pad", "NOTSET") != "NOTSET":
        return (images[0], channels, *(None,) * rank)
    ones, pads = [1] * rank, attributes.get("pads", [0] * (2 * rank))
    strides, dilations = (attributes.get(name, ones) for name in ("strides", "dilations"))
    more = attributes.get("output_padding", [0] * rank)
    filter_sizes = attributes.get("kernel_shape", filters[2:])
    axes = zip(
        images[2:], filter_sizes, pads[:rank], pads[rank:], strides, dilations, more, strict=True
    )
    sizes = [
        sum_dim(
            [
                product_dim([size, stride]),
                (taps - 1) * dilation + 1 - stride - before - after + extra,
            ]
        )
        if isinstance(taps, int)
        else None
        for size, taps, before, after, stride, dilation, extra in axes
    ]
    return (images[0], channels if groups > 1 else filters[1], *sizes)


def pooling(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of a pool with windows."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    return (*dims[:2], *_windows(dims[2:], attributes["kernel_shape"], attributes))


def global_pooling(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of a pool over all of the spatial axes."""
    dims = dims_of(inputs[0])
    return None if dims is None else (*dims[:2], *(1,) * (len(dims) - 2))


def resizing(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of Resize, from constant sizes or scales."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    if "axes" in attributes or attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return (None,) * len(dims)
    if len(inputs) > 3 and inputs[3] is not None:
        return tuple(constant_ints(inputs[3]) or (None,) * len(dims))
    scales = inputs[2] if len(inputs) > 2 else None
    if scales is None or scales.const_value is None:
        return (None,) * len(dims)
    return tuple(
        int(np.floor(d * float(scale))) if isinstance(d, int) else _scaled(d, float(scale))
        for d, scale in zip(dims, scales.const_value.numpy(), strict=True)
    )


def _scaled(size: Dim, scale: float) -> Dim:
    return product_dim([size, int(scale)]) if scale.is_integer() else None


def _windows(sizes: Dims, filter_sizes: Sequence[Dim], attributes: Mapping[str, Any]) -> Dims:
    """Return the number of windows along each spatial axis."""
    rank = len(sizes)
    if attributes.get("auto_pad", "NOTSET") != "NOTSET" or attributes.get("ceil_mode"):
        return (None,) * rank
    ones, pads = [1] * rank, attributes.get("pads", [0] * (2 * rank))
    strides, dilations = (attributes.get(name, ones) for name in ("strides", "dilations"))
    axes = zip(sizes, filter_sizes, pads[:rank], pads[rank:], strides, dilations, strict=True)
    return tuple(
        _count(size, before + after - (taps - 1) * dilation, stride)
        if isinstance(taps, int)
        else None
        for size, taps, before, after, stride, dilation in axes
    )


def _count(size: Dim, room: int, stride: int) -> Dim:
    """Return the output size ``(size + room - 1) // stride + 1``, the length of a slice."""
    if isinstance(size, int):
        return (size + room - 1) // stride + 1
    if stride == 1:
        return sum_dim([size, room])
    whole = sum_dim([size, max(room, 0)])
    return slice_dim(whole, max(-room, 0), _END, stride)
