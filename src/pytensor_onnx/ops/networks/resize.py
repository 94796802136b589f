"""Define the Op that resizes the spatial axes of arrays of shape (N, C, *S)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.interpolation import Interpolation
from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.static_sizes import Size, size_of


class Resize(NetworkOp):
    """Array with its spatial axes interpolated to other sizes.

    Parameters
    ----------
    sizes
        Sizes of the result, or None.
    scales
        Ratio of the sizes along each spatial axis, or None.
    interpolation
        The interpolation between elements.
    """

    __props__ = ("sizes", "scales", "interpolation")
    sizes: tuple[int, ...] | None
    scales: tuple[Fraction, ...] | None
    interpolation: Interpolation

    def __str__(self) -> str:
        scales = tuple(map(float, self.scales or ()))
        target = f"sizes={self.sizes}" if self.scales is None else f"scales={scales}"
        how = self.interpolation
        options = [target, how.mode, how.coordinates]
        options += ["antialias"] if how.antialias else []
        options += ["exclude_outside"] if how.exclude_outside else []
        return f"Resize{{{', '.join(options)}}}"

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Interpolate along one axis after the other."""
        dtype = x.type.dtype
        y = x.astype("float32") if dtype == "float16" else x
        for axis in self.resized_axes(x):
            indices, weights = self.interpolation.taps(*self._lengths(x, axis))
            position, behind = 2 + axis, x.type.ndim - 3 - axis
            if self.interpolation.mode == "nearest":
                y = y.take(indices[:, 0], axis=position)
            else:
                seen = y.take(indices, axis=position)
                weights = pt.shape_padright(weights.astype(y.type.dtype), behind)
                y = (seen * weights).sum(axis=position + 1)
        return [y.astype(dtype)]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Multiply by the transposed matrix of each axis, or sum over the copies of an element."""
        (x,), (gradient,) = inputs, output_grads
        copies = {axis: self._copies(axis) for axis in self.resized_axes(x)}
        blocks = [copies.get(axis, 1) or 1 for axis in range(x.type.ndim - 2)]
        if math.prod(blocks) > 1:
            gradient = _sum_of_blocks(gradient, blocks)
        for axis in (axis for axis, number in copies.items() if not number):
            matrix = self.interpolation.matrix(*self._lengths(x, axis)).astype(x.type.dtype)
            last = pt.moveaxis(gradient, 2 + axis, -1)
            gradient = pt.moveaxis(last @ matrix, -1, 2 + axis)
        return [gradient]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value | None:
        """Emit the operator, if float32 coordinates suffice; cubic interpolation of images only."""
        how = self.interpolation
        (variable,) = self.fgraph.inputs
        if not self.is_operator(variable):
            return None
        attributes: dict[str, Any] = {"mode": how.mode}
        if how.coordinates != "half_pixel":
            attributes["coordinate_transformation_mode"] = how.coordinates
        if how.mode == "nearest" and how.rounding != "round_prefer_floor":
            attributes["nearest_mode"] = how.rounding
        if how.mode == "cubic" and how.cubic_coefficient != -0.75:
            attributes["cubic_coeff_a"] = how.cubic_coefficient
        attributes |= {"antialias": 1} if how.antialias else {}
        attributes |= {"exclude_outside": 1} if how.exclude_outside else {}
        scales = self._float32_scales(variable)
        if scales is not None:
            return build.Resize(x, None, scales, **attributes)
        # All sizes: a runtime refuses those of some axes (the defect "sizes of some axes").
        sizes = build.Concat(build.sizes(x, 0, 2), build.ints(self.sizes or ()), axis=0)
        return build.Resize(x, None, None, sizes, **attributes)

    def is_operator(self, x: Variable) -> bool:
        """Return whether the operator agrees with the inner graph."""
        is_image = x.type.ndim == 4
        return _is_exact_in_float32(self, x) and (is_image or self.interpolation.mode != "cubic")

    def _float32_scales(self, x: Variable) -> np.ndarray | None:
        """Return float32 scales that reproduce the sizes of the result, or None if unsure."""
        if self.scales is not None:
            return np.array([1, 1, *map(float, self.scales)], dtype="float32")
        scales = []
        for size, out in zip(x.type.shape[2:], self.sizes or (), strict=True):
            if size is None or not _gives(out / size, size, out):
                return None
            scales.append(out / size)
        return np.array([1, 1, *scales], dtype="float32")

    def resized_axes(self, x: Variable) -> list[int]:
        """Return the spatial axes whose size changes, or may change."""
        if self.scales is not None:
            return [axis for axis, scale in enumerate(self.scales) if scale != 1]
        static = x.type.shape[2:]
        return [axis for axis, size in enumerate(self.sizes or ()) if size != static[axis]]

    def _lengths(self, x: Variable, axis: int) -> tuple[Size, Size, Fraction | None]:
        """Return the sizes before and after along a spatial axis, and the scale if given."""
        size = size_of(x, 2 + axis)
        return size, self.out_size(size, axis), None if self.scales is None else self.scales[axis]

    def out_size(self, size: Size, axis: int) -> Size:
        """Return the size of the result along a spatial axis."""
        if self.scales is None:
            return (self.sizes or ())[axis]
        return size * self.scales[axis].numerator // self.scales[axis].denominator

    def _copies(self, axis: int) -> int:
        """Return the number of adjacent copies of each element, 0 if it varies."""
        how = self.interpolation
        if how.mode != "nearest" or self.scales is None or self.scales[axis].denominator != 1:
            return 0
        centred = how.coordinates == "half_pixel" and how.rounding.startswith("round")
        cornered = how.coordinates == "asymmetric" and how.rounding == "floor"
        return self.scales[axis].numerator if centred or cornered else 0


def _gives(scale: float, size: int, out: int) -> bool:
    """Return whether a float32 scale gives a size, multiplied in float32 and in float64.

    Runtimes infer shapes in one and compute in the other.
    """
    coarse = np.float32(scale)
    return int(coarse * np.float32(size)) == out == int(float(coarse) * size)


def _is_exact_in_float32(op: Resize, x: Variable) -> bool:
    """Return whether coordinates computed in float32 select the same elements as exact ones.

    A float32 scale must be exact or give the same size, and no nearest element may depend on the
    last digit. With unknown sizes, only scales that float32 represents are accepted.
    """
    for axis in op.resized_axes(x):
        size = x.type.shape[2 + axis]
        scale = None if op.scales is None else op.scales[axis]
        if scale is not None and scale.denominator == 1:
            continue
        if size is None:
            if scale is not None and Fraction(float(np.float32(scale))) != scale:
                return False
            aligned = op.interpolation.coordinates == "align_corners"
            if op.interpolation.mode == "nearest" and (scale is None or aligned):
                return False
            continue
        out = op.out_size(size, axis)
        if scale is not None and not _gives(float(scale), size, out):
            return False
        if op.interpolation.mode == "nearest" and op.interpolation.is_tied(size, out, scale):
            return False
    return True


def _sum_of_blocks(x: TensorVariable, sizes: Sequence[int]) -> TensorVariable:
    """Return the sums over blocks of the given sizes, which tile an array (N, C, *S)."""
    tiles = [part for i, n in enumerate(sizes) for part in (size_of(x, 2 + i) // n, n)]
    blocks = x.reshape((size_of(x, 0), size_of(x, 1), *tiles))
    return blocks.sum(axis=[3 + 2 * i for i in range(len(sizes))])


def repeated(x: TensorVariable, times: Sequence[int]) -> TensorVariable:
    """Repeat the elements of an array (N, C, *S) along the spatial axes."""
    nearest = Interpolation("nearest", "asymmetric", "floor", -0.75)
    return Resize(sizes=None, scales=tuple(map(Fraction, times)), interpolation=nearest)(x)
