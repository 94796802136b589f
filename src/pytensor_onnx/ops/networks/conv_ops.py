"""Convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import Size, Sizes, size_of, sizes_of
from pytensor_onnx.ops.networks.taps import (
    MOST_POSITIONS,
    MOST_POSITIONS_OF_BATCH,
    Convolution,
    add_windows,
    crop,
    gather_batches,
    gather_windows,
    has_large_taps,
    has_long_rows,
    is_filled,
    product,
    span,
    split_by_groups,
    stack_windows,
    take_windows,
    tap_positions,
    taps_of,
)
from pytensor_onnx.ops.networks.windows import pad_with_zeros

_HAS_WINDOW = Assert("The images of a convolution are smaller than its windows.")


class Conv(Convolution):
    """Cross-correlation of images (N, C, *S) with filters (O, C / groups, *K), plus a bias (O,)."""

    def build_inner_graph(
        self, images: TensorVariable, filters: TensorVariable, *bias: TensorVariable
    ) -> list[Variable]:
        """Multiply the filters by the elements at each tap, for each image."""
        filter_sizes = self.filter_sizes_of(filters)
        padded = pad_with_zeros(images, self.pads)
        counts = [_checked(count) for count in self.counts(sizes_of(images), filter_sizes)]
        windows = take_windows(padded, filter_sizes, counts, self.strides, self.dilations)
        n, o = size_of(images, 0), size_of(filters, 0)
        taps = size_of(filters, 1) * product(filter_sizes)
        windows = windows.reshape(self.grouped(n, taps, product(counts)))
        matrix = _taps_reversed(filters).reshape(
            self.grouped(split_by_groups(o, self.groups), taps)
        )
        result = matrix @ windows
        result = result.reshape((n, o, *counts))
        for vector in bias:
            result = result + pt.shape_padright(vector, len(counts))
        return [result]

    def emit(self, build: Builder, *operands: ir.Value) -> ir.Value | None:
        """Emit the operator of the same name."""
        return build.Conv(*operands, **self.attributes())

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Compute the sizes without computing the convolution."""
        (n, _, *sizes), (o, _, *own) = input_shapes[:2]
        return [[n, o, *map(pt.as_tensor, self.counts(sizes, self.filter_sizes_from(own)))]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate by the transposed convolution, the gradient of filters and a sum."""
        images, filters, *bias = inputs
        (cotangent,) = cotangents
        return [
            transposed_onto(self, cotangent, filters, images),
            filter_gradient_onto(self, images, cotangent, filters),
            *(sum_per_channel(cotangent) for _ in bias),
        ]


class ConvTranspose(Convolution):
    """Adjoint of a cross-correlation in its images: (N, O, *L) becomes (N, C, *S).

    The filters have the shape (O, C / groups, *K), as those of the cross-correlation. The pads are
    cropped from the result; ``output_padding`` is the number of elements beyond the last window at
    the end of each spatial axis, less than a stride.
    """

    __props__ = (*Convolution.__props__, "output_padding")
    output_padding: tuple[int, ...]

    def build_inner_graph(
        self, images: TensorVariable, filters: TensorVariable, *bias: TensorVariable
    ) -> list[Variable]:
        """Multiply the filters by each element, and sum where windows overlap."""
        filter_sizes, counts = self.filter_sizes_of(filters), sizes_of(images)
        n, o, c = size_of(images, 0), size_of(images, 1), size_of(filters, 1)
        taps = c * product(filter_sizes)
        per_group = split_by_groups(o, self.groups)
        matrix = filters.reshape(self.grouped(per_group, taps)).mT
        windows = matrix @ images.reshape(self.grouped(n, per_group, product(counts)))
        windows = windows.reshape((n, c * self.groups, product(filter_sizes), *counts))
        result = add_windows(windows, filter_sizes, self.strides, self.dilations)
        extra = [
            (0, max(more - after - stride + 1, 0))
            for more, (_, after), stride in zip(
                self.output_padding, self.pads, self.strides, strict=True
            )
        ]
        starts = [before for before, _ in self.pads]
        result = crop(pad_with_zeros(result, extra), self._sizes(counts, filter_sizes), starts)
        for vector in bias:
            result = result + pt.shape_padright(vector, len(counts))
        return [result]

    def emit(self, build: Builder, *operands: ir.Value) -> ir.Value:
        """Emit the operator of the same name."""
        attributes = self.attributes()
        if any(self.output_padding):
            attributes["output_padding"] = list(self.output_padding)
        return build.ConvTranspose(*operands, **attributes)

    def sizes(self, images: TensorVariable, filters: TensorVariable) -> Sizes:
        """Return the spatial sizes of the result, ints where they are known."""
        return self._sizes(sizes_of(images), self.filter_sizes_of(filters))

    def _sizes(self, counts: Sizes, filter_sizes: Sizes) -> Sizes:
        """Return the spatial sizes of the result."""
        axes = zip(
            counts,
            self.strides,
            self.spans(filter_sizes),
            self.pads,
            self.output_padding,
            strict=True,
        )
        return [
            span(count, stride) + reach - 1 - sum(pads) + more
            for count, stride, reach, pads, more in axes
        ]

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Compute the sizes without computing the convolution."""
        (n, _, *counts), (_, c, *own) = input_shapes[:2]
        sizes = self._sizes(counts, self.filter_sizes_from(own))
        return [[n, c * self.groups, *map(pt.as_tensor, sizes)]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate by the cross-correlation that is this Op's adjoint."""
        images, filters, *bias = inputs
        (cotangent,) = cotangents
        return [
            Conv(**self.geometry())(cotangent, filters),
            filter_gradient_onto(self, cotangent, images, filters),
            *(sum_per_channel(cotangent) for _ in bias),
        ]


class ConvFilterGradient(Convolution):
    """Adjoint of a cross-correlation in its filters.

    Takes images (N, C, *S) and the gradient (N, O, *L) of the result, and returns the gradient (O,
    C / groups, *K) of the filters. Unknown filter sizes are the largest that fit the images.
    """

    def build_inner_graph(self, images: TensorVariable, gradient: TensorVariable) -> list[Variable]:
        """Multiply the elements at each tap by the gradient, and sum over images."""
        filter_sizes = self._taps(sizes_of(images), sizes_of(gradient))
        return [multiply_windows(self, images, gradient, filter_sizes)]

    def emit(self, build: Builder, *operands: ir.Value) -> None:
        """Emit no operator, so that the inner graph is converted.

        The gradient is also the cross-correlation of images and gradient with the batch as
        channels, but filters as large as an image make that twice as slow as the product.
        """
        return None

    def _taps(self, sizes: Sizes, counts: Sizes) -> Sizes:
        axes = zip(
            self.filter_sizes, sizes, counts, self.pads, self.strides, self.dilations, strict=True
        )
        return [
            (size + sum(pads) - span(count, stride)) // dilation + 1 if taps is None else taps
            for taps, size, count, pads, stride, dilation in axes
        ]

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Compute the sizes without computing the gradient."""
        (_, c, *sizes), (_, o, *counts) = input_shapes
        taps = self._taps(sizes, counts)
        return [[o, split_by_groups(c, self.groups), *map(pt.as_tensor, taps)]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate by the transposed convolution and the cross-correlation."""
        images, gradient = inputs
        (filters,) = cotangents
        return [
            transposed_onto(self, gradient, filters, images),
            Conv(**self.geometry())(images, filters),
        ]


def sum_per_channel(x: TensorVariable) -> TensorVariable:
    """Return the sums over all axes of an array (N, C, *S) except the channels."""
    return x.sum(axis=(0, *range(2, x.type.ndim)))


def filter_gradient_onto(
    op: Convolution, images: TensorVariable, gradient: TensorVariable, filters: TensorVariable
) -> TensorVariable:
    """Return the gradient of a cross-correlation with respect to its filters, in their sizes."""
    result = ConvFilterGradient(**op.geometry())(images, gradient)
    return crop(result, sizes_of(filters)) if None in op.filter_sizes else result


def transposed_onto(
    op: Convolution, gradient: TensorVariable, filters: TensorVariable, images: TensorVariable
) -> TensorVariable:
    """Return the gradient of a cross-correlation with respect to its images, in their sizes.

    If a stride leaves elements beyond the last window, and their number is unknown until run time,
    the transposed convolution computes the largest number of them, and the rest is cropped.
    """
    filter_sizes = op.filter_sizes_of(filters)
    sizes = sizes_of(images)
    left_over, is_too_large = [], False
    for axis, stride in enumerate(op.strides):
        room = sizes[axis] + sum(op.pads[axis]) - span(filter_sizes[axis], op.dilations[axis])
        left_over.append(room % stride if isinstance(room, int) else stride - 1)
        is_too_large |= stride > 1 and not isinstance(room, int)
    transposed = ConvTranspose(**op.geometry(), output_padding=tuple(left_over))
    result = transposed(gradient, filters)
    return crop(result, sizes) if is_too_large else result


def _checked(count: Size) -> Size:
    """Return a number of windows, which fails at run time if it is zero."""
    if isinstance(count, int):
        return count
    return _HAS_WINDOW(count, count > 0)


def _taps_reversed(filters: TensorVariable) -> TensorVariable:
    """Return filters (O, C, *K) with the axes K in reverse order, as in `take_windows`."""
    return filters.transpose((0, 1, *reversed(range(2, filters.type.ndim))))


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
