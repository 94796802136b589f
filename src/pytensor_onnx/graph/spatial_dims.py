"""Rules for the dimensions of convolutions, pools and Resize."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.dims import Dim, Dims, dims_of, product_dim, slice_dim, sum_dim
from pytensor_onnx.graph.sizes import constant_ints

Operands = Sequence[ir.Value | None]
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
