"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.conv_ops import Conv, SameConv, same_pads
from pytensor_onnx.ops.networks.network_op import Size, Sizes, sizes_of
from pytensor_onnx.ops.networks.taps import span
from pytensor_onnx.ops.networks.windows import Ints, pad_with_zeros, per_axis


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
    pads = pads_of(border, images, spans, strides)
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


BorderMode = (
    Literal["valid", "full", "half", "same_upper", "same_lower"]
    | int
    | Sequence[int | tuple[int, int]]
)
BORDER_MODES = ("valid", "full", "half", "same_upper", "same_lower")


class Option(NamedTuple):
    """Option of a convolution, with the name under which it was passed."""

    name: str
    value: Any


def either(function: str, default: Any, **given: Any) -> Option:
    """Return an option with several names.

    Raises
    ------
    TypeError
        If it is passed under more than one name.

    Examples
    --------
    >>> either("conv2d", 1, subsample=None, stride=2)
    Option(name='stride', value=2)
    """
    named = [Option(name, value) for name, value in given.items() if value is not None]
    if len(named) > 1:
        both = " and ".join(f"{name}={value!r}" for name, value in named)
        raise TypeError(f"{function}: {both} are one option: give it by one of its names")
    return named[0] if named else Option(next(iter(given)), default)


@dataclass(frozen=True, kw_only=True)
class ConvOptions:
    """The arguments of a convolution but for its operands; some have two names."""

    border_mode: BorderMode | Literal["causal"] | None = None
    subsample: Ints | None = None
    filter_flip: bool = True
    filter_dilation: Ints | None = None
    num_groups: int | None = None
    stride: Ints | None = None
    padding: BorderMode | None = None
    dilation: Ints | None = None
    groups: int | None = None

    def border(self, name: str) -> Option:
        """Return the border of a function by its name."""
        return either(name, "valid", border_mode=self.border_mode, padding=self.padding)

    def group_count(self, name: str) -> Option:
        """Return the number of groups."""
        return either(name, 1, num_groups=self.num_groups, groups=self.groups)

    def strides(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the stride along each spatial axis."""
        return per_axis(*either(name, 1, subsample=self.subsample, stride=self.stride), rank)

    def dilations(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the dilation along each spatial axis."""
        given = either(name, 1, filter_dilation=self.filter_dilation, dilation=self.dilation)
        return per_axis(*given, rank)


def operands_of(
    name: str, rank: int, input: TensorLike, filters: TensorLike, bias: TensorLike | None
) -> list[TensorVariable]:
    """Return the operands in a common dtype, with checked ranks.

    Raises
    ------
    TypeError
        If one is not an array of floats.
    ValueError
        If one has another rank.
    """
    wanted = {"input": rank + 2, "filters": rank + 2, "bias": 1}
    given = zip(wanted, (input, filters, bias), strict=True)
    operands = {what: pt.as_tensor(value) for what, value in given if value is not None}
    for what, x in operands.items():
        if x.type.dtype not in ("float16", "float32", "float64"):
            raise TypeError(
                f"{name}: {what} {x} must be an array of floats; it has dtype {x.type.dtype}"
            )
        if x.type.ndim != wanted[what]:
            raise ValueError(
                f"{name}: {what} {x} must have {wanted[what]} dimensions; it has {x.type.ndim}"
            )
    dtype = str(np.result_type(*(x.type.dtype for x in operands.values())))
    return [pt.cast(x, dtype) for x in operands.values()]


def shape_of(filters: TensorVariable) -> tuple[int | None, ...]:
    """Return the shape of filters, from their type or current value."""
    if isinstance(filters, SharedVariable):
        return tuple(np.shape(filters.get_value(borrow=True)))
    return tuple(filters.type.shape)


def check_channels(
    name: str, images: TensorVariable, filters: TensorVariable, groups: Option
) -> None:
    """Raise if the known channels of images and filters do not fit the groups."""
    (n_groups,) = per_axis(*groups, 1)
    channels, (outputs, seen) = images.type.shape[1], shape_of(filters)[:2]
    if outputs is not None and outputs % n_groups:
        raise ValueError(
            f"{name}: {outputs} filters cannot be divided into {groups.name}={n_groups}"
        )
    if channels is not None and channels % n_groups:
        raise ValueError(
            f"{name}: {channels} channels cannot be divided into {groups.name}={n_groups}"
        )
    if channels is not None and seen is not None and channels != seen * n_groups:
        raise ValueError(
            f"{name}: the images have {channels} channels and the filters {seen} for each of "
            f"{groups.name}={n_groups}, which takes {seen * n_groups} channels"
        )


def check_bias(name: str, bias: Sequence[TensorVariable], outputs: int | None) -> None:
    """Raise if the known length of a bias is not the number of output channels."""
    for vector in bias:
        (length,) = shape_of(vector)
        if length is not None and outputs is not None and length != outputs:
            raise ValueError(
                f"{name}: bias {vector} has {length} elements, the result {outputs} channels"
            )


def filter_sizes(name: str, filters: TensorVariable) -> tuple[int | None, ...]:
    """Return the spatial sizes of filters, None for unknown ones."""
    sizes = shape_of(filters)[2:]
    if 0 in sizes:
        raise ValueError(
            f"{name}: the filters {filters} are empty: their spatial sizes are {sizes}"
        )
    return sizes


def pairs_of(
    argument: str, value: int | Sequence[int | tuple[int, int]], rank: int
) -> tuple[tuple[int, int], ...]:
    """Return a padding given by numbers as a pair for each axis."""
    entries = [value] * rank if isinstance(value, int) else list(value)
    if len(entries) != rank:
        raise ValueError(
            f"{argument}={value!r} must be a number, or for each of the {rank} spatial "
            "axes a number or a pair (before, after)"
        )
    padding = [per_axis(argument, entry, 2, smallest=0) for entry in entries]
    return tuple((before, after) for before, after in padding)


def check_room(
    name: str, images: TensorVariable, pads: Sequence[tuple[int, int]], spans: Sizes
) -> None:
    """Raise if an image is known to be smaller than a window."""
    sizes = images.type.shape[2:]
    for axis, (size, pair, reach) in enumerate(zip(sizes, pads, spans, strict=True)):
        if isinstance(size, int) and isinstance(reach, int) and size + sum(pair) < reach:
            raise ValueError(
                f"{name}: spatial axis {axis} of the input has {size} elements and {sum(pair)} of "
                f"padding, but a window takes {reach}"
            )


def pads_of(
    option: Option, images: TensorVariable, spans: Sizes, strides: Sequence[int]
) -> list[tuple[Size, Size]]:
    """Return the zeros before and after each spatial axis."""
    name, mode = option
    if not isinstance(mode, str):
        return list(pairs_of(name, mode, len(spans)))
    if mode == "causal":
        return [(reach - 1, 0) for reach in spans]
    if mode not in BORDER_MODES:
        names = ", ".join(map(repr, BORDER_MODES))
        raise ValueError(
            f"{name}={mode!r} is not known: choose one of {names}, a number, or for each "
            "spatial axis a number or a pair (before, after)"
        )
    if mode == "valid":
        return [(0, 0)] * len(spans)
    if mode == "full":
        return [(reach - 1, reach - 1) for reach in spans]
    if mode == "half":
        return [(reach // 2, reach // 2) for reach in spans]
    return same_pads(sizes_of(images), spans, strides, upper=mode == "same_upper")
