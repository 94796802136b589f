"""What the taps of a kernel see of the spatial axes of an array (N, C, *S), and the adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.padding import pad_constant

Size = int | TensorVariable
Sizes = Sequence[Size]
Pairs = Sequence[tuple[int, int]]

_MOST_SLICES = 32


def size_of(x: TensorVariable, axis: int) -> Size:
    """Return the size of an axis, an int where the type knows it."""
    static = x.type.shape[axis]
    return x.shape[axis] if static is None else static


def sizes_of(x: TensorVariable) -> Sizes:
    """Return the sizes of the axes after the first two."""
    return [size_of(x, axis) for axis in range(2, x.type.ndim)]


def span(count: Size, distance: int) -> Size:
    """Return the number of cells from the first to the last of some that lie apart."""
    return (count - 1) * distance + 1


def product(sizes: Sizes) -> Size:
    """Return the product of sizes.

    Examples
    --------
    >>> product([2, 3])
    6
    """
    return reduce(mul, sizes, 1)


def pad_spatial(x: TensorVariable, pads: Pairs) -> TensorVariable:
    """Add zeros before and after the axes that come after the first two."""
    return pad_constant(x, ((0, 0), (0, 0), *pads), 0)


def crop(x: TensorVariable, sizes: Sizes, starts: Sequence[int] | None = None) -> TensorVariable:
    """Return a box of the axes after the first two, the array itself where that is all of it."""
    firsts = [0] * len(sizes) if starts is None else starts
    if list(firsts) == [0] * len(sizes) and list(x.type.shape[2:]) == list(sizes):
        return x
    box = [slice(first, first + size) for first, size in zip(firsts, sizes, strict=True)]
    return x[(slice(None), slice(None), *box)]


def take_windows(
    x: TensorVariable,
    kernel: Sizes,
    counts: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> TensorVariable:
    """Return what each tap sees in each window: (N, C, *S) becomes (N, C, *kernel, *counts).

    Parameters
    ----------
    x
        Array that is padded already.
    kernel, counts
        Number of taps, and of windows, along each axis.
    strides, dilations
        Distance of windows, and of taps.
    """
    n, c = size_of(x, 0), size_of(x, 1)
    rank = len(kernel)
    for i, (taps, count) in enumerate(zip(kernel, counts, strict=True)):
        before = (slice(None),) * (2 + i)
        stride, dilation = strides[i], dilations[i]
        if isinstance(taps, int) and taps <= _MOST_SLICES:
            starts = [tap * dilation for tap in range(taps)]
            seen = [x[(*before, slice(s, s + count * stride, stride))] for s in starts]
            x = seen[0] if taps == 1 else pt.concatenate(seen, axis=2 + i)
        else:
            cells = pt.arange(taps)[:, None] * dilation + pt.arange(count) * stride
            x = x[(*before, cells.ravel())]
    pairs = [size for pair in zip(kernel, counts, strict=True) for size in pair]
    taps_first = [2 + 2 * i + which for which in (0, 1) for i in range(rank)]
    return x.reshape((n, c, *pairs)).transpose((0, 1, *taps_first))


def add_windows(
    windows: TensorVariable,
    spans: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> TensorVariable:
    """Add up what windows hold for each cell, the adjoint of `take_windows`.

    Parameters
    ----------
    windows
        Array of shape (N, C, *kernel, *counts).
    spans
        Number of cells from the first to the last tap of a window, for each axis.
    strides, dilations
        Distance of windows, and of taps.
    """
    rank = len(spans)
    axis = 1 + rank
    before = (slice(None),) * axis
    for reach, stride, dilation in zip(spans, strides, dilations, strict=True):
        # The taps along this axis come third; without them it is always at the same place.
        taps, count = size_of(windows, 2), size_of(windows, axis + 1)
        rest = [size_of(windows, i) for i in range(windows.type.ndim) if i != 2]
        rest[axis] = (count - 1) * stride + reach
        total = pt.zeros(rest, dtype=windows.type.dtype)
        if isinstance(taps, int) and taps <= _MOST_SLICES:
            for tap in range(taps):
                first = tap * dilation
                cells = (*before, slice(first, first + count * stride, stride))
                total = total[cells].inc(windows[:, :, tap])
        else:
            cells = pt.arange(taps)[:, None] * dilation + pt.arange(count) * stride
            total = total[(*before, cells)].inc(pt.moveaxis(windows, 2, axis))
        windows = total
    return windows
