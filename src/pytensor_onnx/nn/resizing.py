"""Resizing of the spatial axes of arrays of shape (N, C, *S)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.builder import Builder
from pytensor_onnx.nn.base import NetworkOp
from pytensor_onnx.nn.interpolation import (
    COORDINATES,
    MODES,
    ROUNDINGS,
    Array,
    Interpolation,
    Size,
)
from pytensor_onnx.nn.windows import Ints, per_axis, spatial_rank, spatial_size

LARGEST_DENOMINATOR = 2**20
type Scales = float | Sequence[float]


class Resize(NetworkOp):
    """An array whose spatial axes have other sizes.

    Parameters
    ----------
    sizes
        Sizes of the result; None where scales are given.
    scales
        How many times larger the result is along each spatial axis; None where sizes are given.
    interpolation
        How values between cells are made.
    """

    __props__ = ("sizes", "scales", "interpolation")
    sizes: tuple[int, ...] | None
    scales: tuple[Fraction, ...] | None
    interpolation: Interpolation

    def __str__(self) -> str:
        scales = tuple(map(float, self.scales or ()))
        target = f"sizes={self.sizes}" if self.scales is None else f"scales={scales}"
        return f"Resize{{{target}, {self.interpolation.mode}, {self.interpolation.coordinates}}}"

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Interpolate along one axis after the other."""
        dtype = x.type.dtype
        y = x.astype("float32") if dtype == "float16" else x
        for axis in self.resized_axes(x):
            parts = []
            for cells, weights in self.taps(x, axis):
                part = y.take(cells, axis=2 + axis)
                if self.interpolation.mode != "nearest":
                    along = (-1, *(1,) * (x.type.ndim - 3 - axis))
                    part = part * weights.astype(y.type.dtype).reshape(along)
                parts.append(part)
            y = sum(parts[1:], start=parts[0])
        return [y.astype(dtype)]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Multiply by the transposed matrix of each axis; sum over the copies of a cell."""
        (x,), (gradient,) = inputs, output_grads
        for axis in self.resized_axes(x):
            size, position = spatial_size(x, axis), 2 + axis
            copies = self._copies(axis)
            if copies:
                shape = [*gradient.shape[:position], size, copies, *gradient.shape[position + 1 :]]
                gradient = gradient.reshape(shape).sum(axis=position + 1)
            else:
                matrix = self._matrix(x, axis).astype(x.type.dtype)
                last = pt.moveaxis(gradient, position, -1)
                gradient = pt.moveaxis(last @ matrix, -1, position)
        return [gradient]

    def emit(self, onnx: Builder, x: ir.Value) -> ir.Value | None:
        """Emit the operator, if float32 tells the places well enough; cubic ones of images only."""
        how = self.interpolation
        (variable,) = self.fgraph.inputs
        is_image = variable.type.ndim == 4
        if not _is_told_by_float32(self, variable) or (how.mode == "cubic" and not is_image):
            return None
        attributes: dict[str, Any] = {"mode": how.mode}
        if how.coordinates != "half_pixel":
            attributes["coordinate_transformation_mode"] = how.coordinates
        if how.mode == "nearest" and how.rounding != "round_prefer_floor":
            attributes["nearest_mode"] = how.rounding
        if how.mode == "cubic" and how.cubic_coefficient != -0.75:
            attributes["cubic_coeff_a"] = how.cubic_coefficient
        scales = self._float32_scales(variable)
        if scales is not None:
            return onnx.Resize(x, None, scales, **attributes)
        # ONNX Runtime refuses sizes of some axes only, if a Transpose comes before or after.
        sizes = onnx.Concat(onnx.sizes(x, 0, 2), onnx.ints(self.sizes or ()), axis=0)
        return onnx.Resize(x, None, None, sizes, **attributes)

    def _float32_scales(self, x: Variable) -> np.ndarray | None:
        """Return scales that give the sizes of the result, None where they may not."""
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

    def taps(self, x: Variable, axis: int) -> list[tuple[Array, Array]]:
        """Return the cells and weights that make the result along a spatial axis."""
        size = spatial_size(x, axis)
        scale = None if self.scales is None else self.scales[axis]
        return self.interpolation.taps(size, self.out_size(size, axis), scale)

    def out_size(self, size: Size, axis: int) -> Size:
        """Return the size of the result along a spatial axis."""
        if self.scales is None:
            return (self.sizes or ())[axis]
        return size * self.scales[axis].numerator // self.scales[axis].denominator

    def _copies(self, axis: int) -> int:
        """Return how often each cell appears in a row in the result, 0 where that differs."""
        how = self.interpolation
        if how.mode != "nearest" or self.scales is None or self.scales[axis].denominator != 1:
            return 0
        centred = how.coordinates == "half_pixel" and how.rounding.startswith("round")
        cornered = how.coordinates == "asymmetric" and how.rounding == "floor"
        return self.scales[axis].numerator if centred or cornered else 0

    def _matrix(self, x: Variable, axis: int) -> Array:
        """Return the matrix, of shape (result, input), that interpolates along an axis."""
        size, total = spatial_size(x, axis), None
        for cells, weights in self.taps(x, axis):
            is_known = isinstance(cells, np.ndarray)
            columns = np.arange(size) if is_known else pt.arange(size)
            part = weights[:, None] * (
                cells[:, None] == columns if is_known else pt.eq(cells[:, None], columns)
            )
            total = part if total is None else total + part
        return total


def resize(
    input: Any,
    sizes: Ints | None = None,
    scales: Scales | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
) -> TensorVariable:
    """Resize the spatial axes of an array, exported as one ``Resize``.

    Parameters
    ----------
    input
        Floats of shape (N, C, *S) with one to three spatial axes.
    sizes
        The sizes of the result, one int for each spatial axis or one for all.
    scales
        How many times larger the result is instead: ``floor(size * scale)`` cells.
    mode
        ``"nearest"``, ``"linear"`` or ``"cubic"``, along each axis.
    coordinates
        Which place ``p`` in the input belongs to cell ``i`` of the result:

        - ``"half_pixel"``: ``(i + 0.5) / scale - 0.5``, the centres of cells on each other,
        - ``"pytorch_half_pixel"``: the same, but 0 where the result has one cell only,
        - ``"align_corners"``: ``i * (size - 1) / (result - 1)``, the outer cells on each other,
        - ``"asymmetric"``: ``i / scale``.
    rounding
        Which cell is nearest to a place: ``"round_prefer_floor"``, ``"round_prefer_ceil"``,
        ``"floor"`` or ``"ceil"``.
    cubic_coefficient
        Parameter of the cubic kernel of Keys, -0.75 or -0.5 as a rule.

    Returns
    -------
    TensorVariable
        Array of the same dtype. Beyond the edges the outer cells are repeated.

    Raises
    ------
    TypeError, ValueError
        If the array does not have these axes, or an argument is none of these.

    Notes
    -----
    The formulas are those of the operator Resize in the ONNX standard. Runtimes compute the places
    in float32. Where that could take a neighbour for the nearest cell, gathers are exported.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> resize(x, sizes=5, mode="linear").eval({x: np.array([[[0.0, 5.0]]])}, mode="ONNX")
    array([[[0. , 0.5, 2.5, 4.5, 5. ]]])
    """
    x = pt.as_tensor(input)
    rank = spatial_rank(x, "resize")
    for name, value, known in (
        ("mode", mode, MODES),
        ("coordinates", coordinates, COORDINATES),
        ("rounding", rounding, ROUNDINGS),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, known))}")
    if (sizes is None) == (scales is None):
        raise ValueError("resize takes either sizes or scales")
    return Resize(
        sizes=None if sizes is None else per_axis("sizes", sizes, rank),
        scales=None if scales is None else _fractions(scales, rank),
        interpolation=Interpolation(mode, coordinates, rounding, float(cubic_coefficient)),
    )(x)


def upsample(input: Any, scale: Scales, mode: str = "nearest") -> TensorVariable:
    """Make the spatial axes of an array larger by a factor, exported as one ``Resize``.

    Parameters
    ----------
    input
        Floats of shape (N, C, *S) with one to three spatial axes.
    scale
        The factor, or one for each spatial axis.
    mode
        ``"nearest"`` repeats each cell; ``"linear"`` and ``"cubic"`` interpolate between the
        centres of cells.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> upsample(x, 2).eval({x: np.array([[[1.0, 5.0]]])}, mode="ONNX")
    array([[[1., 1., 5., 5.]]])
    """
    if mode == "nearest":
        return resize(input, scales=scale, mode=mode, coordinates="asymmetric", rounding="floor")
    return resize(input, scales=scale, mode=mode)


def _fractions(scales: Scales, rank: int) -> tuple[Fraction, ...]:
    values = [scales] * rank if isinstance(scales, int | float) else list(scales)
    if len(values) != rank:
        raise ValueError(
            f"scales={scales} must be one number, or {rank}: one for each spatial axis"
        )
    if any(not 0 < value < float("inf") for value in values):
        raise ValueError(f"scales={scales} must be positive and finite")
    return tuple(Fraction(value).limit_denominator(LARGEST_DENOMINATOR) for value in values)


def _gives(scale: float, size: int, out: int) -> bool:
    """Return whether a scale in float32 gives a size, multiplied in float32 and in float64.

    Runtimes do the one to infer shapes and the other to compute.
    """
    coarse = np.float32(scale)
    return int(coarse * np.float32(size)) == out == int(float(coarse) * size)


def _is_told_by_float32(op: Resize, x: Variable) -> bool:
    """Return whether the places, computed in float32, are on the side that they are on in truth.

    A float32 scale is exact or gives the same size, and nearest cells are never a matter of the
    last digit. Of sizes that are not known, only those scales are trusted that are whole.
    """
    for axis in op.resized_axes(x):
        size = x.type.shape[2 + axis]
        scale = None if op.scales is None else op.scales[axis]
        if scale is not None and scale.denominator == 1:
            continue
        if size is None:
            if scale is not None and Fraction(float(np.float32(scale))) != scale:
                return False
            if op.interpolation.mode == "nearest":
                return False
            continue
        out = op.out_size(size, axis)
        if scale is not None and not _gives(float(scale), size, out):
            return False
        if op.interpolation.mode == "nearest" and op.interpolation.is_tied(size, out, scale):
            return False
    return True
