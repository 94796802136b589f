"""Transposed convolutions, and convolutions by other forms."""

from __future__ import annotations

from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv import (
    BorderMode,
    ConvOptions,
    check_bias,
    conv2d,
    convolve,
    filter_sizes,
    operands_of,
    pairs_of,
    shape_of,
)
from pytensor_onnx.ops.networks.conv_ops import ConvTranspose
from pytensor_onnx.ops.networks.windows import Ints, Padding, pad_with_zeros, per_axis


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


def causal_conv1d(
    input: TensorLike,
    filters: TensorLike,
    subsample: Ints | None = None,
    filter_flip: bool = True,
    filter_dilation: Ints | None = None,
    num_groups: int | None = None,
    bias: TensorLike | None = None,
    *,
    stride: Ints | None = None,
    dilation: Ints | None = None,
    groups: int | None = None,
) -> TensorVariable:
    """Convolve sequences so that no result depends on later elements; see `conv2d`.

    The padding is ``(K - 1) * filter_dilation`` zeros before the sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from pytensor_onnx.nn import causal_conv1d
    >>> sequence, taps = np.array([[[1.0, 0.0, 0.0, 2.0]]]), np.array([[[4.0, 2.0, 1.0]]])
    >>> causal_conv1d(sequence, taps).eval(mode="ONNX")
    array([[[4., 2., 1., 8.]]])
    """
    options = ConvOptions(
        border_mode="causal",
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        stride=stride,
        dilation=dilation,
        groups=groups,
    )
    return convolve("causal_conv1d", input, filters, bias, options)


def depthwise_conv2d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode | None = None,
    subsample: Ints | None = None,
    filter_flip: bool = True,
    filter_dilation: Ints | None = None,
    bias: TensorLike | None = None,
    num_channels: int | None = None,
    *,
    stride: Ints | None = None,
    padding: BorderMode | None = None,
    dilation: Ints | None = None,
) -> TensorVariable:
    """Convolve each channel of images (N, C, H, W) with its own M filters; see `conv2d`.

    Parameters
    ----------
    input
        Images (N, C, H, W).
    filters
        Filters (C * M, 1, KH, KW); each M consecutive ones belong to one channel.
    num_channels
        Number of channels C, if the type of the images does not have it.
    border_mode, subsample, filter_flip, filter_dilation, bias, stride, padding, dilation
        As for `conv2d`.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx.nn import depthwise_conv2d
    >>> images, filters = pt.tensor(shape=(1, 4, 9, 9)), pt.tensor(shape=(8, 1, 3, 3))
    >>> depthwise_conv2d(images, filters).type.shape
    (1, 8, 7, 7)
    """
    images = pt.as_tensor(input)
    channels = images.type.shape[1] if images.type.ndim > 1 else None
    channels = channels if num_channels is None else num_channels
    if channels is None:
        raise ValueError(
            f"depthwise_conv2d: the number of channels of {images} is not known: give num_channels"
        )
    options = ConvOptions(
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=channels,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    return convolve("depthwise_conv2d", images, filters, bias, options)


def separable_conv2d(
    input: TensorLike,
    depthwise_filters: TensorLike,
    pointwise_filters: TensorLike,
    border_mode: BorderMode | None = None,
    subsample: Ints | None = None,
    filter_flip: bool = True,
    filter_dilation: Ints | None = None,
    bias: TensorLike | None = None,
    num_channels: int | None = None,
    *,
    stride: Ints | None = None,
    padding: BorderMode | None = None,
    dilation: Ints | None = None,
) -> TensorVariable:
    """Convolve each channel with its own filters, then all channels with 1 x 1 filters.

    Parameters
    ----------
    input
        Images (N, C, H, W).
    depthwise_filters
        Filters (C * M, 1, KH, KW), as for `depthwise_conv2d`; so are the other options.
    pointwise_filters
        Filters (O, C * M, 1, 1).
    bias
        Vector (O,) to add to the result, optional.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx.nn import separable_conv2d
    >>> images, depthwise = pt.tensor(shape=(1, 4, 9, 9)), pt.tensor(shape=(8, 1, 3, 3))
    >>> separable_conv2d(images, depthwise, pt.tensor(shape=(5, 8, 1, 1)), "half").type.shape
    (1, 5, 9, 9)
    """
    mixing = pt.as_tensor(pointwise_filters)
    if any(size not in (1, None) for size in mixing.type.shape[2:]):
        raise ValueError(
            f"separable_conv2d: pointwise_filters {mixing} must have the shape (O, C * M, 1, 1), "
            f"not {mixing.type.shape}"
        )
    each = depthwise_conv2d(
        input,
        depthwise_filters,
        border_mode,
        subsample,
        filter_flip,
        filter_dilation,
        num_channels=num_channels,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    return conv2d(each, mixing, bias=bias, filter_flip=False)
