"""Interpolation along one axis, from the definition of the operator Resize."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

type Array = np.ndarray | TensorVariable
type Size = int | TensorVariable


@dataclass(frozen=True)
class Interpolation:
    """How values between the cells of an array are made.

    Attributes
    ----------
    mode
        One of `MODES`.
    coordinates
        One of `COORDINATES`: which place in the input belongs to a cell of the output.
    rounding
        One of `ROUNDINGS`: which cell is the nearest one.
    cubic_coefficient
        The parameter of the cubic kernel.
    """

    mode: str
    coordinates: str
    rounding: str
    cubic_coefficient: float

    def taps(self, size: Size, out: Size, scale: Fraction | None) -> list[tuple[Array, Array]]:
        """Return the cells that each cell of the output is made of, and their weights.

        Parameters
        ----------
        size, out
            Number of cells of the input and of the output.
        scale
            How many times larger the output is; by default what the sizes give.

        Returns
        -------
        list of pairs
            Indices and float64 weights, vectors over the output; NumPy arrays where both sizes are
            known.
        """
        above, below = self._place(size, out, scale)
        xp: Any = np if isinstance(above, np.ndarray) else pt
        if self.mode == "nearest":
            cells = [self._nearest(above, below)]
            weights = [xp.ones_like(cells[0], dtype="float64")]
        else:
            if self.mode == "linear":
                above = xp.clip(above, 0, below * (size - 1))
            first = above // below
            t = (above - first * below) / below
            offsets = (0, 1) if self.mode == "linear" else (-1, 0, 1, 2)
            cells = [first + offset for offset in offsets]
            weights = [1 - t, t] if self.mode == "linear" else self._cubic_weights(t)
        return [
            (xp.clip(cell, 0, size - 1), weight)
            for cell, weight in zip(cells, weights, strict=True)
        ]

    def is_tied(self, size: int, out: int, scale: Fraction | None) -> bool:
        """Return whether a place lies just where the nearest cell changes."""
        above, below = self._place(size, out, scale)
        twice = 2 * np.asarray(above) % (2 * below)
        return bool(np.any(twice == (below if self.rounding.startswith("round") else 0)))

    def _place(self, size: Size, out: Size, scale: Fraction | None) -> tuple[Array, Size]:
        """Return the places of the cells of the output as fractions of integers."""
        is_known = isinstance(size, int) and isinstance(out, int)
        cell = np.arange(out, dtype="int64") if is_known else pt.arange(out, dtype="int64")
        if self.coordinates == "align_corners":
            steps = out - 1
            below = max(steps, 1) if isinstance(steps, int) else pt.maximum(steps, 1)
            return cell * (size - 1), below
        if scale is None:
            above_scale, below_scale = out, size
        else:
            above_scale, below_scale = scale.numerator, scale.denominator
        if self.coordinates == "asymmetric":
            return cell * below_scale, above_scale
        place = (2 * cell + 1) * below_scale - above_scale
        if self.coordinates == "pytorch_half_pixel":
            place = place * (out > 1) if is_known else pt.switch(pt.gt(out, 1), place, 0)
        return place, 2 * above_scale

    def _nearest(self, above: Array, below: Size) -> Array:
        if self.rounding == "floor":
            return above // below
        if self.rounding == "ceil":
            return -(-above // below)
        if self.rounding == "round_prefer_ceil":
            return (2 * above + below) // (2 * below)
        return -((below - 2 * above) // (2 * below))

    def _cubic_weights(self, t: Array) -> list[Array]:
        """Return the weights of Keys' cubic convolution for the four cells around a place."""
        a = self.cubic_coefficient

        def inner(d: Array) -> Array:
            return ((a + 2) * d - (a + 3)) * d * d + 1

        def outer(d: Array) -> Array:
            return (((d - 5) * d + 8) * d - 4) * a

        return [outer(t + 1), inner(t), inner(1 - t), outer(2 - t)]
