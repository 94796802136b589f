"""Multiply windows of images by the gradient of a convolution: the gradient of its filters."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.conv_geometry import Convolution, split_by_groups
from pytensor_onnx.ops.networks.static_sizes import Size, Sizes, size_of, sizes_of
from pytensor_onnx.ops.networks.tap_positions import (
    MOST_POSITIONS,
    MOST_POSITIONS_OF_BATCH,
    gather_batches,
    gather_windows,
    has_long_rows,
    is_filled,
    tap_positions,
)
from pytensor_onnx.ops.networks.taps import (
    has_large_taps,
    product,
    stack_windows,
    take_windows,
    taps_of,
)
from pytensor_onnx.ops.networks.zero_padding import pad_with_zeros


def multiply_windows(
    op: Convolution, images: TensorVariable, gradient: TensorVariable, filter_sizes: Sizes
) -> TensorVariable:
    """Multiply the elements at each tap by the gradient, and sum over images.

    Parameters
    ----------
    op
        Geometry of the convolution.
    images, gradient
        Arrays (N, C, *S) and (N, O, *L).
    filter_sizes
        Sizes K of the filters.

    Returns
    -------
    TensorVariable
        Gradient (O, C / groups, *K) of the filters.
    """
    counts = sizes_of(gradient)
    if op.groups > 1:
        return _by_image(op, images, gradient, filter_sizes)
    n, c, o = size_of(images, 0), size_of(images, 1), size_of(gradient, 1)
    windows = n * product(counts)
    positions = gathered_positions(op, images, filter_sizes, counts)
    if positions is not None:
        # The images come last, as in the positions, so that each transposition is of a matrix.
        matrix = matrix_of_windows(images, positions, filter_sizes)
        rest = windows if isinstance(n, int) or not is_filled(c, o) else -1
        gradient = pt.moveaxis(gradient, 0, -1).reshape((o, rest))
        return (gradient @ matrix.T).reshape((o, c, *filter_sizes))
    padded = pad_with_zeros(images.swapaxes(0, 1), op.pads)
    gradient = gradient.swapaxes(0, 1).reshape((o, windows))
    if has_large_taps(c, windows, filter_sizes):
        seen = taps_of(padded, filter_sizes, counts, op.strides, op.dilations)
        products = [gradient @ tap.reshape((c, windows)).T for tap in seen]
        return pt.stack(products, axis=2).reshape((o, c, *filter_sizes))
    stacked = stack_windows(padded, filter_sizes, counts, op.strides, op.dilations)
    matrix = stacked.reshape((c * product(filter_sizes), windows))
    return (gradient @ matrix.T).reshape((o, c, *filter_sizes))


def gathered_positions(
    op: Convolution, images: TensorVariable, filter_sizes: Sizes, counts: Sizes
) -> np.ndarray | None:
    """Return the position of each tap of each window, None if the windows are not gathered."""
    most = MOST_POSITIONS
    if op.groups == 1 and has_long_rows(images):
        most = MOST_POSITIONS_OF_BATCH
    elif op.groups == 1:
        windows = size_of(images, 0) * product(counts)
        if has_large_taps(size_of(images, 1), windows, filter_sizes):
            return None
    return tap_positions(
        sizes_of(images), filter_sizes, counts, op.strides, op.dilations, op.pads, most
    )


def matrix_of_windows(
    images: TensorVariable, positions: np.ndarray, filter_sizes: Sizes
) -> TensorVariable:
    """Return the elements at the taps of all windows, as a matrix (C * taps, windows * N)."""
    n, c = size_of(images, 0), size_of(images, 1)
    taps = product(filter_sizes)
    rest = positions.size // taps * n if isinstance(n, int) or not is_filled(c) else -1
    if has_long_rows(images):
        return gather_batches(images, positions).reshape((c * taps, rest))
    return gather_windows(images, positions).T.reshape((c * taps, rest))


def _by_image(
    op: Convolution, images: TensorVariable, gradient: TensorVariable, filter_sizes: Sizes
) -> TensorVariable:
    """Return the gradient of grouped filters: one product for each image and group.

    Products over all images are twice as slow, as their rows are as few as a group's channels.
    """
    counts = sizes_of(gradient)
    n, c, o = size_of(images, 0), size_of(images, 1), size_of(gradient, 1)
    positions = gathered_positions(op, images, filter_sizes, counts)
    if positions is not None and has_one_channel(op, c, o):
        return _by_channel(images, gradient, positions, filter_sizes)
    if positions is None:
        padded = pad_with_zeros(images, op.pads)
        windows = take_windows(padded, filter_sizes, counts, op.strides, op.dilations)
        order: slice = slice(None, None, -1)
    else:
        windows, order = gather_windows(images, positions, with_images=True).T, slice(None)
    c_group, o_group = split_by_groups(c, op.groups), split_by_groups(o, op.groups)
    windows = windows.reshape(op.grouped(n, c_group * product(filter_sizes), product(counts)))
    gradient = gradient.reshape(op.grouped(n, o_group, product(counts)))
    products = (windows @ gradient.mT).sum(axis=0)
    apart = products.reshape((op.groups, c_group, *filter_sizes[order], o_group))
    last = apart.type.ndim - 1
    result = apart.transpose((0, last, 1, *range(2, last)[order]))
    return result.reshape((o, c_group, *filter_sizes))


def has_one_channel(op: Convolution, channels: Size, outputs: Size) -> bool:
    """Return whether each group is one channel of the images and of the result."""
    return op.groups > 1 and channels == outputs == op.groups


def windows_by_channel(
    images: TensorVariable, positions: np.ndarray, filter_sizes: Sizes
) -> TensorVariable:
    """Return the elements at the taps of all windows, as an array (taps, windows, N * C)."""
    taps = product(filter_sizes)
    n, c = size_of(images, 0), size_of(images, 1)
    rest = n * c if isinstance(n, int) else -1
    rows = gather_windows(images, positions, with_images=True)
    return rows.reshape((taps, positions.size // taps, rest))


def _by_channel(
    images: TensorVariable, gradient: TensorVariable, positions: np.ndarray, filter_sizes: Sizes
) -> TensorVariable:
    """Return the gradient of filters of one channel each, summed over windows, then over images.

    A product of matrices for each channel has one column, and takes two to four times as long.
    """
    n, c, taps = size_of(images, 0), size_of(images, 1), product(filter_sizes)
    rest = n if isinstance(n, int) else -1
    windows = windows_by_channel(images, positions, filter_sizes)
    elements = gather_windows(gradient, np.arange(positions.size // taps), with_images=True)
    sums = (windows * elements).sum(axis=1).reshape((taps, rest, c)).sum(axis=1)
    return sums.T.reshape((c, 1, *filter_sizes))
