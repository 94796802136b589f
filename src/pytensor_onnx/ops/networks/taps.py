"""Positions of the elements that windows read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.network_op import (
    NetworkOp,
    Size,
    Sizes,
    size_of,
    sizes_of,
    window_count,
)
from pytensor_onnx.ops.networks.windows import pad_constant

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


# Gather windows by the positions of their elements, for images of known sizes.
#
# One Gather copies all channels and images of an element at once, or, for many images, all images
# of an element of one channel, which saves a transposition. Slices copy rows of a tap, which takes
# longer for short images (benchmarks/NOTES.md).

MOST_POSITIONS = 1 << 12
MOST_POSITIONS_OF_BATCH = 1 << 16
"""Length of the vector of positions, a constant of the graph, above which slices are as fast.

The second number is for images with long rows, whose slices are slower.
"""

_FEWEST_IMAGES = 8
"""Images from which on it is faster to copy those of one channel at once (benchmarks/NOTES.md)."""


def tap_positions(
    sizes: Sizes,
    filter_sizes: Sizes,
    counts: Sizes,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Pairs,
    most: int = MOST_POSITIONS,
) -> np.ndarray | None:
    """Return the position of each tap of each window, None if it is unknown or there are too many.

    Parameters
    ----------
    sizes, filter_sizes, counts
        Size of the images, number of taps, and of windows, along each spatial axis.
    strides, dilations
        Distances between windows, and between taps.
    pads
        Zeros before and after each axis.
    most
        Largest number of positions.

    Returns
    -------
    numpy.ndarray or None
        Positions in images whose spatial axes are one axis, of shape (*K, *L). Padding has the
        position after the last one.

    Examples
    --------
    >>> tap_positions([3], [2], [4], [1], [1], [(1, 1)])
    array([[3, 0, 1, 2],
           [0, 1, 2, 3]])
    """
    known = [n for n in (*sizes, *filter_sizes, *counts) if isinstance(n, int)]
    rank = len(strides)
    if len(known) < 3 * rank or product(known[rank:]) > most or 0 in known:
        return None
    positions, is_inside = np.zeros((), np.int64), np.ones((), bool)
    for i in range(rank):
        (size, taps, count), (before, _) = known[i::rank], pads[i]
        axis = np.arange(taps)[:, None] * dilations[i] + np.arange(count) * strides[i] - before
        axis = axis.reshape([1] * i + [taps] + [1] * (rank - 1) + [count] + [1] * (rank - 1 - i))
        positions = positions * size + axis
        is_inside = is_inside & (axis >= 0) & (axis < size)
    return np.where(is_inside, positions, product(known[:rank]))


def gather_windows(
    images: TensorVariable, positions: np.ndarray, *, with_images: bool = False
) -> TensorVariable:
    """Return the elements at positions in images (N, C, *S), as a matrix (positions * N, C).

    Parameters
    ----------
    images
        Images of known spatial sizes.
    positions
        Positions in images whose spatial axes are one axis, with one zero after the last element.
    with_images
        Whether to return a matrix (positions, N * C).

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> images = pt.tensor(shape=(4, 2, 3, 5))
    >>> gather_windows(images, np.arange(6)).type.shape
    (24, 2)
    """
    n, c = size_of(images, 0), size_of(images, 1)
    rank = images.type.ndim
    length = int(np.prod(images.type.shape[2:]))
    rest = -1 if is_filled(c) and not isinstance(n, int) else n * c
    rows = images.transpose((*range(2, rank), 0, 1)).reshape((length, rest))
    flat = positions.ravel()
    if not np.array_equal(flat, np.arange(length)):
        if (flat == length).any():
            rows = pad_constant(rows, ((0, 1), (0, 0)), 0)
        rows = rows[pt.constant(flat)]
    if with_images:
        return rows
    return rows.reshape((-1 if rest == -1 else flat.size * n, c))


def has_long_rows(images: TensorVariable) -> bool:
    """Return whether the images of a batch are so many that `gather_batches` is faster."""
    n = size_of(images, 0)
    return isinstance(n, int) and n >= _FEWEST_IMAGES


def gather_batches(images: TensorVariable, positions: np.ndarray) -> TensorVariable:
    """Return the elements at positions in images (N, C, *S), as an array (C, positions, N).

    Parameters are those of `gather_windows`, for a known number of images.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> images = pt.tensor(shape=(8, 2, 3, 5))
    >>> gather_batches(images, np.arange(6)).type.shape
    (2, 6, 8)
    """
    length = int(np.prod(images.type.shape[2:]))
    flat = positions.ravel()
    rows = pt.moveaxis(images, 0, -1).reshape((size_of(images, 1), length, size_of(images, 0)))
    if np.array_equal(flat, np.arange(length)):
        return rows
    if (flat == length).any():
        rows = pad_constant(rows, ((0, 0), (0, 1), (0, 0)), 0)
    return rows[:, pt.constant(flat)]


def is_filled(*sizes: Size) -> bool:
    """Return whether sizes are known not to be zero, so that a reshape infers another size.

    Examples
    --------
    >>> is_filled(3, 2), is_filled(3, 0)
    (True, False)
    """
    return all(isinstance(size, int) and size > 0 for size in sizes)


class Convolution(NetworkOp):
    """Base of the Ops of convolution, with the geometry of filters and images.

    Parameters
    ----------
    filter_sizes
        Spatial sizes of the filters, None for sizes that are unknown until run time.
    pads
        Zeros before and after each spatial axis of the images.
    strides, dilations
        Distances between windows, and between the taps of one window.
    groups
        Number of groups that the channels are divided into.
    """

    __props__: tuple[str, ...] = ("filter_sizes", "pads", "strides", "dilations", "groups")
    filter_sizes: tuple[int | None, ...]
    pads: Pairs
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int

    def geometry(self) -> dict[str, object]:
        """Return the parameters that an adjoint shares."""
        return {name: getattr(self, name) for name in Convolution.__props__}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the ONNX operator, without defaults."""
        attributes: dict[str, Any] = {}
        if None not in self.filter_sizes:
            attributes["kernel_shape"] = [k for k in self.filter_sizes if k is not None]
        if any(map(any, self.pads)):
            attributes["pads"] = [pair[i] for i in (0, 1) for pair in self.pads]
        if max(self.strides) > 1:
            attributes["strides"] = list(self.strides)
        if max(self.dilations) > 1:
            attributes["dilations"] = list(self.dilations)
        if self.groups > 1:
            attributes["group"] = self.groups
        return attributes

    def filter_sizes_of(self, filters: TensorVariable) -> Sizes:
        """Return the spatial sizes of filters, ints if known."""
        return self.filter_sizes_from(sizes_of(filters))

    def filter_sizes_from(self, sizes: Sizes) -> Sizes:
        """Return the spatial sizes of filters from their sizes at run time."""
        axes = zip(self.filter_sizes, sizes, strict=True)
        return [own if known is None else known for known, own in axes]

    def grouped(self, *sizes: Size) -> tuple[Size, ...]:
        """Return a shape with an axis for the groups before the last two, if there are groups."""
        groups = () if self.groups == 1 else (self.groups,)
        return (*sizes[:-2], *groups, *sizes[-2:])

    def spans(self, filter_sizes: Sizes) -> Sizes:
        """Return the number of elements that a window spans along each spatial axis."""
        return [span(k, d) for k, d in zip(filter_sizes, self.dilations, strict=True)]

    def counts(self, sizes: Sizes, filter_sizes: Sizes) -> Sizes:
        """Return the number of windows along each spatial axis."""
        axes = zip(sizes, self.pads, self.spans(filter_sizes), self.strides, strict=True)
        return [window_count(size, sum(pads) - reach, stride) for size, pads, reach, stride in axes]

    def __str__(self) -> str:
        options = [f"filter_sizes={self.filter_sizes}"]
        options += [f"pads={self.pads}"] if any(map(any, self.pads)) else []
        options += [f"strides={self.strides}"] if max(self.strides) > 1 else []
        options += [f"dilations={self.dilations}"] if max(self.dilations) > 1 else []
        options += [f"groups={self.groups}"] if self.groups > 1 else []
        return f"{type(self).__name__}{{{', '.join(options)}}}"


def split_by_groups(size: Size, groups: int) -> Size:
    """Return the number of channels of one group.

    Examples
    --------
    >>> split_by_groups(6, 3)
    2
    """
    return size if groups == 1 else size // groups
