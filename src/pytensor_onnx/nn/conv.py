"""Convolution of images of shape (N, C, *S), in one to three spatial dimensions."""

from __future__ import annotations

from typing import Literal

from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv_arguments import (
    BorderMode,
    check_bias,
    check_channels,
    check_room,
    either,
    kernel_of,
    operands_of,
    pads_of,
    shape_of,
)
from pytensor_onnx.nn.conv_ops import Conv
from pytensor_onnx.nn.sizes import sizes_of
from pytensor_onnx.nn.taps import span
from pytensor_onnx.nn.windows import Ints, per_axis
from pytensor_onnx.nn.zero_padding import pad_with_zeros


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode | None = None,
    subsample: Ints | None = None,
    filter_flip: bool = True,
    filter_dilation: Ints | None = None,
    num_groups: int | None = None,
    bias: TensorLike | None = None,
    *,
    stride: Ints | None = None,
    padding: BorderMode | None = None,
    dilation: Ints | None = None,
    groups: int | None = None,
) -> TensorVariable:
    """Convolve sequences (N, C, W) with filters (O, C / groups, K); see `conv2d`."""
    return convolve(
        "conv1d",
        input,
        filters,
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        bias=bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode | None = None,
    subsample: Ints | None = None,
    filter_flip: bool = True,
    filter_dilation: Ints | None = None,
    num_groups: int | None = None,
    bias: TensorLike | None = None,
    *,
    stride: Ints | None = None,
    padding: BorderMode | None = None,
    dilation: Ints | None = None,
    groups: int | None = None,
) -> TensorVariable:
    """Convolve images with filters, for each image and filter the sum over its channels.

    Parameters
    ----------
    input
        Images (N, C, H, W) of floats.
    filters
        Filters (O, C / num_groups, KH, KW). Sizes that only run time knows are fine; the gradient
        is faster where KH and KW are known, by the type or by the value of a shared variable.
    border_mode
        Zeros around the images: ``"valid"``, the default, none; ``"full"`` as many as let every
        window touch the image; ``"half"`` half a kernel, rounded down, on both sides;
        ``"same_upper"`` and ``"same_lower"`` as many as make the result ``ceil(H / subsample)``
        high, the odd one below or above. Or a number, one for each axis, or a pair (before, after)
        for each axis.
    subsample
        Distance between windows, one number or one for each axis; 1 unless given.
    filter_flip
        Whether to flip the filters, as the mathematical convolution does. Networks trained
        elsewhere are cross-correlations: there it is False. Constant filters are flipped once, at
        export.
    filter_dilation
        Distance between the taps of a window, one number or one for each axis; 1 unless given.
    num_groups
        Groups of channels that filters are divided among: filter ``o`` sees only the channels of
        group ``o // (O / num_groups)``; 1 unless given.
    bias
        Vector (O,) that is added to the result, if any.
    stride, padding, dilation, groups
        Other names for ``subsample``, ``border_mode``, ``filter_dilation`` and ``num_groups``, as
        pools have them. Each option may have one of its names.

    Returns
    -------
    TensorVariable
        Result (N, O, H', W') in the dtype that input and filters have in common, where
        ``H' = (H + pads - ((KH - 1) * dilation + 1)) // subsample + 1``. A model has one Conv.

    Raises
    ------
    TypeError
        If an array is not of floats, an option of a wrong type, or given by both of its names.
    ValueError
        If ranks, channels or groups do not fit, an option is out of range, or the image is smaller
        than a window, as far as sizes are known. What is not known is checked at run time.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> from pytensor_onnx.nn import conv2d
    >>> images = pt.tensor("images", shape=(None, 3, 32, 32), dtype="float32")
    >>> filters = pt.tensor("filters", shape=(8, 3, 3, 3), dtype="float32")
    >>> result = conv2d(images, filters, "half", subsample=2, filter_flip=False)
    >>> result.type.shape
    (None, 8, 16, 16)
    >>> conv2d(images, filters, padding=1, stride=2, filter_flip=False).type.shape
    (None, 8, 16, 16)
    >>> [node.op_type for node in export_onnx([images, filters], result).model.graph]
    ['Conv']
    """
    return convolve(
        "conv2d",
        input,
        filters,
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        bias=bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode | None = None,
    subsample: Ints | None = None,
    filter_flip: bool = True,
    filter_dilation: Ints | None = None,
    num_groups: int | None = None,
    bias: TensorLike | None = None,
    *,
    stride: Ints | None = None,
    padding: BorderMode | None = None,
    dilation: Ints | None = None,
    groups: int | None = None,
) -> TensorVariable:
    """Convolve volumes (N, C, D, H, W) with filters (O, C / groups, *K); see `conv2d`."""
    return convolve(
        "conv3d",
        input,
        filters,
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        bias=bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def convolve(
    name: str,
    input: TensorLike,
    filters: TensorLike,
    *,
    border_mode: BorderMode | Literal["causal"] | None,
    subsample: Ints | None,
    filter_flip: bool,
    filter_dilation: Ints | None,
    num_groups: int | None,
    bias: TensorLike | None,
    stride: Ints | None,
    padding: BorderMode | None,
    dilation: Ints | None,
    groups: int | None,
) -> TensorVariable:
    """Check and apply the convolution that a function of some name, which ends so, stands for."""
    rank = int(name[-2])
    border = either(name, "valid", border_mode=border_mode, padding=padding)
    group = either(name, 1, num_groups=num_groups, groups=groups)
    images, kernels, *vectors = operands_of(name, rank, input, filters, bias)
    strides = per_axis(*either(name, 1, subsample=subsample, stride=stride), rank)
    dilations = per_axis(*either(name, 1, filter_dilation=filter_dilation, dilation=dilation), rank)
    check_channels(name, images, kernels, group)
    check_bias(name, vectors, shape_of(kernels)[0])
    kernel = kernel_of(name, kernels)
    taps = [own if k is None else k for k, own in zip(kernel, sizes_of(kernels), strict=True)]
    spans = [span(k, d) for k, d in zip(taps, dilations, strict=True)]
    pads = pads_of(border, sizes_of(images), spans, strides)
    if filter_flip:
        kernels = kernels[(..., *[slice(None, None, -1)] * rank)]
    if not all(isinstance(n, int) for pair in pads for n in pair):
        images = pad_with_zeros(images, pads)
        pads = [(0, 0)] * rank
    check_room(name, images, pads, spans)
    op = Conv(
        kernel=kernel,
        pads=tuple(pads),
        strides=strides,
        dilations=dilations,
        groups=int(group.value),
    )
    return op(images, kernels, *vectors)
