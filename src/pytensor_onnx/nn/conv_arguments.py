"""Check the arguments of convolutions while the graph is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.same_conv import same_pads
from pytensor_onnx.ops.networks.static_sizes import Size, Sizes, sizes_of
from pytensor_onnx.ops.networks.window_arguments import per_axis
from pytensor_onnx.ops.networks.windows import Ints

BorderMode = (
    Literal["valid", "full", "half", "same_upper", "same_lower"]
    | int
    | Sequence[int | tuple[int, int]]
)
BORDER_MODES = ("valid", "full", "half", "same_upper", "same_lower")


class Option(NamedTuple):
    """Option of a convolution, with the name under which it was passed."""

    name: str
    value: Any


def either(function: str, default: Any, **given: Any) -> Option:
    """Return an option with several names.

    Raises
    ------
    TypeError
        If it is passed under more than one name.

    Examples
    --------
    >>> either("conv2d", 1, subsample=None, stride=2)
    Option(name='stride', value=2)
    """
    named = [Option(name, value) for name, value in given.items() if value is not None]
    if len(named) > 1:
        both = " and ".join(f"{name}={value!r}" for name, value in named)
        raise TypeError(f"{function}: {both} are one option: give it by one of its names")
    return named[0] if named else Option(next(iter(given)), default)


@dataclass(frozen=True, kw_only=True)
class ConvOptions:
    """The arguments of a convolution but for its operands; some have two names."""

    border_mode: BorderMode | Literal["causal"] | None = None
    subsample: Ints | None = None
    filter_flip: bool = True
    filter_dilation: Ints | None = None
    num_groups: int | None = None
    stride: Ints | None = None
    padding: BorderMode | None = None
    dilation: Ints | None = None
    groups: int | None = None

    def border(self, name: str) -> Option:
        """Return the border of a function by its name."""
        return either(name, "valid", border_mode=self.border_mode, padding=self.padding)

    def group_count(self, name: str) -> Option:
        """Return the number of groups."""
        return either(name, 1, num_groups=self.num_groups, groups=self.groups)

    def strides(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the stride along each spatial axis."""
        return per_axis(*either(name, 1, subsample=self.subsample, stride=self.stride), rank)

    def dilations(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the dilation along each spatial axis."""
        given = either(name, 1, filter_dilation=self.filter_dilation, dilation=self.dilation)
        return per_axis(*given, rank)


def operands_of(
    name: str, rank: int, input: TensorLike, filters: TensorLike, bias: TensorLike | None
) -> list[TensorVariable]:
    """Return the operands in a common dtype, with checked ranks.

    Raises
    ------
    TypeError
        If one is not an array of floats.
    ValueError
        If one has another rank.
    """
    wanted = {"input": rank + 2, "filters": rank + 2, "bias": 1}
    given = zip(wanted, (input, filters, bias), strict=True)
    operands = {what: pt.as_tensor(value) for what, value in given if value is not None}
    for what, x in operands.items():
        if x.type.dtype not in ("float16", "float32", "float64"):
            raise TypeError(
                f"{name}: {what} {x} must be an array of floats; it has dtype {x.type.dtype}"
            )
        if x.type.ndim != wanted[what]:
            raise ValueError(
                f"{name}: {what} {x} must have {wanted[what]} dimensions; it has {x.type.ndim}"
            )
    dtype = str(np.result_type(*(x.type.dtype for x in operands.values())))
    return [pt.cast(x, dtype) for x in operands.values()]


def shape_of(filters: TensorVariable) -> tuple[int | None, ...]:
    """Return the shape of filters, from their type or current value."""
    if isinstance(filters, SharedVariable):
        return tuple(np.shape(filters.get_value(borrow=True)))
    return tuple(filters.type.shape)


def check_channels(
    name: str, images: TensorVariable, filters: TensorVariable, groups: Option
) -> None:
    """Raise if the known channels of images and filters do not fit the groups."""
    (n_groups,) = per_axis(*groups, 1)
    channels, (outputs, seen) = images.type.shape[1], shape_of(filters)[:2]
    if outputs is not None and outputs % n_groups:
        raise ValueError(
            f"{name}: {outputs} filters cannot be divided into {groups.name}={n_groups}"
        )
    if channels is not None and channels % n_groups:
        raise ValueError(
            f"{name}: {channels} channels cannot be divided into {groups.name}={n_groups}"
        )
    if channels is not None and seen is not None and channels != seen * n_groups:
        raise ValueError(
            f"{name}: the images have {channels} channels and the filters {seen} for each of "
            f"{groups.name}={n_groups}, which takes {seen * n_groups} channels"
        )


def check_bias(name: str, bias: Sequence[TensorVariable], outputs: int | None) -> None:
    """Raise if the known length of a bias is not the number of output channels."""
    for vector in bias:
        (length,) = shape_of(vector)
        if length is not None and outputs is not None and length != outputs:
            raise ValueError(
                f"{name}: bias {vector} has {length} elements, the result {outputs} channels"
            )


def filter_sizes(name: str, filters: TensorVariable) -> tuple[int | None, ...]:
    """Return the spatial sizes of filters, None for unknown ones."""
    sizes = shape_of(filters)[2:]
    if 0 in sizes:
        raise ValueError(
            f"{name}: the filters {filters} are empty: their spatial sizes are {sizes}"
        )
    return sizes


def pairs_of(
    argument: str, value: int | Sequence[int | tuple[int, int]], rank: int
) -> tuple[tuple[int, int], ...]:
    """Return a padding given by numbers as a pair for each axis."""
    entries = [value] * rank if isinstance(value, int) else list(value)
    if len(entries) != rank:
        raise ValueError(
            f"{argument}={value!r} must be a number, or for each of the {rank} spatial "
            "axes a number or a pair (before, after)"
        )
    padding = [per_axis(argument, entry, 2, smallest=0) for entry in entries]
    return tuple((before, after) for before, after in padding)


def check_room(
    name: str, images: TensorVariable, pads: Sequence[tuple[int, int]], spans: Sizes
) -> None:
    """Raise if an image is known to be smaller than a window."""
    for axis, (size, pair, reach) in enumerate(zip(sizes_of(images), pads, spans, strict=True)):
        if isinstance(size, int) and isinstance(reach, int) and size + sum(pair) < reach:
            raise ValueError(
                f"{name}: spatial axis {axis} of the input has {size} elements and {sum(pair)} of "
                f"padding, but a window takes {reach}"
            )


def pads_of(
    option: Option, sizes: Sizes, spans: Sizes, strides: Sequence[int]
) -> list[tuple[Size, Size]]:
    """Return the zeros before and after each spatial axis."""
    name, mode = option
    if not isinstance(mode, str):
        return list(pairs_of(name, mode, len(spans)))
    if mode == "causal":
        return [(reach - 1, 0) for reach in spans]
    if mode not in BORDER_MODES:
        names = ", ".join(map(repr, BORDER_MODES))
        raise ValueError(
            f"{name}={mode!r} is not known: choose one of {names}, a number, or for each "
            "spatial axis a number or a pair (before, after)"
        )
    if mode == "valid":
        return [(0, 0)] * len(spans)
    if mode == "full":
        return [(reach - 1, reach - 1) for reach in spans]
    if mode == "half":
        return [(reach // 2, reach // 2) for reach in spans]
    return same_pads(sizes, spans, strides, upper=mode == "same_upper")
