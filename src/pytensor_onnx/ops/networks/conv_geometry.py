"""Geometry of convolutions: sizes, padding, strides and dilations, shared by their Ops."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.static_sizes import Size, Sizes, sizes_of, window_count
from pytensor_onnx.ops.networks.taps import Pairs, span


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
