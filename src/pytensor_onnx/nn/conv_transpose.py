"""Transposed convolution of arrays ``(N, C, *S)``, in one to three spatial dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv_arguments import (
    check_bias,
    filter_sizes,
    operands_of,
    pairs_of,
    shape_of,
)
from pytensor_onnx.ops.networks.conv_ops import ConvTranspose
from pytensor_onnx.ops.networks.window_arguments import per_axis
from pytensor_onnx.ops.networks.windows import Ints, Padding
from pytensor_onnx.ops.networks.zero_padding import pad_with_zeros


@dataclass(frozen=True)
class _Options:
    """The arguments of a transposed convolution, but for its operands."""

    stride: Ints
    padding: Padding
    output_padding: Ints
    dilation: Ints
    groups: int


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: TensorLike | None = None,
) -> TensorVariable:
    """Apply a transposed convolution to sequences (N, C, W), with filters (C, O / groups, K).

    See `conv2d_transpose`.
    """
    options = _Options(stride, padding, output_padding, dilation, groups)
    return _transpose("conv1d_transpose", input, filters, bias, options)


def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: TensorLike | None = None,
) -> TensorVariable:
    """Apply a transposed convolution: the gradient of a cross-correlation, used for upsampling.

    Each pixel is multiplied by the filters and added to the result at the positions of the
    window. The arguments have the meaning that they have in ONNX and other frameworks; filters are
    not flipped.

    Parameters
    ----------
    input
        Images (N, C, H, W) of floats.
    filters
        Filters (C, O / groups, KH, KW).
    stride
        Distance of the input's pixels in the result, an int or one for each axis.
    padding
        Crop of the result: an int, one for each axis, or a pair (before, after) for each axis.
    output_padding
        Number of elements added at the end of each axis; less than stride or dilation.
    dilation
        Distance between the elements of a filter, an int or one for each axis.
    groups
        Number of groups of channels, each with its own filters.
    bias
        Vector (O,) to add to the result, optional.

    Returns
    -------
    TensorVariable
        Result (N, O, H', W') with
        ``H' = (H - 1) * stride + (KH - 1) * dilation + 1 - before - after + output_padding``,
        exported as one ConvTranspose.

    Raises
    ------
    TypeError
        If an array is not of floats, or an option has a wrong type.
    ValueError
        If ranks, channels or groups do not fit, an option is out of range, or the result is known
        to be empty.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx.nn import conv2d_transpose
    >>> images, filters = pt.tensor(shape=(None, 8, 16, 16)), pt.tensor(shape=(8, 3, 2, 2))
    >>> conv2d_transpose(images, filters, stride=2).type.shape
    (None, 3, 32, 32)
    """
    options = _Options(stride, padding, output_padding, dilation, groups)
    return _transpose("conv2d_transpose", input, filters, bias, options)


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: TensorLike | None = None,
) -> TensorVariable:
    """Apply a transposed convolution to volumes (N, C, D, H, W).

    See `conv2d_transpose`.
    """
    options = _Options(stride, padding, output_padding, dilation, groups)
    return _transpose("conv3d_transpose", input, filters, bias, options)


def _transpose(
    name: str,
    input: TensorLike,
    filters: TensorLike,
    bias: TensorLike | None,
    options: _Options,
) -> TensorVariable:
    padding = options.padding
    rank = int(name[4])
    images, weights, *vectors = operands_of(name, rank, input, filters, bias)
    strides, dilations = (
        per_axis("stride", options.stride, rank),
        per_axis("dilation", options.dilation, rank),
    )
    more = per_axis("output_padding", options.output_padding, rank, smallest=0)
    for extra, *steps in zip(more, strides, dilations, strict=True):
        if extra >= max(steps):
            raise ValueError(
                f"{name}: output_padding={extra} must be less than the stride {steps[0]} or the "
                f"dilation {steps[1]}"
            )
    (n_groups,) = per_axis("groups", options.groups, 1)
    channels, filter_channels = images.type.shape[1], shape_of(weights)[0]
    if channels is not None and filter_channels is not None and channels != filter_channels:
        raise ValueError(
            f"{name}: the images have {channels} channels, the filters take {filter_channels}"
        )
    known = filter_channels if channels is None else channels
    if known is not None and known % n_groups:
        raise ValueError(f"{name}: {known} channels cannot be divided into groups={n_groups}")
    per_group = shape_of(weights)[1]
    check_bias(name, vectors, None if per_group is None else per_group * n_groups)
    pads, rests, zeros = zip(
        *map(_whole_strides, pairs_of("padding", padding, rank), more, strides), strict=True
    )
    op = ConvTranspose(
        filter_sizes=filter_sizes(name, weights),
        pads=pads,
        strides=strides,
        dilations=dilations,
        groups=n_groups,
        output_padding=rests,
    )
    for axis, size in enumerate(op.sizes(images, weights)):
        if isinstance(size, int) and size < 1:
            raise ValueError(
                f"{name}: padding={padding} leaves nothing of spatial axis {axis} of the result"
            )
    if not any(zeros):
        return op(images, weights, *vectors)
    result = pad_with_zeros(op(images, weights), [(0, n) for n in zeros])
    for vector in vectors:
        result = result + pt.shape_padright(vector, rank)
    return result


def _whole_strides(
    pads: tuple[int, int], more: int, stride: int
) -> tuple[tuple[int, int], int, int]:
    """Subtract whole strides of output padding from the crop; return crop, rest and zeros."""
    rest = more % stride
    reduction = min(more - rest, pads[1])
    return (pads[0], pads[1] - reduction), rest, more - rest - reduction
