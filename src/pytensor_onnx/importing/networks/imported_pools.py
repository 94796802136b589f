"""Pooling over the spatial axes of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.window_geometry import are_known, pairs, window_pads
from pytensor_onnx.importing.registry.known_values import as_vector, elements, like, size, sizes
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.windows import Windows
from pytensor_onnx.ops.networks.zero_padding import pad_with_zeros

type Ints = Sequence[int] | None


@onnx_import("MaxPool")
def max_pool(
    x: TensorVariable,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    storage_order: int = 0,
    strides: Ints = None,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Return the maximum of each window, and its position in the array."""
    windows = _windows(kernel_shape, strides, dilations, ceil_mode)
    windows, x, _ = _padded(x, windows, auto_pad, pads, is_max=True)
    if outputs > 1:
        return _with_positions(x, windows, storage_order)
    if x.type.dtype.startswith("float"):
        return [_pooled(nn.max_pool, x, windows)]
    # Integers of 8 bits are exact in float32.
    return [_pooled(nn.max_pool, x.astype("float32"), windows).astype(x.type.dtype)]


@onnx_import("AveragePool")
def average_pool(
    x: TensorVariable,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Return the mean of each window."""
    windows = _windows(kernel_shape, strides, dilations, ceil_mode)
    windows, padded, mask = _padded(x, windows, auto_pad, pads)
    if mask is None or count_include_pad:
        return _pooled(nn.avg_pool, padded, windows, count_include_pad=bool(count_include_pad))
    return _pooled(nn.avg_pool, padded, windows) / _pooled(nn.avg_pool, mask, windows)


@onnx_import("LpPool")
def lp_pool(
    x: TensorVariable,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    p: int = 2,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Return a norm of each window."""
    windows = _windows(kernel_shape, strides, dilations, ceil_mode)
    windows, x, _ = _padded(x, windows, auto_pad, pads)
    return _pooled(nn.lp_pool, x, windows, p=p)


def _windows(kernel: Sequence[int], strides: Ints, dilations: Ints, ceil_mode: int) -> Windows:
    """Return windows without padding."""
    rank = len(kernel)
    if rank not in (1, 2, 3):
        raise UnsupportedCase(f"it has {rank} spatial axes; pools have one to three")
    steps, gaps = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    return Windows(tuple(kernel), steps, ((0, 0),) * rank, gaps, bool(ceil_mode))


def _padded(
    x: TensorVariable, windows: Windows, auto_pad: str, pads: Ints, is_max: bool = False
) -> tuple[Windows, TensorVariable, TensorVariable | None]:
    """Return windows with padding, and the array and a mask with padding of unknown size."""
    spans = [(k - 1) * d + 1 for k, d in zip(windows.window, windows.dilation, strict=True)]
    padding = window_pads(x, auto_pad, pads, spans, windows.stride)
    mask = None
    if not are_known(padding):
        mask = pad_with_zeros(pt.ones_like(x), padding)
        x = pad_with_zeros(x, padding)
        if is_max:
            x = pt.switch(pt.eq(mask, like(x, 0)), like(x, -np.inf), x)
        padding = pairs(None, windows.rank)
    known = tuple((int(a), int(b)) for a, b in padding)
    return replace(windows, padding=known), x, mask


def _pooled(
    pool: Callable[..., TensorVariable], x: TensorVariable, windows: Windows, **options: Any
) -> TensorVariable:
    return pool(
        x,
        windows.window,
        stride=windows.stride,
        padding=windows.padding,
        dilation=windows.dilation,
        ceil_mode=windows.ceil_mode,
        **options,
    )


def _with_positions(
    x: TensorVariable, windows: Windows, storage_order: int
) -> list[TensorVariable]:
    """Return the maxima and their positions in the flat array, of equal ones the first."""
    rank, spatial = windows.rank, sizes(x)[2:]
    taps, places, inside = x, [], []
    for axis in range(rank):
        first, dilation = windows.padding[axis][0], windows.dilation[axis]
        starts = pt.arange(windows.count(spatial[axis], axis)) * windows.stride[axis] - first
        place = starts[:, None] + pt.arange(windows.window[axis]) * dilation
        inside.append((place >= 0) & (place < spatial[axis]))
        places.append(pt.clip(place, 0, spatial[axis] - 1))
        taps = taps.take(places[-1], axis=2 + 2 * axis)
    counts = [2 + 2 * axis for axis in range(rank)]
    order = [0, 1, *counts, *(axis + 1 for axis in counts)]
    taps = taps.dimshuffle(order)
    spread = [_spread(v, axis, rank) for axis, v in enumerate(inside)]
    is_inside = spread[0]
    for more in spread[1:]:
        is_inside = is_inside & more
    lowest = -np.inf if x.type.dtype.startswith("float") else np.iinfo(x.type.dtype).min
    taps = pt.switch(is_inside, taps, like(x, lowest))
    taps = pt.join_dims(taps, start_axis=2 + rank, n_axes=rank)
    best = pt.argmax(taps, axis=-1)
    return [taps.max(axis=-1), _flat_positions(x, best, places, windows, storage_order)]


def _spread(place: TensorVariable, axis: int, rank: int) -> TensorVariable:
    """Return an array (windows, taps) of one axis with all axes of windows, then of taps."""
    order: list[Any] = ["x"] * (2 * rank)
    order[axis], order[rank + axis] = 0, 1
    return place.dimshuffle(order)


def _flat_positions(
    x: TensorVariable,
    best: TensorVariable,
    places: Sequence[TensorVariable],
    windows: Windows,
    storage_order: int,
) -> TensorVariable:
    rank, lengths = windows.rank, sizes(x)
    taps = pt.unravel_index(best, windows.window)
    found = []
    for axis in range(rank):
        starts = pt.arange(best.shape[2 + axis])
        starts = starts.dimshuffle([0 if a == axis else "x" for a in range(rank)])
        found.append(places[axis][starts, taps[axis]])
    spatial = list(enumerate(found))
    position: Any = 0
    for axis, place in reversed(spatial) if storage_order else spatial:
        position = position * lengths[2 + axis] + place
    total: Any = 1
    for length in lengths[2:]:
        total = total * length
    image = pt.arange(lengths[0])[:, None] * lengths[1] + pt.arange(lengths[1])[None, :]
    return (pt.shape_padright(image * total, rank) + position).astype("int64")


@onnx_import("MaxUnpool")
def max_unpool(
    x: TensorVariable,
    positions: TensorVariable,
    output_shape: TensorVariable | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Write maxima to their positions in an array of zeros."""
    rank = len(kernel_shape)
    steps, padding = strides or (1,) * rank, pairs(pads, rank)
    natural = [
        (size(x, 2 + axis) - 1) * steps[axis] + kernel_shape[axis] - sum(padding[axis])
        for axis in range(rank)
    ]
    shape = [size(x, 0), size(x, 1), *natural]
    target = shape if output_shape is None else elements(output_shape)
    flat = positions.reshape((-1,))
    if output_shape is not None:
        # Positions count in the array of the natural size.
        flat = pt.ravel_multi_index(pt.unravel_index(flat, as_vector(shape)), as_vector(target))
    zeros = pt.zeros((pt.prod(as_vector(target)),), dtype=x.type.dtype)
    return pt.set_subtensor(zeros[flat], x.reshape((-1,))).reshape(tuple(target))


@onnx_import("GlobalAveragePool")
def global_average_pool(x: TensorVariable) -> TensorVariable:
    """Return the mean over the spatial axes."""
    return nn.global_avg_pool(x)


@onnx_import("GlobalMaxPool")
def global_max_pool(x: TensorVariable) -> TensorVariable:
    """Return the maximum over the spatial axes."""
    return nn.global_max_pool(x)


@onnx_import("GlobalLpPool")
def global_lp_pool(x: TensorVariable, *, p: int = 2) -> TensorVariable:
    """Return a norm over the spatial axes."""
    return nn.global_lp_pool(x, p)
