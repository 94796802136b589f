"""Interpolation of arrays to other sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import (
    Size,
    elements,
    is_size,
    like,
    not_known,
    size,
    static,
)
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.resize import COORDINATES, Interpolation

type Optional = TensorVariable | None


@dataclass(frozen=True)
class _Resizing:
    """The attributes of Resize."""

    mode: str
    coordinates: str
    rounding: str
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


@onnx_import("Upsample")
def upsample(
    x: TensorVariable, *, scales: Sequence[float], mode: str = "nearest"
) -> TensorVariable:
    """Resize by scales of an attribute."""
    how = _Resizing(mode, "asymmetric", "floor")
    return _resized(x, how, range(x.type.ndim), None, scales, None)


@onnx_import("Upsample", since=9)
def upsample_by_operand(
    x: TensorVariable, scales: TensorVariable, *, mode: str = "nearest"
) -> TensorVariable:
    """Resize by scales of an operand."""
    return upsample(x, scales=[float(s) for s in static(scales, "scales")], mode=mode)


@onnx_import("Resize", since=10)
def resize_by_scales(
    x: TensorVariable, scales: TensorVariable, *, mode: str = "nearest"
) -> TensorVariable:
    """Resize by scales of an operand."""
    return upsample_by_operand(x, scales, mode=mode)


@onnx_import("Resize", since=11)
def resize(
    x: TensorVariable,
    roi: Optional = None,
    scales: Optional = None,
    sizes: Optional = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> TensorVariable:
    """Resize by scales, or to sizes."""
    coordinates = coordinate_transformation_mode
    if coordinates == "tf_half_pixel_for_nn":
        coordinates = "half_pixel"
    how = _Resizing(
        mode,
        coordinates,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
    )
    resized = range(x.type.ndim) if axes is None else [a % x.type.ndim for a in axes]
    region = None
    if coordinates == "tf_crop_and_resize":
        region = [float(v) for v in static(roi, "roi")] if roi is not None else None
    if sizes is not None and sizes.type.shape != (0,):
        wanted = _wanted(x, resized, elements(sizes), keep_aspect_ratio_policy)
        return _resized(x, how, resized, region, *wanted)
    if scales is None:
        raise UnsupportedCase("neither scales nor sizes are given")
    return _resized(x, how, resized, region, [float(s) for s in static(scales, "scales")], None)


def _wanted(
    x: TensorVariable, axes: Sequence[int], sizes: list[Size], policy: str
) -> tuple[list[float] | None, list[Size]]:
    """Return scales, where the policy asks for one common scale, and sizes."""
    if policy == "stretch":
        return None, sizes
    own = [size(x, axis) for axis in axes]
    if not all(isinstance(n, int) for n in [*own, *sizes]):
        raise not_known("the sizes before and after must be known at import", *own, *sizes)
    ratios = [int(n) / int(m) for n, m in zip(sizes, own, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [scale] * len(own), [int(scale * int(m) + 0.5) for m in own]


def _resized(
    x: TensorVariable,
    how: _Resizing,
    axes: Sequence[int],
    region: Sequence[float] | None,
    scales: Sequence[float] | None,
    sizes: Sequence[Size] | None,
) -> TensorVariable:
    operation = _as_operation(x, how, axes, scales, sizes)
    if operation is not None:
        return operation
    dtype, y = x.type.dtype, x
    if how.mode != "nearest" and dtype != "float64":
        y = x.astype("float32")
    outside: Any = None
    for position, axis in enumerate(axes):
        scale = None if scales is None else scales[position]
        out = None if sizes is None else sizes[position]
        if _is_unchanged(x, axis, scale, out, how):
            continue
        limits = None
        if region is not None:
            limits = region[position], region[position + len(axes)]
        y, beyond = _along_axis(y, how, axis, scale, out, limits)
        if beyond is not None and beyond.any():
            shape = [-1 if a == axis else 1 for a in range(x.type.ndim)]
            mask = beyond.reshape(shape)
            outside = mask if outside is None else outside | mask
    if outside is not None:
        y = pt.switch(outside, like(y, how.extrapolation), y)
    if how.mode != "nearest" and not dtype.startswith("float"):
        limits_of = np.iinfo(dtype)
        y = pt.clip(pt.round(y), limits_of.min, limits_of.max)
    return y.astype(dtype)


def _is_unchanged(
    x: TensorVariable, axis: int, scale: float | None, out: Size | None, how: _Resizing
) -> bool:
    if how.coordinates == "tf_crop_and_resize":
        return False
    if out is None or scale is not None:
        return scale == 1
    # The batch and the channels are given as the sizes of the operand.
    is_of_batch = axis < 2 and not isinstance(out, int) and is_size(out)
    return is_of_batch or (isinstance(out, int) and out == x.type.shape[axis])


def _as_operation(
    x: TensorVariable,
    how: _Resizing,
    axes: Sequence[int],
    scales: Sequence[float] | None,
    sizes: Sequence[Size] | None,
) -> TensorVariable | None:
    """Return the package's operation if it computes this case, on images."""
    rank = x.type.ndim - 2
    is_image = rank in (1, 2, 3) and x.type.dtype.startswith("float")
    if not is_image or how.coordinates not in COORDINATES or (scales and sizes):
        return None
    by_axis: list[Any] = [None] * x.type.ndim
    for position, axis in enumerate(axes):
        by_axis[axis] = scales[position] if scales is not None else (sizes or ())[position]
    for axis in (0, 1):
        value = by_axis[axis]
        scale, out = (value, None) if scales is not None else (None, value)
        if value is not None and not _is_unchanged(x, axis, scale, out, how):
            return None
    options: dict[str, Any] = {
        "mode": how.mode,
        "coordinates": how.coordinates,
        "rounding": how.rounding,
        "cubic_coefficient": how.cubic,
        "antialias": how.antialias and how.mode != "nearest",
        "exclude_outside": how.exclude_outside,
    }
    if scales is not None:
        factors = [1.0 if v is None else v for v in by_axis[2:]]
        if not all(_gives_whole(x, 2 + a, s) for a, s in enumerate(factors)):
            return None
        return nn.resize(x, scales=factors, **options)
    targets = [size(x, 2 + a) if v is None else v for a, v in enumerate(by_axis[2:])]
    if not all(isinstance(n, int) for n in targets):
        return None
    return nn.resize(x, sizes=[int(n) for n in targets], **options)


