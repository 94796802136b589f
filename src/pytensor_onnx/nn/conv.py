"""Convolution of images of shape (N, C, *S), in one to three spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv_ops import Conv
from pytensor_onnx.nn.taps import Size, Sizes, sizes_of, span
from pytensor_onnx.nn.windows import Ints, per_axis

BorderMode = (
    Literal["valid", "full", "half", "same_upper", "same_lower"]
    | int
    | Sequence[int | tuple[int, int]]
)
BORDER_MODES = ("valid", "full", "half", "same_upper", "same_lower")


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode = "valid",
    subsample: Ints = 1,
    filter_flip: bool = True,
    filter_dilation: Ints = 1,
    num_groups: int = 1,
    bias: TensorLike | None = None,
) -> TensorVariable:
    """Convolve sequences (N, C, W) with filters (O, C / groups, K); see `conv2d`."""
    return _convolve(
        "conv1d",
        input,
        filters,
        border_mode=border_mode,
        strides=subsample,
        dilations=filter_dilation,
        groups=num_groups,
        flip=filter_flip,
        bias=bias,
    )


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode = "valid",
    subsample: Ints = 1,
    filter_flip: bool = True,
    filter_dilation: Ints = 1,
    num_groups: int = 1,
    bias: TensorLike | None = None,
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
        Zeros around the images: ``"valid"`` none; ``"full"`` as many as let every window touch the
        image; ``"half"`` half a kernel, rounded down, on both sides; ``"same_upper"`` and
        ``"same_lower"`` as many as make the result ``ceil(H / subsample)`` high, the odd one below
        or above. Or a number, one for each axis, or a pair (before, after) for each axis.
    subsample
        Distance between windows, one number or one for each axis.
    filter_flip
        Whether to flip the filters, as the mathematical convolution does. Networks trained
        elsewhere are cross-correlations: there it is False. Constant filters are flipped once, at
        export.
    filter_dilation
        Distance between the taps of a window, one number or one for each axis.
    num_groups
        Groups of channels that filters are divided among: filter ``o`` sees only the channels of
        group ``o // (O / num_groups)``.
    bias
        Vector (O,) that is added to the result, if any.

    Returns
    -------
    TensorVariable
        Result (N, O, H', W') in the dtype that input and filters have in common, where
        ``H' = (H + pads - ((KH - 1) * dilation + 1)) // subsample + 1``. A model has one Conv.

    Raises
    ------
    TypeError
        If an array is not of floats, or an option of a wrong type.
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
    >>> [node.op_type for node in export_onnx([images, filters], result).model.graph]
    ['Conv']
    """
    return _convolve(
        "conv2d",
        input,
        filters,
        border_mode=border_mode,
        strides=subsample,
        dilations=filter_dilation,
        groups=num_groups,
        flip=filter_flip,
        bias=bias,
    )


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    border_mode: BorderMode = "valid",
    subsample: Ints = 1,
    filter_flip: bool = True,
    filter_dilation: Ints = 1,
    num_groups: int = 1,
    bias: TensorLike | None = None,
) -> TensorVariable:
    """Convolve volumes (N, C, D, H, W) with filters (O, C / groups, *K); see `conv2d`."""
    return _convolve(
        "conv3d",
        input,
        filters,
        border_mode=border_mode,
        strides=subsample,
        dilations=filter_dilation,
        groups=num_groups,
        flip=filter_flip,
        bias=bias,
    )


def _convolve(
    name: str,
    input: TensorLike,
    filters: TensorLike,
    *,
    border_mode: BorderMode,
    strides: Ints,
    dilations: Ints,
    groups: int,
    flip: bool,
    bias: TensorLike | None,
) -> TensorVariable:
    rank = int(name[4])
    images, kernels, *vectors = _operands(name, rank, input, filters, bias)
    stride, dilation = (
        per_axis("subsample", strides, rank),
        per_axis("filter_dilation", dilations, rank),
    )
    _check_groups(name, images, kernels, groups)
    kernel = _kernel(kernels)
    taps = [own if k is None else k for k, own in zip(kernel, sizes_of(kernels), strict=True)]
    spans = [span(k, d) for k, d in zip(taps, dilation, strict=True)]
    pads = _pads(border_mode, sizes_of(images), spans, stride)
    if flip:
        kernels = kernels[(..., *[slice(None, None, -1)] * rank)]
    if not all(isinstance(n, int) for pair in pads for n in pair):
        images = pt.pad(images, [(0, 0), (0, 0), *pads])
        pads = [(0, 0)] * rank
    _check_room(name, images, pads, spans)
    op = Conv(kernel=kernel, pads=tuple(pads), strides=stride, dilations=dilation, groups=groups)
    return op(images, kernels, *vectors)


