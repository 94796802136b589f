"""Define the Op of convolutions whose padding depends on the size of the images."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.conv_geometry import Convolution
from pytensor_onnx.ops.networks.conv_ops import Conv
from pytensor_onnx.ops.networks.static_sizes import Size, Sizes, sizes_of
from pytensor_onnx.ops.networks.zero_padding import pad_with_zeros


class SameConv(Convolution):
    """Cross-correlation with ``ceil(size / stride)`` windows along each spatial axis.

    The pads are unused. If the number of zeros is odd, the one more is at the end if ``upper``.
    """

    __props__ = (*Convolution.__props__, "upper")
    upper: bool
    __str__ = Convolution.__str__

    def build_inner_graph(
        self, images: TensorVariable, filters: TensorVariable, *bias: TensorVariable
    ) -> list[Variable]:
        """Add the zeros, then convolve without padding."""
        spans = self.spans(self.filter_sizes_of(filters))
        pads = same_pads(sizes_of(images), spans, self.strides, self.upper)
        result = Conv(**self.geometry())(pad_with_zeros(images, pads), filters, *bias)
        return [result]

    def emit(self, build: Builder, *operands: ir.Value) -> ir.Value | None:
        """Emit a `Conv` with ``auto_pad``.

        Runtimes crop windows shorter than a stride from another position, and refuse dilations.
        """
        sizes = zip(self.filter_sizes, self.strides, strict=True)
        if max(self.dilations) > 1 or any(size is None or size < stride for size, stride in sizes):
            return None
        auto_pad = "SAME_UPPER" if self.upper else "SAME_LOWER"
        return build.Conv(*operands, **self.attributes(), auto_pad=auto_pad)

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Compute the sizes without computing the convolution."""
        (n, _, *sizes), (o, *_) = input_shapes[:2]
        counts = [_window_count(*axis) for axis in zip(sizes, self.strides, strict=True)]
        return [[n, o, *map(pt.as_tensor, counts)]]


def same_pads(
    sizes: Sizes, spans: Sizes, strides: Sequence[int], upper: bool
) -> list[tuple[Size, Size]]:
    """Return the zeros before and after each axis for a result of size ``ceil(size / stride)``."""
    axes = zip(sizes, spans, strides, strict=True)
    totals = [_same_total(size, reach, stride) for size, reach, stride in axes]
    pairs = [(total // 2, total - total // 2) for total in totals]
    return pairs if upper else [pair[::-1] for pair in pairs]


def _same_total(size: Size, reach: Size, stride: int) -> Size:
    """Return the number of zeros along an axis."""
    if stride == 1:
        return reach - 1
    total = (_window_count(size, stride) - 1) * stride + reach - size
    return max(total, 0) if isinstance(total, int) else pt.maximum(total, 0)


def _window_count(size: Size, stride: int) -> Size:
    # Rounded up without a negative number, whose division takes operators for its sign.
    return (size + stride - 1) // stride
