"""Causal, depthwise and separable convolution."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv import conv2d, convolve
from pytensor_onnx.nn.conv_arguments import BorderMode, ConvOptions
from pytensor_onnx.ops.networks.windows import Ints


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
