"""Gather windows by the positions of their elements, for images of known sizes.

One Gather copies all channels and images of an element at once, or, for many images, all images of
an element of one channel, which saves a transposition. Slices copy rows of a tap, which takes
longer for short images (benchmarks/NOTES.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.padding import pad_constant
from pytensor_onnx.ops.networks.static_sizes import Size, Sizes, size_of
from pytensor_onnx.ops.networks.taps import Pairs, product

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
