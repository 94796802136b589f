"""Imported convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.scalar.basic import EQ, Cast, IsNan
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.special import Softmax
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import (
    Size,
    as_vector,
    elements,
    known,
    like,
    size,
    sizes,
    static_ints,
)
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.attention_ops import SafeSoftmax
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT
from pytensor_onnx.ops.networks.windows import Windows, pad_with_zeros
from pytensor_onnx.rewriting.engine.predicates import elementwise


@onnx_import("Where")
def where(condition: TensorVariable, x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Choose elements of two operands.

    Exports of this package replace products over an axis of size zero by zeros, since ONNX Runtime
    leaves them as they are. PyTensor's products need no such choice.

    Rows of a softmax without finite scores are NaN, and attention replaces them by zeros. Their
    scores become zeros too, so that their gradients are zeros and not NaN.
    """
    value = known(x)
    if value is None:
        return pt.switch(condition, x, y)
    if not value.any() and _says_that_a_product_is_empty(condition, y):
        return y
    shares = y.owner.inputs[0] if elementwise(y, Cast) else y
    op = getattr(shares.owner, "op", None)
    if not isinstance(op, Softmax):
        return pt.switch(condition, x, y)
    (scores,) = shares.owner.inputs
    is_dead = elementwise(condition, IsNan) and condition.owner.inputs[0] in (y, shares)
    axes = [] if op.axis is None else np.atleast_1d(op.axis).tolist()
    if is_dead and shares is y and value.ndim == 0 and len(axes) == 1:
        return SafeSoftmax(axis=axes[0] % y.type.ndim)(scores)
    if is_dead:
        top = pt.max(scores, axis=op.axis, keepdims=True)
        condition = pt.isnan(top) | pt.isinf(top)
    elif not _is_one_for_rows(condition, scores, op.axis):
        return pt.switch(condition, x, y)
    shares = op(pt.switch(condition, pt.zeros_like(scores), scores))
    return pt.switch(condition, x, shares.astype(y.type.dtype))


def _is_one_for_rows(condition: TensorVariable, y: TensorVariable, axis: Any) -> bool:
    """Return whether a condition broadcasts along axes, and has no axis that others lack."""
    if condition.type.ndim > y.type.ndim:
        return False
    sizes = [1] * (y.type.ndim - condition.type.ndim) + list(condition.type.shape)
    is_alike = all(size in (1, n) for size, n in zip(sizes, y.type.shape, strict=True))
    return is_alike and all(sizes[a] == 1 for a in np.atleast_1d(axis))


def _says_that_a_product_is_empty(condition: TensorVariable, y: TensorVariable) -> bool:
    """Return whether a condition compares the inner size of a product of matrices with zero."""
    condition = _without_axes(condition)
    core = getattr(getattr(y.owner, "op", None), "core_op", getattr(y.owner, "op", None))
    is_product = isinstance(core, Dot) or type(core).__name__ == "Matmul"
    if not is_product or not elementwise(condition, EQ):
        return False
    size, zero = map(_without_axes, condition.owner.inputs)
    value = known(zero)
    if value is None or value.size != 1 or value.any():
        return False
    left, right = y.owner.inputs
    inner = [v.shape[v.type.ndim + axis] for v, axis in ((left, -1), (right, -2))]
    return any(equal_computations([size], [wanted]) for wanted in inner)


def _without_axes(variable: Any) -> Variable:
    """Return the array under axes of size one that are added to it."""
    while variable.owner is not None and len(variable.owner.inputs) == 1:
        if not isinstance(variable.owner.op, DimShuffle | MakeVector):
            break
        if isinstance(variable.owner.op, DimShuffle) and variable.owner.op.drop:
            break
        (variable,) = variable.owner.inputs
    return variable


type Pairs = list[tuple[Size, Size]]


def pairs(pads: Sequence[int] | None, rank: int) -> Pairs:
    """Return numbers before and after each axis.

    Examples
    --------
    >>> pairs((1, 2, 3, 4), 2)
    [(1, 3), (2, 4)]
    """
    if pads is None:
        return [(0, 0)] * rank
    return list(zip(pads[:rank], pads[rank:], strict=True))


def window_pads(
    x: TensorVariable,
    auto_pad: str,
    pads: Sequence[int] | None,
    spans: Sequence[int],
    strides: Sequence[int],
) -> Pairs:
    """Return the padding of each spatial axis of an array (N, C, *S)."""
    if auto_pad == "NOTSET":
        return pairs(pads, len(spans))
    if auto_pad == "VALID":
        return [(0, 0)] * len(spans)
    return [
        _same(size(x, axis + 2), span, stride, auto_pad == "SAME_UPPER")
        for axis, (span, stride) in enumerate(zip(spans, strides, strict=True))
    ]


def _same(length: Size, span: int, stride: int, upper: bool) -> tuple[Size, Size]:
    """Return the padding for ``ceil(length / stride)`` windows."""
    if stride == 1:
        total: Size = span - 1
    elif isinstance(length, int):
        total = max((-(-length // stride) - 1) * stride + span - length, 0)
    else:
        total = pt.maximum(((length + stride - 1) // stride - 1) * stride + span - length, 0)
    small = total // 2
    return (small, total - small) if upper else (total - small, small)


def are_known(padding: Pairs) -> bool:
    """Return whether all numbers are known."""
    return all(isinstance(n, int) for pair in padding for n in pair)


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


@onnx_import("NhwcMaxPool", domain=MICROSOFT)
def max_pool_of_last(
    x: TensorVariable,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Return the maximum of each window of arrays whose last axis has the channels."""
    (largest,) = max_pool(
        channels_first(x),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return with_channels_last(largest)


def channels_first(x: TensorVariable) -> TensorVariable:
    """Move the last axis, that of the channels, behind the first."""
    return pt.moveaxis(x, -1, 1)


def with_channels_last(x: TensorVariable) -> TensorVariable:
    """Move the second axis, that of the channels, to the end."""
    return pt.moveaxis(x, 1, -1)


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


@onnx_import("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose_by_pads(
    x: TensorVariable,
    filters: TensorVariable,
    pads: TensorVariable | None = None,
    bias: TensorVariable | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> TensorVariable:
    """Apply the adjoint of a correlation, with a padding that is an operand."""
    return conv_transpose(
        x,
        filters,
        bias,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        output_padding=output_padding,
        pads=static_ints(pads, "pads"),
        strides=strides,
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
