"""Windows over spatial axes: strides, dilations and padding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import NetworkOp, Size, sizes_of, window_count

type Ints = int | Sequence[int]
type Padding = int | Sequence[int | tuple[int, int]]

_HAS_ROOM = CheckAndRaise(ValueError, "a window of a pool is larger than the padded array")


@dataclass(frozen=True)
class Windows:
    """Windows over the spatial axes of an array of shape (N, C, *S).

    Attributes
    ----------
    window, stride, dilation
        For each spatial axis: number of taps, distance between windows, distance between taps.
    padding
        For each spatial axis: numbers of elements added before and after.
    ceil_mode
        Whether the last window may extend beyond the padding, if it starts in the array or in the
        padding before it.
    """

    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    ceil_mode: bool

    def __str__(self) -> str:
        """List the options that are not the defaults."""
        options = [f"window={self.window}"]
        options += [f"stride={self.stride}"] if self.stride != self.window else []
        options += [f"padding={self.padding}"] if any(map(any, self.padding)) else []
        options += [f"dilation={self.dilation}"] if max(self.dilation) > 1 else []
        options += ["ceil_mode"] if self.ceil_mode else []
        return ", ".join(options)

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.window)

    def reach(self, axis: int) -> int:
        """Return the distance from the first to the last tap of a window, plus one."""
        return (self.window[axis] - 1) * self.dilation[axis] + 1

    def overhang(self, axis: int) -> int:
        """Return the largest extent of the last window beyond the padding."""
        return self.stride[axis] - 1 if self.ceil_mode else 0

    def count(self, size: Size, axis: int) -> Size:
        """Return the number of windows along a spatial axis of a size."""
        before, after = self.padding[axis]
        stride = self.stride[axis]
        room = before + after - self.reach(axis)
        if not self.ceil_mode:
            count = window_count(size, room, stride)
            if room >= -stride:
                return count
        else:
            room = size + room
            count = _smaller((room + stride - 1) // stride + 1, (size + before - 1) // stride + 1)
        return max(count, 0) if isinstance(count, int) else pt.maximum(count, 0)

    def counts(self, sizes: Sequence[Size]) -> list[Size]:
        """Return the number of windows along each spatial axis."""
        return [self.count(size, axis) for axis, size in enumerate(sizes)]

    def checked_counts(self, x: TensorVariable) -> list[Size]:
        """Return the number of windows along each spatial axis of an array, which fails at 0."""
        return [
            count
            if isinstance(count, int) or self.count(1, axis) > 0
            else _HAS_ROOM(count, count > 0)
            for axis, count in enumerate(self.counts(sizes_of(x)))
        ]

    def elements_per_window(self, size: Size, axis: int, with_padding: bool) -> Any:
        """Return the number of elements of each window along a spatial axis, an int if constant.

        Elements beyond the padding never count.
        """
        before, after = self.padding[axis] if with_padding else (0, 0)
        is_whole = with_padding or self.padding[axis] == (0, 0)
        if is_whole and not self.ceil_mode:
            return self.window[axis]
        count = self.count(size, axis)
        is_known = isinstance(size, int)
        starts = (np if is_known else pt).arange(count) * self.stride[axis] - self.padding[axis][0]
        reached = (starts + tap * self.dilation[axis] for tap in range(self.window[axis]))
        inside = ((index >= -before) & (index < size + after) for index in reached)
        return sum(mask.astype("int64") for mask in inside)

    def in_operators(self, sizes: Sequence[object]) -> Self | None:
        """Return equivalent windows that ONNX's operators accept, or None if there are none.

        In ceil mode, operators before opset 22 also count windows that start behind the array, and
        runtimes infer shapes accordingly if all sizes are known.
        """
        known = [size for size in sizes if isinstance(size, int)]
        if not self.ceil_mode or len(known) < self.rank:
            return self
        padding, is_counted = [], True
        for axis, (size, count) in enumerate(zip(known, self.counts(known), strict=True)):
            (before, after), stride = self.padding[axis], self.stride[axis]
            room = size + before + after - self.reach(axis)
            is_counted = is_counted and count == -(-room // stride) + 1
            last = (int(count) - 1) * stride + self.reach(axis)
            padding.append((before, max(0, last - size - before)))
        if is_counted:
            return self
        if any(after >= window for (_, after), window in zip(padding, self.window, strict=True)):
            return None
        return replace(self, padding=tuple(padding), ceil_mode=False)

    def may_miss(self, sizes: Sequence[object]) -> bool:
        """Return whether a window may lie wholly in the padding of spatial axes of these sizes.

        With a padding smaller than the window, this requires an axis shorter than a dilation.
        """
        return any(
            any(pads) and dilation > 1 and not (isinstance(size, int) and size >= dilation)
            for size, pads, dilation in zip(sizes, self.padding, self.dilation, strict=True)
        )

    @property
    def overlap(self) -> bool:
        """Whether an element may be in more than one window."""
        return any(
            tap * dilation % stride == 0
            for window, stride, dilation in zip(
                self.window, self.stride, self.dilation, strict=True
            )
            for tap in range(1, window)
        )

    def tile(self, sizes: Sequence[object]) -> bool:
        """Return whether each element of spatial axes of these sizes is in exactly one window."""
        return (
            self.stride == self.window
            and not any(map(any, self.padding))
            and all(d == 1 or k == 1 for d, k in zip(self.dilation, self.window, strict=True))
            and all(
                isinstance(size, int) and size % k == 0
                for size, k in zip(sizes, self.window, strict=True)
            )
        )

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of an ONNX operator with these windows, without defaults."""
        attributes: dict[str, Any] = {"kernel_shape": list(self.window)}
        if any(stride != 1 for stride in self.stride):
            attributes["strides"] = list(self.stride)
        if any(pair != (0, 0) for pair in self.padding):
            attributes["pads"] = [pads[i] for i in (0, 1) for pads in self.padding]
        if any(dilation != 1 for dilation in self.dilation):
            attributes["dilations"] = list(self.dilation)
        if self.ceil_mode:
            attributes["ceil_mode"] = 1
        return attributes


