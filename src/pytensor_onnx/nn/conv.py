"""Convolution of images of shape ``(N, C, *S)``, in one to three spatial dimensions."""

from __future__ import annotations

from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv_arguments import (
    BorderMode,
    ConvOptions,
    check_bias,
    check_channels,
    check_room,
    filter_sizes,
    operands_of,
    pads_of,
    shape_of,
)
from pytensor_onnx.ops.networks.conv_ops import Conv
from pytensor_onnx.ops.networks.same_conv import SameConv
from pytensor_onnx.ops.networks.static_sizes import sizes_of
from pytensor_onnx.ops.networks.taps import span
from pytensor_onnx.ops.networks.windows import Ints
from pytensor_onnx.ops.networks.zero_padding import pad_with_zeros


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
    options = ConvOptions(
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return convolve("conv1d", input, filters, bias, options)


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
    """Convolve images with filters, summed over channels.

    Parameters
    ----------
    input
        Images (N, C, H, W) of floats.
    filters
        Filters (O, C / num_groups, KH, KW). Unknown sizes are allowed; the gradient
        is faster if KH and KW are known, from the type or the value of a shared variable.
    border_mode
        Zero padding of the images: ``"valid"``, the default, none; ``"full"`` the span of a filter
        minus one on both sides; ``"half"`` half the span of a filter, rounded down, on both sides;
        ``"same_upper"`` and ``"same_lower"`` the padding for a result of height
        ``ceil(H / subsample)``, with the odd row after or before the image. Or an int, an int for
        each axis, or a pair (before, after) for each axis.
    subsample
        Distance between windows, an int or one for each axis; 1 by default.
    filter_flip
        Whether to flip the filters, as the mathematical convolution does. Pass False for networks
        trained in other frameworks, which compute cross-correlations. Constant filters are flipped
        once, at export.
    filter_dilation
        Distance between the elements of a window, an int or one for each axis; 1 by default.
    num_groups
        Number of groups of channels: filter ``o`` is applied to the channels of group
        ``o // (O / num_groups)`` only; 1 by default.
    bias
        Vector (O,) to add to the result, optional.
    stride, padding, dilation, groups
        Aliases of ``subsample``, ``border_mode``, ``filter_dilation`` and ``num_groups``, the names
        in pooling. An option may be passed under one of its names only.

    Returns
    -------
    TensorVariable
        Result (N, O, H', W') in the common dtype of input and filters, where
        ``H' = (H + pads - ((KH - 1) * dilation + 1)) // subsample + 1``, exported as one Conv.

    Raises
    ------
    TypeError
        If an array is not of floats, or an option has a wrong type or is passed under both names.
    ValueError
        If ranks, channels or groups do not fit, an option is out of range, or the image is smaller
        than a window. Unknown sizes are checked at run time.

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
    options = ConvOptions(
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return convolve("conv2d", input, filters, bias, options)


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
    """Convolve volumes (N, C, D, H, W) with filters ``(O, C / groups, *K)``; see `conv2d`."""
    options = ConvOptions(
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=filter_flip,
        filter_dilation=filter_dilation,
        num_groups=num_groups,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return convolve("conv3d", input, filters, bias, options)


def convolve(
    name: str,
    input: TensorLike,
    filters: TensorLike,
    bias: TensorLike | None,
    options: ConvOptions,
) -> TensorVariable:
    """Check the arguments of a convolution function, given by name, and apply its Op."""
    rank = int(name[-2])
    border, group = options.border(name), options.group_count(name)
    images, weights, *vectors = operands_of(name, rank, input, filters, bias)
    strides, dilations = options.strides(name, rank), options.dilations(name, rank)
    check_channels(name, images, weights, group)
    check_bias(name, vectors, shape_of(weights)[0])
    known = filter_sizes(name, weights)
    taps = [own if k is None else k for k, own in zip(known, sizes_of(weights), strict=True)]
    spans = [span(k, d) for k, d in zip(taps, dilations, strict=True)]
    pads = pads_of(border, sizes_of(images), spans, strides)
    if options.filter_flip:
        weights = weights[(..., *[slice(None, None, -1)] * rank)]
    geometry = {"strides": strides, "dilations": dilations, "groups": int(group.value)}
    nothing = ((0, 0),) * rank
    if not all(isinstance(n, int) for pair in pads for n in pair):
        if border.value in ("same_upper", "same_lower"):
            upper = border.value == "same_upper"
            same = SameConv(filter_sizes=known, pads=nothing, **geometry, upper=upper)
            return same(images, weights, *vectors)
        images, pads = pad_with_zeros(images, pads), [*nothing]
    check_room(name, images, pads, spans)
    op = Conv(filter_sizes=known, pads=tuple(pads), **geometry)
    return op(images, weights, *vectors)
