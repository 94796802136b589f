"""Pools."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.gradient import pullback
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import mark_guarded
from pytensor_onnx.operators.dims import Dims, product_dim
from pytensor_onnx.ops.networks.conv_ops import Conv, transposed_onto
from pytensor_onnx.ops.networks.network_op import (
    NetworkOp,
    absolute_power,
    over_power,
    root,
    sizes_of,
    slope,
)
from pytensor_onnx.ops.networks.resize import repeated
from pytensor_onnx.ops.networks.windows import Windows, pad, taps

_MOST_POSITIONS = 1 << 24
"""Number of integers from zero on that float32 holds exactly."""

_LARGEST_BLOCK = 1 << 16
"""Elements of an image up to which the positions of all its channels are stored."""


class Pool(NetworkOp):
    """Base of the Ops of pooling with windows."""

    __props__: tuple[str, ...] = ("windows",)
    windows: Windows

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.windows}}}"

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Compute the number of windows only."""
        first, channels, *sizes = input_shapes[0]
        return [[first, channels, *map(pt.as_tensor, self.windows.counts(sizes))]]


class MaxPool(Pool):
    """Maximum of each window, NaN for a window with a NaN."""

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Compute the maximum of the taps, along one axis after the other."""
        y = pad(x, self.windows, -np.inf)
        for axis, count in enumerate(self.windows.checked_counts(x)):
            y = reduce(pt.maximum, taps(y, self.windows, axis, count))
        return [y]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value | None:
        """Emit the operator, unless a window may contain no elements, for which it is wrong."""
        windows = self.windows.in_operators(build.dims(x)[2:])
        if windows is None or self.windows.may_miss(build.dims(x)[2:]):
            return None
        return build.MaxPool(x, **windows.attributes())

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Route the gradient of each window to its first maximum."""
        return [MaxPoolGradient(windows=self.windows)(*inputs, *outputs, *output_grads)]