def check_fit(x: TensorVariable, windows: Windows) -> None:
    """Check that a window fits known sizes, and that each window contains an element.

    Raises
    ------
    ValueError
        If a spatial axis is too short.
    """
    for axis in range(windows.rank):
        size = x.type.shape[2 + axis]
        reach = windows.reach(axis)
        if size is None:
            continue
        if size + sum(windows.padding[axis]) < reach:
            raise ValueError(
                f"the window spans {reach} elements, but spatial axis {axis} has {size}, and "
                f"padding {windows.padding[axis]}"
            )
        if 0 < size < windows.dilation[axis] and any(windows.padding[axis]):
            raise ValueError(
                f"with a dilation of {windows.dilation[axis]}, a window could miss all "
                f"{size} elements of spatial axis {axis}"
            )


def taps(x: TensorVariable, windows: Windows, axis: int, count: Size) -> list[TensorVariable]:
    """Return the elements at each tap of the windows along a spatial axis.

    Parameters
    ----------
    x
        Padded array.
    windows
        The windows.
    axis
        Spatial axis, counted from 0.
    count
        Number of windows along it.
    """
    before = (slice(None),) * (2 + axis)
    stride = windows.stride[axis]
    starts = [tap * windows.dilation[axis] for tap in range(windows.window[axis])]
    return [x[(*before, slice(start, start + count * stride, stride))] for start in starts]


def pad(x: TensorVariable, windows: Windows, value: float) -> TensorVariable:
    """Pad the spatial axes up to the last element of any window."""
    widths = [
        (before, after + windows.overhang(axis))
        for axis, (before, after) in enumerate(windows.padding)
    ]
    return pad_constant(x, ((0, 0), (0, 0), *widths), value)


