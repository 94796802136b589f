"""Resizing by interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import NetworkOp, Size, size_of


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


MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

type Array = np.ndarray | TensorVariable


@dataclass(frozen=True)
class Interpolation:
    """Interpolation between the elements of an array.

    Attributes
    ----------
    mode
        One of `MODES`.
    coordinates
        One of `COORDINATES`: the input coordinate of an output element.
    rounding
        One of `ROUNDINGS`: rounding of a coordinate to the nearest element.
    cubic_coefficient
        Parameter of Keys' cubic interpolation.
    antialias
        Whether the interpolation filter is widened for a smaller output.
    exclude_outside
        Whether elements beyond the edges have no weight; else the outer elements are repeated.
    """

    mode: str
    coordinates: str
    rounding: str
    cubic_coefficient: float
    antialias: bool = False
    exclude_outside: bool = False

    def taps(self, size: Size, out: Size, scale: Fraction | None) -> tuple[Array, Array]:
        """Return the input elements of each output element, and their weights.

        Parameters
        ----------
        size, out
            Number of elements of the input and of the output.
        scale
            Ratio of the sizes; by default computed from them.

        Returns
        -------
        pair of arrays
            Indices and float64 weights, of shape (out, taps); NumPy arrays if both sizes are known.
        """
        places, below = self._place(size, out, scale)
        xp: Any = np if isinstance(places, np.ndarray) else pt
        above = places[:, None]
        if self.mode == "nearest":
            indices = self._nearest(above, below)
            return xp.clip(indices, 0, size - 1), xp.ones_like(indices, dtype="float64")
        if self.mode == "linear" and not self.antialias:
            above = xp.clip(above, 0, below * (size - 1))
        wider, width = self._stretch(size, out, scale)
        reach = (1 if self.mode == "linear" else 2) * wider
        first = (above * width - reach * below) // (below * width) + 1
        indices = first + xp.arange(-(-2 * reach // width))
        distances = abs(indices * below - above) * width / (below * wider)
        weights = self._weights(distances, np.where if xp is np else pt.switch)
        if self.exclude_outside:
            weights = weights * ((indices >= 0) & (indices < size))
        if self.exclude_outside or self.antialias:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return xp.clip(indices, 0, size - 1), weights

    def matrix(self, size: Size, out: Size, scale: Fraction | None) -> Array:
        """Return the interpolation matrix of shape (out, size); parameters as for `taps`."""
        indices, weights = self.taps(size, out, scale)
        if isinstance(indices, np.ndarray):
            matrix = np.zeros((out, size))
            np.add.at(matrix, (np.arange(out)[:, None], indices), weights)
            return matrix
        return pt.zeros((out, size))[pt.arange(out)[:, None], indices].inc(weights)

    def is_tied(self, size: int, out: int, scale: Fraction | None) -> bool:
        """Return whether rounding could move a coordinate across the border between two elements.

        It cannot if the quotient is exact: for zero, and for a scale that float32 represents.
        """
        factor = Fraction(out, size) if scale is None else scale
        if self.coordinates != "align_corners" and Fraction(float(np.float32(factor))) == factor:
            return False
        places, below = self._place(size, out, scale)
        above = np.asarray(places)
        if self.coordinates in ("align_corners", "asymmetric"):
            above = above[1:]
        twice = 2 * above % (2 * below)
        return bool(np.any(twice == (below if self.rounding.startswith("round") else 0)))

    def _place(self, size: Size, out: Size, scale: Fraction | None) -> tuple[Array, Size]:
        """Return the coordinates of the output elements as fractions of integers."""
        is_known = isinstance(size, int) and isinstance(out, int)
        index = np.arange(out, dtype="int64") if is_known else pt.arange(out, dtype="int64")
        if self.coordinates == "align_corners":
            steps = out - 1
            below = max(steps, 1) if isinstance(steps, int) else pt.maximum(steps, 1)
            return index * (size - 1), below
        if scale is None:
            above_scale, below_scale = out, size
        else:
            above_scale, below_scale = scale.numerator, scale.denominator
        if self.coordinates == "asymmetric":
            return index * below_scale, above_scale
        place = (2 * index + 1) * below_scale - above_scale
        if self.coordinates == "pytorch_half_pixel":
            place = place * (out > 1) if is_known else pt.switch(pt.gt(out, 1), place, 0)
        return place, 2 * above_scale

    def _stretch(self, size: Size, out: Size, scale: Fraction | None) -> tuple[Size, Size]:
        """Return the factor by which the interpolation filter is widened, as a fraction."""
        if not self.antialias:
            return 1, 1
        if scale is not None:
            return max(scale.numerator, scale.denominator), scale.numerator
        is_known = isinstance(size, int) and isinstance(out, int)
        return max(size, out) if is_known else pt.maximum(size, out), out

    def _nearest(self, above: Array, below: Size) -> Array:
        if self.rounding == "floor":
            return above // below
        if self.rounding == "ceil":
            return -(-above // below)
        if self.rounding == "round_prefer_ceil":
            return (2 * above + below) // (2 * below)
        return -((below - 2 * above) // (2 * below))

    def _weights(self, d: Array, choose: Callable[..., Array]) -> Array:
        """Return the weights at some distances: a triangle, or Keys' cubic convolution."""
        if self.mode == "linear":
            return (1 - d).clip(0, 1)
        a = self.cubic_coefficient
        inner = ((a + 2) * d - (a + 3)) * d * d + 1
        outer = (((d - 5) * d + 8) * d - 4) * a
        return choose(d <= 1, inner, choose(d < 2, outer, 0.0))
