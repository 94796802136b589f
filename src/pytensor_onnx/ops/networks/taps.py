"""Gather the elements under the taps of filters for all windows (im2col), and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.padding import pad_constant
from pytensor_onnx.ops.networks.static_sizes import Size, Sizes, sizes_of

type Pairs = Sequence[tuple[int, int]]

_MOST_SLICES = 32

# Products for single taps are faster from these sizes on (benchmarks/NOTES.md).
_FEWEST_CHANNELS, _FEWEST_WINDOWS = 16, 2048


def span(count: Size, distance: int) -> Size:
    """Return the number of elements spanned by elements at a distance."""
    return (count - 1) * distance + 1


def product(sizes: Sizes) -> Size:
    """Return the product of sizes.

    Examples
    --------
    >>> product([2, 3])
    6
    """
    return reduce(mul, sizes, 1)


def crop(x: TensorVariable, sizes: Sizes, starts: Sequence[int] | None = None) -> TensorVariable:
    """Return a box of the axes after the first two, the array itself if the box is all of it."""
    firsts = [0] * len(sizes) if starts is None else starts
    if list(firsts) == [0] * len(sizes) and list(x.type.shape[2:]) == list(sizes):
        return x
    box = [slice(first, first + size) for first, size in zip(firsts, sizes, strict=True)]
    return x[(slice(None), slice(None), *box)]


def take_windows(
    x: TensorVariable,
    filter_sizes: Sizes,
    counts: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> TensorVariable:
    """Gather the elements at each tap in each window, as an array (N, C, taps * L, *rest).

    Here (L, *rest) are the numbers of windows along each axis. The taps of the first axis vary
    fastest, whereas in filters they vary slowest: so only the concatenation of slices copies.

    Parameters
    ----------
    x
        Padded array (N, C, *S).
    filter_sizes, counts
        Number of taps, and of windows, along each axis.
    strides, dilations
        Distances between windows, and between taps.
    """
    for i in range(len(strides)):
        x = _gathered(x, 2 + i, filter_sizes[i], counts[i], strides[i], dilations[i], into=2)
    return x


def stack_windows(
    x: TensorVariable,
    filter_sizes: Sizes,
    counts: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> TensorVariable:
    """Gather the elements at each tap in each window, as an array (C, taps * N, *L).

    The taps have the order of filters. Parameters are those of `take_windows`, but for an array (C,
    N, *S), whose first axis are the channels.
    """
    for i in reversed(range(len(strides))):
        x = _gathered(x, 2 + i, filter_sizes[i], counts[i], strides[i], dilations[i], into=1)
    return x


def _gathered(
    x: TensorVariable,
    axis: int,
    taps: Size,
    count: Size,
    stride: int,
    dilation: int,
    *,
    into: int,
) -> TensorVariable:
    """Gather the elements at each tap in the windows along one axis, the taps joined to another."""
    before = (slice(None),) * axis
    if isinstance(taps, int) and taps <= _MOST_SLICES:
        seen = [x[(*before, _tap(k, taps, stride, dilation))] for k in range(taps)]
        return seen[0] if taps == 1 else pt.concatenate(seen, axis=into)
    positions = pt.arange(taps)[:, None] * dilation + pt.arange(count) * stride
    return _merge(pt.moveaxis(x[(*before, positions)], axis, into), into)


def taps_of(
    x: TensorVariable,
    filter_sizes: Sequence[int],
    counts: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[TensorVariable]:
    """Return the elements at each tap of filters, in their order, as arrays (C, N, *L).

    Parameters are those of `stack_windows`.
    """
    everything = (slice(None),) * 2
    return [
        x[(*everything, *map(_tap, taps, filter_sizes, strides, dilations))]
        for taps in np.ndindex(*filter_sizes)
    ]


def has_large_taps(channels: Size, windows: Size, filter_sizes: Sizes) -> bool:
    """Return whether one product for each tap beats one for all, which copies the windows."""
    taps = product(filter_sizes)
    return (
        isinstance(channels, int)
        and isinstance(windows, int)
        and isinstance(taps, int)
        and 1 < taps <= _MOST_SLICES
        and channels >= _FEWEST_CHANNELS
        and windows >= _FEWEST_WINDOWS
    )


def _tap(tap: int, taps: int, stride: int, dilation: int) -> slice:
    """Return the slice of the elements at one tap of an axis in all windows."""
    return slice(tap * dilation, (tap + 1 - taps) * dilation or None, stride)


def add_windows(
    windows: TensorVariable,
    filter_sizes: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> TensorVariable:
    """Sum the values of windows for each element, the adjoint of `take_windows`.

    Parameters
    ----------
    windows
        Array (N, C, taps, *L) for each tap of a filter and each window.
    filter_sizes
        Number of taps along each axis.
    strides, dilations
        Distances between windows, and between taps.

    Returns
    -------
    TensorVariable
        Array (N, C, *S) of the elements up to the last tap, and ``stride - 1`` further zeros.
    """
    for i, (taps, stride, dilation) in enumerate(
        zip(filter_sizes, strides, dilations, strict=True)
    ):
        axis, rest = 3 + i, product(filter_sizes[i + 1 :])
        windows = _spread(windows, axis, stride)
        if isinstance(taps, int) and taps <= _MOST_SLICES:
            seen = [windows]
            if taps > 1:
                seen = pt.split(windows, [rest] * taps, n_splits=taps, axis=2)
            parts = [
                _pad_axis(part, axis, (tap * dilation, (taps - 1 - tap) * dilation))
                for tap, part in enumerate(seen)
            ]
            windows = reduce(add, parts)
        else:
            sizes = sizes_of(windows, 0)
            apart = windows.reshape((*sizes[:2], taps, rest, *sizes[3:]))
            positions = pt.arange(taps)[:, None] * dilation + pt.arange(sizes[axis])
            sizes[2], sizes[axis] = rest, sizes[axis] + (taps - 1) * dilation
            total = pt.zeros(sizes, dtype=windows.type.dtype)
            seen = pt.moveaxis(apart, 2, axis)
            windows = total[(*(slice(None),) * axis, positions)].inc(seen)
    return _merge(windows, 1)


def _merge(x: TensorVariable, axis: int) -> TensorVariable:
    """Merge an axis with the next one."""
    sizes = sizes_of(x, 0)
    return x.reshape((*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :]))


def _spread(x: TensorVariable, axis: int, distance: int) -> TensorVariable:
    """Insert zeros after each element of an axis, so that elements are a distance apart."""
    if distance == 1:
        return x
    apart = _pad_axis(pt.expand_dims(x, axis + 1), axis + 1, (0, distance - 1))
    return _merge(apart, axis)


def _pad_axis(x: TensorVariable, axis: int, widths: tuple[int, int]) -> TensorVariable:
    return pad_constant(x, tuple(widths if i == axis else (0, 0) for i in range(x.type.ndim)), 0)