def _smaller(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else pt.minimum(a, b)


SPATIAL_RANKS = (1, 2, 3)


def make_windows(
    rank: int, window: Ints, stride: Ints | None, padding: Padding, dilation: Ints, ceil_mode: bool
) -> Windows:
    """Check the arguments of a sliding window and expand them to all spatial axes.

    Raises
    ------
    TypeError, ValueError
        If an argument is not made of ints, has another length than the number of spatial axes, is
        out of range, or a window could lie wholly in the padding.

    Examples
    --------
    >>> windows = make_windows(2, 3, None, (1, (0, 2)), 1, False)
    >>> windows.stride, windows.padding
    ((3, 3), ((1, 1), (0, 2)))
    """
    windows = Windows(
        window=per_axis("window", window, rank),
        stride=per_axis("stride", window if stride is None else stride, rank),
        padding=_pairs(padding, rank),
        dilation=per_axis("dilation", dilation, rank),
        ceil_mode=bool(ceil_mode),
    )
    for size, pads in zip(windows.window, windows.padding, strict=True):
        if max(pads) >= size:
            raise ValueError(
                f"padding {pads} must be smaller than the window of {size}: a window could lie "
                "wholly in the padding"
            )
    return windows


def spatial_rank(x: TensorVariable, name: str) -> int:
    """Return the number of spatial axes of an array of shape (N, C, *S).

    Raises
    ------
    TypeError
        If it is not an array of floats.
    ValueError
        If it does not have one to three spatial axes.
    """
    if x.type.dtype not in ("float16", "float32", "float64"):
        raise TypeError(f"{name} takes an array of floats; got one of {x.type.dtype}")
    if x.type.ndim - 2 not in SPATIAL_RANKS:
        raise ValueError(
            f"{name} takes an array of shape (batch, channels, *spatial) with one to three spatial "
            f"axes; got one of {x.type.ndim} dimensions"
        )
    return x.type.ndim - 2


def per_axis(name: str, value: Ints, rank: int, smallest: int = 1) -> tuple[int, ...]:
    """Return an argument as one int for each spatial axis.

    Examples
    --------
    >>> per_axis("stride", 2, 3), per_axis("stride", (1, 2), 2)
    ((2, 2, 2), (1, 2))
    """
    values = [value] * rank if isinstance(value, int) else list(value)
    if len(values) != rank:
        raise ValueError(f"{name}={value} must be one int, or {rank}: one for each spatial axis")
    if any(isinstance(v, bool) or not hasattr(v, "__index__") for v in values):
        raise TypeError(f"{name}={value} must be made of ints")
    if any(v < smallest for v in values):
        raise ValueError(f"{name}={value} must not be less than {smallest}")
    return tuple(int(v) for v in values)


def _pairs(padding: Padding, rank: int) -> tuple[tuple[int, int], ...]:
    entries = [padding] * rank if isinstance(padding, int) else list(padding)
    if len(entries) != rank:
        raise ValueError(
            f"padding={padding} must be one int, or {rank} ints or (before, after) pairs: one for "
            "each spatial axis"
        )
    pairs = []
    for entry in entries:
        before, after = per_axis("padding", entry, 2, smallest=0)
        pairs.append((before, after))
    return tuple(pairs)


type Width = int | TensorVariable


class ZeroPad(NetworkOp):
    """Array (N, C, *S) with zeros before and after its spatial axes.

    The second input is a vector of widths: those before all spatial axes, then those after them.
    """

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable, widths: TensorVariable) -> list[Variable]:
        """Join the array with zeros, one axis after the other."""
        rank = x.type.ndim - 2
        for axis in range(2, 2 + rank):
            shape = [x.shape[i] for i in range(x.type.ndim)]
            before, after = (
                pt.zeros((*shape[:axis], widths[i], *shape[axis + 1 :]), dtype=x.type.dtype)
                for i in (axis - 2, axis - 2 + rank)
            )
            x = pt.concatenate([before, x, after], axis=axis)
        return [x]

    def emit(self, build: Builder, x: ir.Value, widths: ir.Value) -> ir.Value:
        """Emit the operator, for the spatial axes."""
        return build.Pad(x, widths, None, build.ints(range(2, len(build.dims(x)))))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Declare that the widths have no gradient."""
        return [[True], [False]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Slice the gradient to the original array."""
        x, widths = inputs
        (cotangent,) = cotangents
        box = [
            slice(widths[axis - 2], widths[axis - 2] + x.shape[axis])
            for axis in range(2, x.type.ndim)
        ]
        return [cotangent[(slice(None), slice(None), *box)], disconnected_type()]


def pad_with_zeros(x: TensorVariable, pads: Sequence[tuple[Width, Width]]) -> TensorVariable:
    """Add zeros before and after each spatial axis of an array (N, C, *S).

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> pad_with_zeros(pt.tensor(shape=(1, 1, 3)), [(1, 2)]).type.shape
    (1, 1, 6)
    """
    if all(isinstance(width, int) for pair in pads for width in pair):
        return pad_constant(x, ((0, 0), (0, 0), *pads), 0)
    widths = [
        np.int64(w) if isinstance(w, int) else w for i in (0, 1) for w in (p[i] for p in pads)
    ]
    return ZeroPad()(x, pt.stack(widths))


Widths = tuple[tuple[int, int], ...]


class ConstantPad(NetworkOp):
    """Array with a constant value added before and after it along each axis.

    Parameters
    ----------
    widths
        Number of elements added before and after, for each axis.
    value
        The constant.
    """

    __props__ = ("widths", "value")
    widths: Widths
    value: float

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Join the array with the constant, one axis after the other."""
        fill = np.asarray(self.value, dtype=x.type.dtype)
        for axis, widths in enumerate(self.widths):
            sizes = sizes_of(x, 0)
            before, after = (
                [pt.full((*sizes[:axis], width, *sizes[axis + 1 :]), fill)] if width else []
                for width in widths
            )
            x = pt.concatenate([*before, x, *after], axis=axis)
        return [x]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator, whose widths are first those before all axes."""
        pads = build.ints([pair[i] for i in (0, 1) for pair in self.widths])
        return build.Pad(x, pads, *([] if self.value == 0 else [build.number_like(x, self.value)]))

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Slice the gradient to the original array."""
        (gradient,) = output_grads
        return [
            gradient[
                tuple(slice(before, -after if after else None) for before, after in self.widths)
            ]
        ]


def pad_constant(x: TensorVariable, widths: Widths, value: float) -> TensorVariable:
    """Pad an array by a constant; return the array for widths of zero."""
    if not any(map(any, widths)):
        return x
    return ConstantPad(widths=widths, value=value)(x)