def _gives_whole(x: TensorVariable, axis: int, scale: float) -> bool:
    """Return whether a scale gives a whole number, so that all readings of it agree."""
    if scale == int(scale):
        return True
    length = x.type.shape[axis]
    return length is not None and length * scale == int(length * scale)


def _fraction(scale: float) -> Fraction:
    return Fraction(scale).limit_denominator(2**20)


def _along_axis(
    x: TensorVariable,
    how: _Resizing,
    axis: int,
    scale: float | None,
    out: Size | None,
    region: tuple[float, float] | None,
) -> tuple[TensorVariable, Any]:
    """Return an array interpolated along one axis, and which results lie beyond the region."""
    length = size(x, axis)
    if not isinstance(length, int) or not (out is None or isinstance(out, int)):
        return _at_run_time(x, how, axis, scale, out), None
    if out is None:
        out = math.floor(length * float(scale or 1))
    factor = out / length if scale is None else scale
    places, beyond = _places(how, length, out, factor, region)
    indices, weights = _taps(how, places, length, factor)
    if how.mode == "nearest":
        return x.take(indices[:, 0], axis=axis), beyond
    matrix = np.zeros((out, length))
    np.add.at(matrix, (np.arange(out)[:, None], indices), weights)
    last = pt.moveaxis(x, axis, -1)
    return pt.moveaxis(last @ like(x, matrix.T), -1, axis), beyond


