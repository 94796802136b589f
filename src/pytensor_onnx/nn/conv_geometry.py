"""How the taps of filters meet the cells of images: what the Ops of convolution have in common."""

from __future__ import annotations

from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.base import NetworkOp
from pytensor_onnx.nn.sizes import Size, Sizes, sizes_of
from pytensor_onnx.nn.taps import Pairs, span


class Convolution(NetworkOp):
    """What the Ops have in common: how the taps of the filters meet the cells of the images.

    Parameters
    ----------
    kernel
        Sizes of the filters along the spatial axes, None where they are known at run time only.
    pads
        Zeros before and after each spatial axis of the images.
    strides, dilations
        Distances between windows, and between the taps of one window.
    groups
        Number of groups that the channels are divided into.
    """

    __props__: tuple[str, ...] = ("kernel", "pads", "strides", "dilations", "groups")
    kernel: tuple[int | None, ...]
    pads: Pairs
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int

    def geometry(self) -> dict[str, object]:
        """Return the parameters that an adjoint shares."""
        return {name: getattr(self, name) for name in Convolution.__props__}

    def attributes(self) -> dict[str, int | list[int]]:
        """Return the attributes of the ONNX operator, without defaults."""
        attributes: dict[str, int | list[int]] = {}
        if None not in self.kernel:
            attributes["kernel_shape"] = [k for k in self.kernel if k is not None]
        if any(map(any, self.pads)):
            attributes["pads"] = [pair[i] for i in (0, 1) for pair in self.pads]
        if max(self.strides) > 1:
            attributes["strides"] = list(self.strides)
        if max(self.dilations) > 1:
            attributes["dilations"] = list(self.dilations)
        if self.groups > 1:
            attributes["group"] = self.groups
        return attributes

    def kernel_of(self, filters: TensorVariable) -> Sizes:
        """Return the sizes of the kernel of filters, ints where they are known."""
        return self.kernel_from(sizes_of(filters))

    def kernel_from(self, sizes: Sizes) -> Sizes:
        """Return the sizes of a kernel from those that filters have at run time."""
        axes = zip(self.kernel, sizes, strict=True)
        return [own if known is None else known for known, own in axes]

    def grouped(self, *sizes: Size) -> tuple[Size, ...]:
        """Return a shape with an axis for the groups before the last two, if there are groups."""
        groups = () if self.groups == 1 else (self.groups,)
        return (*sizes[:-2], *groups, *sizes[-2:])

    def spans(self, kernel: Sizes) -> Sizes:
        """Return how many cells a window reaches over along each spatial axis."""
        return [span(k, d) for k, d in zip(kernel, self.dilations, strict=True)]

    def counts(self, sizes: Sizes, kernel: Sizes) -> Sizes:
        """Return the number of windows along each spatial axis."""
        axes = zip(sizes, self.pads, self.spans(kernel), self.strides, strict=True)
        return [(size + sum(pads) - reach) // stride + 1 for size, pads, reach, stride in axes]

    def __str__(self) -> str:
        options = [f"kernel={self.kernel}"]
        options += [f"pads={self.pads}"] if any(map(any, self.pads)) else []
        options += [f"strides={self.strides}"] if max(self.strides) > 1 else []
        options += [f"dilations={self.dilations}"] if max(self.dilations) > 1 else []
        options += [f"groups={self.groups}"] if self.groups > 1 else []
        return f"{type(self).__name__}{{{', '.join(options)}}}"