def _operands(
    name: str, rank: int, input: TensorLike, filters: TensorLike, bias: TensorLike | None
) -> list[TensorVariable]:
    """Return the operands in one dtype, their ranks checked."""
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


def _check_groups(name: str, images: TensorVariable, filters: TensorVariable, groups: int) -> None:
    (n_groups,) = per_axis("num_groups", groups, 1)
    channels, (outputs, seen) = images.type.shape[1], filters.type.shape[:2]
    if outputs is not None and outputs % n_groups:
        raise ValueError(f"{name}: {outputs} filters cannot be divided into num_groups={n_groups}")
    if channels is not None and channels % n_groups:
        raise ValueError(
            f"{name}: {channels} channels cannot be divided into num_groups={n_groups}"
        )
    if channels is not None and seen is not None and channels != seen * n_groups:
        raise ValueError(
            f"{name}: the images have {channels} channels and the filters {seen} for each of "
            f"num_groups={n_groups}, which takes {seen * n_groups} channels"
        )


def _kernel(filters: TensorVariable) -> tuple[int | None, ...]:
    """Return the spatial sizes of filters, by their type or the value that they have now."""
    value = filters.get_value(borrow=True) if isinstance(filters, SharedVariable) else None
    sizes = filters.type.shape[2:] if value is None else value.shape[2:]
    if any(size == 0 for size in sizes):
        raise ValueError(f"the filters {filters} have no taps: their spatial sizes are {sizes}")
    return tuple(sizes)


def _pads(
    mode: BorderMode, sizes: Sizes, spans: Sizes, strides: Sequence[int]
) -> list[tuple[Size, Size]]:
    """Return the zeros before and after each spatial axis."""
    if not isinstance(mode, str):
        return _pairs(mode, len(spans))
    if mode not in BORDER_MODES:
        raise ValueError(
            f"border_mode={mode!r} is not known: choose one of {', '.join(map(repr, BORDER_MODES))}, "
            "a number, or for each spatial axis a number or a pair (before, after)"
        )
    if mode == "valid":
        return [(0, 0)] * len(spans)
    if mode == "full":
        return [(reach - 1, reach - 1) for reach in spans]
    if mode == "half":
        return [(reach // 2, reach // 2) for reach in spans]
    axes = zip(sizes, spans, strides, strict=True)
    totals = [_same_total(size, reach, stride) for size, reach, stride in axes]
    upper = [(total // 2, total - total // 2) for total in totals]
    return upper if mode == "same_upper" else [pair[::-1] for pair in upper]


def _pairs(mode: int | Sequence[int | tuple[int, int]], rank: int) -> list[tuple[Size, Size]]:
    """Return a padding given by numbers as a pair for each axis."""
    entries = [mode] * rank if isinstance(mode, int) else list(mode)
    if len(entries) != rank:
        raise ValueError(
            f"border_mode={mode!r} must be a name, a number, or for each of the {rank} spatial axes a "
            "number or a pair (before, after)"
        )
    padding = [per_axis("border_mode", entry, 2, smallest=0) for entry in entries]
    return [(before, after) for before, after in padding]


def _same_total(size: Size, reach: Size, stride: int) -> Size:
    """Return how many zeros make a result of ``ceil(size / stride)``."""
    if stride == 1:
        return reach - 1
    total = (-(-size // stride) - 1) * stride + reach - size
    return max(total, 0) if isinstance(total, int) else pt.maximum(total, 0)


def _check_room(
    name: str, images: TensorVariable, pads: Sequence[tuple[int, int]], spans: Sizes
) -> None:
    """Raise where an image is known to be smaller than a window."""
    for axis, (size, pair, reach) in enumerate(zip(sizes_of(images), pads, spans, strict=True)):
        if isinstance(size, int) and isinstance(reach, int) and size + sum(pair) < reach:
            raise ValueError(
                f"{name}: spatial axis {axis} of the input has {size} cells and {sum(pair)} of "
                f"padding, but a window takes {reach}"
            )
