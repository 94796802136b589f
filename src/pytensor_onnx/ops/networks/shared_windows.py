"""Define the Op of a convolution whose windows the gradient of its filters gathers as well."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.conv import Conv
from pytensor_onnx.ops.networks.filter_gradient import (
    gathered_positions,
    has_one_channel,
    matrix_of_windows,
    windows_by_channel,
)
from pytensor_onnx.ops.networks.sizes import Sizes, size_of, sizes_of
from pytensor_onnx.ops.networks.tap_positions import is_filled
from pytensor_onnx.ops.networks.taps import product

_MOST_WINDOWS, _MOST_WINDOWS_BY_CHANNEL = 64, 16
"""Windows of an image above which the operator is as fast as the product.

The second number is for filters of one channel each.
"""

_MOST_ELEMENTS, _MOST_ELEMENTS_OF_IMAGE = 1 << 20, 1 << 12
"""Elements of all windows, and of those of one image in a batch of unknown size.

They are kept from the convolution to the gradient.
"""


class ConvOfSharedWindows(Conv):
    """Cross-correlation by one product of the filters with the windows of all images."""

    def build_inner_graph(
        self, images: TensorVariable, filters: TensorVariable, *bias: TensorVariable
    ) -> list[Variable]:
        """Multiply the filters by the matrix that the gradient of the filters multiplies."""
        filter_sizes = self.filter_sizes_of(filters)
        counts = self.counts(sizes_of(images), filter_sizes)
        positions = gathered_positions(self, images, filter_sizes, counts)
        if positions is None:
            return super().build_inner_graph(images, filters, *bias)
        if self.groups > 1:
            return [_by_channel(images, filters, *bias, positions=positions, counts=counts)]
        windows = matrix_of_windows(images, positions, filter_sizes)
        n, o = size_of(images, 0), size_of(filters, 0)
        taps = size_of(filters, 1) * product(filter_sizes)
        products = filters.reshape((o, taps)) @ windows
        for vector in bias:
            products = products + vector[:, None]
        rest = n if isinstance(n, int) or not is_filled(o) else -1
        rank = len(counts)
        apart = products.reshape((o, *counts, rest))
        return [apart.transpose((rank + 1, *range(rank + 1)))]

    def emit(self, build: Builder, *operands: ir.Value) -> None:
        """Emit no operator, so that the inner graph is converted."""
        return None


def _by_channel(
    images: TensorVariable,
    filters: TensorVariable,
    *bias: TensorVariable,
    positions: np.ndarray,
    counts: Sizes,
) -> TensorVariable:
    """Return the sums over taps of windows times filters of one channel each."""
    n, c, taps = size_of(images, 0), size_of(images, 1), product(sizes_of(filters))
    rest = n if isinstance(n, int) else -1
    windows = windows_by_channel(images, positions, sizes_of(filters))
    windows = windows.reshape((taps, product(counts), rest, c))
    result = (windows * filters.reshape((c, taps)).T[:, None, None, :]).sum(axis=0)
    for vector in bias:
        result = result + vector
    rank = len(counts)
    return result.reshape((*counts, rest, c)).transpose((rank, rank + 1, *range(rank)))


def may_share_windows(op: Conv, images: TensorVariable, filters: TensorVariable) -> bool:
    """Return whether the product is faster than the operator, if the windows are there anyway."""
    filter_sizes = op.filter_sizes_of(filters)
    sizes = [*filter_sizes, *sizes_of(images), size_of(images, 1), size_of(filters, 0)]
    is_by_channel = has_one_channel(op, size_of(images, 1), size_of(filters, 0))
    if not is_filled(*sizes) or (op.groups > 1 and not is_by_channel):
        return False
    counts = op.counts(sizes_of(images), filter_sizes)
    n, windows = size_of(images, 0), product(counts)
    elements = product(filter_sizes) * size_of(images, 1) * windows
    most = _MOST_ELEMENTS if isinstance(n, int) else _MOST_ELEMENTS_OF_IMAGE
    return (
        product(filter_sizes) > 1
        and windows <= (_MOST_WINDOWS_BY_CHANNEL if is_by_channel else _MOST_WINDOWS)
        and elements * (n if isinstance(n, int) else 1) <= most
        and gathered_positions(op, images, filter_sizes, counts) is not None
    )