class MaxPoolGradient(Pool):
    """Gradient of max pooling, routed to the first maximum of each window."""

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Return the shape of the pooled array."""
        return [list(input_shapes[0])]

    def build_inner_graph(
        self, x: TensorVariable, y: TensorVariable, gradient: TensorVariable
    ) -> list[Variable]:
        """Compare the taps with the maximum, in the order of the elements in memory."""
        windows, counts = self.windows, self.windows.counts(sizes_of(x))
        padded = pad(x, windows, -np.inf)
        total = pt.zeros_like(padded)
        left = pt.ones_like(y, dtype="bool")
        for offsets in product(*map(range, windows.window)):
            tap = (
                slice(None),
                slice(None),
                *(
                    slice(offset * dilation, offset * dilation + count * stride, stride)
                    for offset, dilation, count, stride in zip(
                        offsets, windows.dilation, counts, windows.stride, strict=True
                    )
                ),
            )
            wins = pt.eq(padded[tap], y) & left
            left = left & ~wins
            total = pt.inc_subtensor(total[tap], pt.switch(wins, gradient, pt.zeros_like(gradient)))
        inside = (
            slice(before, before + size)
            for size, (before, _) in zip(sizes_of(x), windows.padding, strict=True)
        )
        return [total[(slice(None), slice(None), *inside)]]

    def emit(self, build: Builder, x: ir.Value, y: ir.Value, gradient: ir.Value) -> ir.Value | None:
        """Emit the fastest form: comparisons if the windows tile the array, else a scatter.

        A window without elements has no index to scatter to. No element of a window equals a
        maximum of NaN, but the runtime's index is that of another element.
        """
        windows = self.windows.in_operators(build.dims(x)[2:])
        if windows is None or self.windows.may_miss(build.dims(x)[2:]):
            return None
        gradient = build.Where(build.IsNaN(y), build.number_like(gradient, 0), gradient)
        if x.dtype == ir.DataType.FLOAT and self._tile(build.dims(x)[2:]):
            return self._by_comparison(build, x, y, gradient)
        return self._by_indices(build, x, gradient, windows)

    def _tile(self, sizes: Sequence[object]) -> bool:
        """Return whether windows tile images whose positions are exact in float32."""
        known = [size for size in sizes if isinstance(size, int)]
        return self.windows.tile(sizes) and math.prod(known) <= _MOST_POSITIONS

    def _by_comparison(
        self, build: Builder, x: ir.Value, y: ir.Value, gradient: ir.Value
    ) -> ir.Value:
        """Find the maximum of each window that is farthest from its end, and write there.

        MaxUnpool takes positions in the whole array, and each image has a block of them.
        """
        window = self.windows.window
        block = _known_block(build.dims(x))
        in_block = (*(1 for _ in block[len(window) :]), *window)
        positions = np.arange(math.prod(block), dtype="float32").reshape(block)
        last = positions[tuple(slice(k - 1, None, k) for k in in_block)]
        of_window = last.flat[0] - positions[tuple(slice(k) for k in in_block)]
        repetitions = [size // k for size, k in zip(block, in_block, strict=True)]
        is_largest = build.Equal(x, repeat_elements(build, y, window))
        # A product repeats the numbers in a third of the time of Where; they are finite.
        distances = build.Tile(of_window, build.ints(repetitions))
        numbered = build.Mul(build.cast(is_largest, "float32"), distances)
        farthest = build.MaxPool(numbered, **self.windows.attributes())
        mark_guarded(farthest)
        within = build.cast(build.Sub(last, farthest), "int64")
        rank = len(build.dims(x)) - len(block)
        starts = build.Range(np.int64(0), build.Size(x), np.int64(math.prod(block)))
        starts.shape = ir.Shape([product_dim(build.dims(x)[:rank])])
        shape = build.Concat(build.sizes(x, 0, rank), build.ints([1] * len(block)), axis=0)
        starts = build.Reshape(starts, shape, allowzero=1)
        attributes = {"kernel_shape": list(window), "strides": list(window)}
        result = build.MaxUnpool(gradient, build.Add(starts, within), **attributes)
        result.shape = ir.Shape(build.dims(x))
        return result

    def _by_indices(
        self, build: Builder, x: ir.Value, gradient: ir.Value, windows: Windows
    ) -> ir.Value:
        """Scatter to the indices of the maxima in the flattened array."""
        maxima, indices = build.op("MaxPool", x, outputs=2, **windows.attributes())
        indices.shape = maxima.shape
        mark_guarded(indices)
        flat = build.ints([-1])
        zeros = build.Expand(build.number_like(x, 0), build.shape(build.Reshape(x, flat)))
        reduction: dict[str, Any] = {"reduction": "add"} if self.windows.overlap else {}
        total = build.op(
            "ScatterElements",
            zeros,
            build.Reshape(indices, flat),
            build.Reshape(gradient, flat),
            **reduction,
        )
        return build.Reshape(total, build.shape(x), allowzero=1)


class AveragePool(Pool):
    """Mean of each window, over the elements in the array or also over those in the padding."""

    __props__ = ("windows", "count_include_pad")
    count_include_pad: bool

    def __str__(self) -> str:
        padding = ", count_include_pad" if self.count_include_pad else ""
        return f"AveragePool{{{self.windows}{padding}}}"

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Divide the sum by the number of elements."""
        dtype = x.type.dtype
        y = x.astype("float32") if dtype == "float16" else x
        total = window_sum(y, self.windows)
        return [(total / self._sizes(x).astype(y.type.dtype)).astype(dtype)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value | None:
        """Emit the operator, unless a window may contain no elements, for which it is wrong."""
        windows = self.windows.in_operators(build.dims(x)[2:])
        if self.count_include_pad:
            # The operator counts its own padding.
            windows = windows if windows is self.windows else None
        elif self.windows.may_miss(build.dims(x)[2:]):
            return None
        if windows is None:
            return None
        counts: dict[str, Any] = {"count_include_pad": 1} if self.count_include_pad else {}
        return build.AveragePool(x, **windows.attributes(), **counts)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Divide the gradient of a window among its elements."""
        (x,), (gradient,) = inputs, output_grads
        share = gradient / self._sizes(x).astype(gradient.type.dtype)
        return [spread(share, x, self.windows)]

    def _sizes(self, x: TensorVariable) -> TensorVariable:
        """Return the number of elements that each window counts, broadcastable against (*T)."""
        rank = self.windows.rank
        sizes = pt.as_tensor(1)
        for axis, size in enumerate(sizes_of(x)):
            own = self.windows.elements_per_window(size, axis, self.count_include_pad)
            sizes = sizes * (
                own if isinstance(own, int) else pt.shape_padright(own, rank - 1 - axis)
            )
        return sizes


class LpPool(Pool):
    """The p-norm of each window."""

    __props__ = ("windows", "p")
    p: int

    def __str__(self) -> str:
        return f"LpPool{{{self.windows}, p={self.p}}}"

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Take the root of the sum of powers."""
        dtype = x.type.dtype
        y = x.astype("float32") if dtype == "float16" else x
        total = window_sum(absolute_power(y, self.p), self.windows)
        return [root(total, self.p).astype(dtype)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value | None:
        """Emit the operator."""
        windows = self.windows.in_operators(build.dims(x)[2:])
        return None if windows is None else build.LpPool(x, p=self.p, **windows.attributes())

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate the norm, with a gradient of zero at zero."""
        (x,), (y,), (gradient,) = inputs, outputs, output_grads
        return [slope(x, self.p) * spread(over_power(gradient, y, self.p), x, self.windows)]


def window_sum(x: TensorVariable, windows: Windows) -> TensorVariable:
    """Return the sum over each window."""
    total = pad(x, windows, 0.0)
    for axis, count in enumerate(windows.checked_counts(x)):
        total = reduce(operator.add, taps(total, windows, axis, count))
    return total


def spread(share: TensorVariable, x: TensorVariable, windows: Windows) -> TensorVariable:
    """Add to each element of an array the values of its windows, the adjoint of `window_sum`."""
    if windows.tile(x.type.shape[2:]):
        return repeated(share, windows.window)
    if windows.ceil_mode:
        return pullback(window_sum(x, windows), x, share)
    op = Conv(
        filter_sizes=windows.window,
        pads=windows.padding,
        strides=windows.stride,
        dilations=windows.dilation,
        groups=1,
    )
    ones = pt.constant(np.ones((1, 1, *windows.window), x.type.dtype))
    spread_out = transposed_onto(op, _one_channel(share), ones, _one_channel(x))
    static = x.type.shape[1:]
    return spread_out.reshape((-1, *static) if all(static) else x.shape)


def _one_channel(x: TensorVariable) -> TensorVariable:
    """Return an array (N * C, 1, *S)."""
    static = x.type.shape[2:]
    if all(static):
        return x.reshape((-1, 1, *static))
    return x.reshape((x.shape[0] * x.shape[1], 1, *x.shape[2:]))


def _known_block(dims: Dims) -> list[int]:
    """Return the known sizes of the last axes, with the number of channels unless it is large.

    ONNX Runtime repeats blocks of a few elements slowly.
    """
    spatial = [size for size in dims[2:] if isinstance(size, int)]
    channels = dims[1]
    if isinstance(channels, int) and 0 < channels * math.prod(spatial) <= _LARGEST_BLOCK:
        return [channels, *spatial]
    return spatial


def repeat_elements(build: Builder, x: ir.Value, times: Sequence[int]) -> ir.Value:
    """Emit the operator that repeats each element along the spatial axes."""
    scales = np.array([1, 1, *times], dtype="float32")
    return build.Resize(
        x,
        None,
        scales,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


class GlobalPool(NetworkOp):
    """Base of the Ops of global pooling."""

    __props__: tuple[str, ...] = ()

    def _axes(self, x: TensorVariable) -> list[int]:
        return list(range(2, x.type.ndim))


class GlobalMaxPool(GlobalPool):
    """Maximum of each channel, NaN for a channel with a NaN."""

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reduce the spatial axes."""
        return [pt.max(x, axis=self._axes(x), keepdims=True)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.GlobalMaxPool(x)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Route the channel's gradient to its first maximum."""
        (x,), (gradient,) = inputs, output_grads
        flat = x.flatten(3)
        wins = pt.eq(pt.arange(flat.shape[2]), pt.argmax(flat, axis=2, keepdims=True))
        return [pt.switch(wins, gradient.flatten(3), pt.zeros_like(flat)).reshape(x.shape)]


class GlobalAveragePool(GlobalPool):
    """Mean of each channel."""

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reduce the spatial axes."""
        return [pt.mean(x, axis=self._axes(x), keepdims=True).astype(x.type.dtype)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.GlobalAveragePool(x)


class GlobalLpPool(GlobalPool):
    """The p-norm of each channel."""

    __props__ = ("p",)
    p: int

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reduce the spatial axes."""
        total = pt.sum(absolute_power(x, self.p), axis=self._axes(x), keepdims=True)
        return [root(total, self.p).astype(x.type.dtype)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.GlobalLpPool(x, p=self.p)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate the norm, with a gradient of zero at zero."""
        (x,), (y,), (gradient,) = inputs, outputs, output_grads
        return [slope(x, self.p) * over_power(gradient, y, self.p)]
