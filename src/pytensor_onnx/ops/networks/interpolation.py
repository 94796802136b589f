"""Compute the positions and weights of interpolation along one axis, as Resize defines them."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.static_sizes import Size

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