def _at_run_time(
    x: TensorVariable, how: _Resizing, axis: int, scale: float | None, out: Size | None
) -> TensorVariable:
    if how.coordinates not in COORDINATES or (out is None and not float(scale or 1).is_integer()):
        reason = f"the size of axis {axis} must be known at import for {how.coordinates}"
        raise not_known(reason, x, out)
    factor = None if out is not None else _fraction(float(scale or 1))
    interpolation = Interpolation(
        how.mode,
        how.coordinates,
        how.rounding,
        how.cubic,
        antialias=how.antialias and how.mode != "nearest",
        exclude_outside=how.exclude_outside,
    )
    target = x.shape[axis] * int(scale or 1) if out is None else out
    indices, weights = interpolation.taps(size(x, axis), target, factor)
    indices, weights = pt.as_tensor(indices), pt.as_tensor(weights)
    if how.mode == "nearest":
        return x.take(indices[:, 0], axis=axis)
    seen = x.take(indices, axis=axis)
    behind = x.type.ndim - 1 - axis
    return (seen * pt.shape_padright(weights.astype(x.type.dtype), behind)).sum(axis=axis + 1)


def _places(
    how: _Resizing, length: int, out: int, scale: float, region: tuple[float, float] | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the coordinates of the results in the operand."""
    index = np.arange(out, dtype="float64")
    width = scale * length
    match how.coordinates:
        case "align_corners":
            return index * 0 if width == 1 else index * (length - 1) / (width - 1), None
        case "asymmetric":
            return index / scale, None
        case "half_pixel":
            return (index + 0.5) / scale - 0.5, None
        case "pytorch_half_pixel":
            return (index + 0.5) / scale - 0.5 if width > 1 else index * 0 - 0.5, None
        case "half_pixel_symmetric":
            offset = length / 2 * (1 - out / width)
            return offset + (index + 0.5) / scale - 0.5, None
        case "tf_crop_and_resize":
            start, end = region or (0.0, 1.0)
            if width == 1:
                places = (end - start) * (length - 1) / 2 + index * 0
            else:
                places = index * (end - start) * (length - 1) / (width - 1)
            places = places + start * (length - 1)
            return places, (places < 0) | (places > length - 1)
    raise UnsupportedCase(f"its coordinates {how.coordinates} are not those of the standard")


def _taps(
    how: _Resizing, places: np.ndarray, length: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the operand's elements of each result, and their weights."""
    if how.mode == "nearest":
        nearest = _rounded(how.rounding, places)[:, None]
        return np.clip(nearest, 0, length - 1), np.ones_like(nearest, dtype="float64")
    shrink = min(scale, 1.0) if how.antialias else 1.0
    reach = (1 if how.mode == "linear" else 2) / shrink
    first = np.floor(places[:, None] - reach).astype("int64")
    indices = first + np.arange(math.ceil(2 * reach) + 2)
    distances = np.abs(indices - places[:, None]) * shrink
    weights = _kernel(how, distances)
    if how.exclude_outside:
        weights = weights * ((indices >= 0) & (indices < length))
    if how.exclude_outside or how.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(indices, 0, length - 1), weights


def _kernel(how: _Resizing, d: np.ndarray) -> np.ndarray:
    if how.mode == "linear":
        return np.clip(1 - d, 0, 1)
    a = how.cubic
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    outer = (((d - 5) * d + 8) * d - 4) * a
    return np.where(d <= 1, inner, np.where(d < 2, outer, 0.0))


def _rounded(rounding: str, places: np.ndarray) -> np.ndarray:
    match rounding:
        case "floor":
            found = np.floor(places)
        case "ceil":
            found = np.ceil(places)
        case "round_prefer_ceil":
            found = np.floor(places + 0.5)
        case _:
            found = np.ceil(places - 0.5)
    return found.astype("int64")
