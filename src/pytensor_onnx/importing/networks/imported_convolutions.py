"""Convolutions of images, and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.window_geometry import pairs
from pytensor_onnx.importing.registry.known_values import size
from pytensor_onnx.importing.registry.operator_imports import onnx_import

_CONV = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
_TRANSPOSE = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}
_BORDERS = {"VALID": "valid", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}


@onnx_import("Conv")
def conv(
    x: TensorVariable,
    filters: TensorVariable,
    bias: TensorVariable | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> TensorVariable:
    """Correlate images with filters."""
    rank = _rank(x, filters)
    filters = _with_kernel(filters, kernel_shape)
    border: Any = pairs(pads, rank) if auto_pad == "NOTSET" else _BORDERS[auto_pad]
    return _CONV[rank](
        x,
        filters,
        border_mode=border,
        subsample=tuple(strides or (1,) * rank),
        filter_flip=False,
        filter_dilation=tuple(dilations or (1,) * rank),
        num_groups=group,
        bias=bias,
    )


def _rank(x: TensorVariable, filters: TensorVariable) -> int:
    rank = x.type.ndim - 2
    if rank not in _CONV or filters.type.ndim != x.type.ndim:
        raise UnsupportedCase(f"it has {rank} spatial axes; convolutions have one to three")
    return rank


def _with_kernel(filters: TensorVariable, kernel: Sequence[int] | None) -> TensorVariable:
    """Return filters with the spatial sizes that the node declares."""
    if kernel is None or None not in filters.type.shape[2:]:
        return filters
    return pt.specify_shape(filters, (None, None, *kernel))


@onnx_import("ConvTranspose")
def conv_transpose(
    x: TensorVariable,
    filters: TensorVariable,
    bias: TensorVariable | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> TensorVariable:
    """Apply the adjoint of a correlation."""
    rank = _rank(x, filters)
    filters = _with_kernel(filters, kernel_shape)
    steps, gaps = strides or (1,) * rank, dilations or (1,) * rank
    more = list(output_padding or (0,) * rank)
    if output_shape is not None or auto_pad.startswith("SAME"):
        wanted = None if output_shape is None else output_shape[-rank:]
        padding, more = _fitted(x, filters, wanted, steps, gaps, more, auto_pad)
    else:
        padding = pairs(None if auto_pad == "VALID" else pads, rank)
    return _TRANSPOSE[rank](
        x,
        filters,
        stride=tuple(steps),
        padding=padding,
        output_padding=tuple(more),
        dilation=tuple(gaps),
        groups=group,
        bias=bias,
    )


def _fitted(
    x: TensorVariable,
    filters: TensorVariable,
    wanted: Sequence[int] | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    more: list[int],
    auto_pad: str,
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the crop, and the padding of the result, for the sizes of a result."""
    padding, extra = [], []
    for axis, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
        taps, length = filters.type.shape[axis + 2], size(x, axis + 2)
        if taps is None or (wanted is not None and not isinstance(length, int)):
            raise UnsupportedCase(
                "its padding follows from sizes that are not known at import",
                "from_onnx(model, shapes={name: sizes})",
            )
        span = (taps - 1) * dilation + 1
        if wanted is None:
            total = span - stride + more[axis]
        else:
            total = (int(length) - 1) * stride + span + more[axis] - wanted[axis]
        crop = max(total, 0)
        small = crop // 2
        is_upper = auto_pad == "SAME_UPPER"
        padding.append((small, crop - small) if is_upper else (crop - small, small))
        extra.append(more[axis] + max(-total, 0))
    return padding, extra
