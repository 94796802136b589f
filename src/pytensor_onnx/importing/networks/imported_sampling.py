"""Sampling of images at computed coordinates, and the detection of objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.imported_windows import pairs
from pytensor_onnx.importing.registry.known_values import (
    Size,
    known,
    like,
    size,
    sizes,
    static_ints,
)
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None
type Ints = Sequence[int] | None
type Place = Callable[[TensorVariable, int], tuple[TensorVariable, Any]]


@onnx_import("Crop")
def crop(x: TensorVariable, *, border: Sequence[int], scale: Ints = None) -> TensorVariable:
    """Cut off the borders of images, up to a size; an experimental operator, as the next one."""
    left, top, right, bottom = border
    if scale is not None:
        return x[:, :, top : top + scale[0], left : left + scale[1]]
    return x[:, :, top : size(x, 2) - bottom, left : size(x, 3) - right]


@onnx_import("ImageScaler")
def image_scaler(x: TensorVariable, *, bias: Sequence[float], scale: float) -> TensorVariable:
    """Multiply images by a number, and add one for each channel."""
    return x * like(x, scale) + like(x, np.asarray(bias)[:, None, None])


@onnx_import("GridSample")
@onnx_import("GridSample", domain=MICROSOFT)
def grid_sample(
    x: TensorVariable,
    grid: TensorVariable,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> TensorVariable:
    """Interpolate images at the coordinates of a grid, which go from -1 to 1."""
    rank = x.type.ndim - 2
    lengths = [size(x, 2 + axis) for axis in range(rank)]
    coordinates = []
    for axis, length in enumerate(lengths):
        g = grid[..., rank - 1 - axis]
        count = _number(length, g)
        if align_corners:
            place = (g + like(g, 1)) / like(g, 2) * (count - like(g, 1))
        else:
            place = ((g + like(g, 1)) * count - like(g, 1)) / like(g, 2)
        coordinates.append(_bounded(place, length, padding_mode, bool(align_corners)))

    def place_of(index: TensorVariable, axis: int) -> tuple[TensorVariable, Any]:
        length = lengths[axis]
        if padding_mode == "reflection":
            index = _reflected(index, length, bool(align_corners))
        is_inside = (index >= 0) & (index < length) if padding_mode == "zeros" else None
        return pt.clip(index, 0, length - 1), is_inside

    return _interpolated(x, coordinates, mode.removeprefix("bi"), place_of)


def _number(length: Size, x: TensorVariable) -> Any:
    return like(x, length) if isinstance(length, int) else length.astype(x.type.dtype)


def _bounded(
    place: TensorVariable, length: Size, padding: str, align_corners: bool
) -> TensorVariable:
    """Return a coordinate in the image, if the padding repeats or reflects it."""
    count, half = _number(length, place), like(place, 0 if align_corners else 0.5)
    low, high = -half, count - like(place, 1) + half
    if padding == "border":
        is_beyond = (place < low) | (place > high)
        return pt.switch(is_beyond, pt.clip(place, like(place, 0), count - like(place, 1)), place)
    return _mirrored(place, low, high) if padding == "reflection" else place


def _mirrored(place: TensorVariable, low: Any, high: Any) -> TensorVariable:
    """Return a coordinate between two borders, which reflect it."""
    span = high - low
    span = pt.switch(pt.eq(span, like(place, 0)), like(place, 1), span)
    rest = pt.mod(pt.abs(place - low), like(place, 2) * span)
    return low + span - pt.abs(rest - span)


def _reflected(index: TensorVariable, length: Size, align_corners: bool) -> TensorVariable:
    period = 2 * length - 2 if align_corners else 2 * length
    if isinstance(period, int):
        period = max(period, 1)
    offset = index if align_corners else index + length * 2
    rest = pt.mod(offset, period)
    last = length - 1 if align_corners else 2 * length - 1
    return pt.minimum(rest, (2 * length - 2 if align_corners else last) - rest)


def _interpolated(
    x: TensorVariable, coordinates: Sequence[TensorVariable], mode: str, place_of: Place
) -> TensorVariable:
    """Return the sums of taps around coordinates (batch, *places), weighted along each axis."""
    if mode == "nearest":
        indices = [pt.round(c, "half_to_even").astype("int64") for c in coordinates]
        return _taken(x, [place_of(index, axis) for axis, index in enumerate(indices)])
    taps = [_axis_taps(c, mode) for c in coordinates]
    terms = []
    for choice in product(*taps):
        places = [place_of(index, axis) for axis, (index, _) in enumerate(choice)]
        weight = reduce(pt.mul, [w for _, w in choice])
        terms.append(_taken(x, places) * weight[:, None].astype(x.type.dtype))
    return reduce(pt.add, terms)


def _axis_taps(c: TensorVariable, mode: str) -> list[tuple[TensorVariable, TensorVariable]]:
    """Return the indices of taps around a coordinate, and their weights."""
    first = pt.floor(c)
    index, rest = first.astype("int64"), c - first
    if mode == "linear":
        return [(index, like(c, 1) - rest), (index + 1, rest)]
    distances = [rest + like(c, 1), rest, like(c, 1) - rest, like(c, 2) - rest]
    weights = [
        _far(distances[0]),
        _near(distances[1]),
        _near(distances[2]),
        _far(distances[3]),
    ]
    return [(index + offset, w) for offset, w in zip((-1, 0, 1, 2), weights, strict=True)]


def _near(d: TensorVariable) -> TensorVariable:
    return (like(d, 1.25) * d - like(d, 2.25)) * d * d + like(d, 1)


def _far(d: TensorVariable) -> TensorVariable:
    return (((d - like(d, 5)) * d + like(d, 8)) * d - like(d, 4)) * like(d, -0.75)


def _taken(x: TensorVariable, places: Sequence[tuple[TensorVariable, Any]]) -> TensorVariable:
    """Return the elements of each image at places (batch, *places), zero outside."""
    rank = places[0][0].type.ndim
    batch = pt.arange(size(x, 0)).dimshuffle(0, *["x"] * (rank - 1))
    values = pt.moveaxis(x, 1, -1)[(batch, *(index for index, _ in places))]
    values = pt.moveaxis(values, -1, 1)
    masks = [inside for _, inside in places if inside is not None]
    if not masks:
        return values
    return pt.switch(reduce(pt.and_, masks)[:, None], values, like(values, 0))


@onnx_import("DeformConv")
def deform_conv(
    x: TensorVariable,
    filters: TensorVariable,
    offset: TensorVariable,
    bias: Optional = None,
    mask: Optional = None,
    *,
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    offset_group: int = 1,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Correlate images with filters whose taps are moved by offsets."""
    if x.type.ndim != 4 or None in filters.type.shape or None in x.type.shape[1:2]:
        raise UnsupportedCase("it takes images with channels and filters of known sizes")
    outputs, per_group, *kernel = (int(n or 1) for n in filters.type.shape)
    steps, gaps, padding = strides or (1, 1), dilations or (1, 1), pairs(pads, 2)
    lengths = [size(x, 2), size(x, 3)]
    counts = [size(offset, 2), size(offset, 3)]
    channels = int(x.type.shape[1] or 0)
    per_offset = channels // offset_group
    moved = offset.reshape((size(x, 0), offset_group, *kernel, 2, *counts))
    scaled = None if mask is None else mask.reshape((size(x, 0), offset_group, *kernel, *counts))
    parts = []
    for g in range(offset_group):
        images = x[:, g * per_offset : (g + 1) * per_offset]
        taps = []
        for i, j in product(*map(range, kernel)):
            coordinates = []
            for axis, tap in enumerate((i, j)):
                start = pt.arange(counts[axis]) * steps[axis] - padding[axis][0]
                start = (start + tap * gaps[axis]).astype(x.type.dtype)
                start = start[:, None] if axis == 0 else start[None, :]
                coordinates.append(start[None] + moved[:, g, i, j, axis])
            value = _interpolated(images, coordinates, "linear", _zero_outside(lengths))
            if scaled is not None:
                value = value * scaled[:, g, i, j][:, None]
            taps.append(value)
        parts.append(pt.stack(taps, axis=2))
    columns = parts[0] if len(parts) == 1 else pt.concatenate(parts, axis=1)
    total = kernel[0] * kernel[1]
    columns = columns.reshape((size(x, 0), group, per_group * total, -1))
    matrix = filters.reshape((group, outputs // group, per_group * total))
    result = (matrix[None] @ columns).reshape((size(x, 0), outputs, *counts))
    return result if bias is None else result + bias[:, None, None]


def _zero_outside(lengths: Sequence[Size]) -> Place:
    def place_of(index: TensorVariable, axis: int) -> tuple[TensorVariable, Any]:
        length = lengths[axis]
        return pt.clip(index, 0, length - 1), (index >= 0) & (index < length)

    return place_of


@onnx_import("RoiAlign")
def roi_align(
    x: TensorVariable,
    rois: TensorVariable,
    batch: TensorVariable,
    *,
    coordinate_transformation_mode: str = "output_half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> TensorVariable:
    """Pool regions of interest over a grid of samples, as in versions 10 to 15."""
    bounds = rois * like(rois, spatial_scale)
    counts = (output_height, output_width)
    return _aligned(x, bounds, batch, counts, sampling_ratio, mode)


@onnx_import("RoiAlign", since=16)
def roi_align_by_coordinates(
    x: TensorVariable,
    rois: TensorVariable,
    batch: TensorVariable,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> TensorVariable:
    """Pool regions of interest over a grid of samples."""
    is_half = coordinate_transformation_mode == "half_pixel"
    bounds = rois * like(rois, spatial_scale) - like(rois, 0.5 if is_half else 0)
    counts = (output_height, output_width)
    return _aligned(x, bounds, batch, counts, sampling_ratio, mode, is_half=is_half)


def _aligned(
    x: TensorVariable,
    bounds: TensorVariable,
    batch: TensorVariable,
    counts: tuple[int, int],
    ratio: int,
    mode: str,
    is_half: bool = False,
) -> TensorVariable:
    """Pool regions with bounds in pixels; those of whole pixels have a size of one at least."""
    if ratio < 1:
        raise UnsupportedCase("its number of samples depends on the regions (sampling_ratio=0)")
    images = x[batch]
    coordinates, inside = [], []
    for axis in range(2):
        start, end = bounds[:, 1 - axis], bounds[:, 3 - axis]
        extent = end - start if is_half else pt.maximum(end - start, like(bounds, 1))
        steps = (np.arange(counts[axis] * ratio) + 0.5) / (counts[axis] * ratio)
        place = start[:, None] + like(bounds, steps) * extent[:, None]
        length = _number(size(x, 2 + axis), place)
        inside.append((place >= like(place, -1)) & (place <= length))
        coordinates.append(pt.clip(place, like(place, 0), length - like(place, 1)))
    rows, columns = coordinates
    grid = [rows[:, :, None] + pt.zeros_like(columns)[:, None, :]]
    grid.append(columns[:, None, :] + pt.zeros_like(rows)[:, :, None])
    is_there = (inside[0][:, :, None] & inside[1][:, None, :])[:, None]
    place_of = _zero_outside([size(x, 2), size(x, 3)])
    shape = (size(bounds, 0), size(x, 1), counts[0], ratio, counts[1], ratio)
    if mode == "avg":
        values = _interpolated(images, grid, "linear", place_of)
        values = pt.switch(is_there, values, like(values, 0))
        return values.reshape(shape).mean(axis=(3, 5))
    # The maximum is that of the four weighted neighbours of each sample.
    best = None
    for (i, v), (j, w) in product(*(_axis_taps(c, "linear") for c in grid)):
        term = _taken(images, [place_of(i, 0), place_of(j, 1)]) * (v * w)[:, None]
        best = term if best is None else pt.maximum(best, term)
    values = pt.switch(is_there, best, like(x, 0))
    return values.reshape(shape).max(axis=(3, 5))


@onnx_import("CropAndResize", domain=MICROSOFT)
def crop_and_resize(
    x: TensorVariable,
    regions: TensorVariable,
    batch: TensorVariable,
    crop: TensorVariable,
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
) -> TensorVariable:
    """Resize regions to one size; their corners are the centres of the outer elements."""
    places, inside = [], []
    for axis, count in enumerate(static_ints(crop, "crop_size") or []):
        start, end = regions[:, axis, None], regions[:, 2 + axis, None]
        steps = np.linspace(0, 1, count) if count > 1 else np.array([0.5])
        last = _number(size(x, 2 + axis), start) - like(start, 1)
        place = (start + like(start, steps) * (end - start)) * last
        inside.append((place >= like(place, 0)) & (place <= last))
        places.append(pt.floor(place + like(place, 0.5)) if mode == "nearest" else place)
    rows, columns = places
    grid = [rows[:, :, None] + pt.zeros_like(columns)[:, None, :]]
    grid.append(columns[:, None, :] + pt.zeros_like(rows)[:, :, None])
    place_of = _zero_outside([size(x, 2), size(x, 3)])
    values = _interpolated(x[batch], grid, mode.removeprefix("bi"), place_of)
    is_there = (inside[0][:, :, None] & inside[1][:, None, :])[:, None]
    return pt.switch(is_there, values, like(values, extrapolation_value))


@onnx_import("MaxRoiPool")
def max_roi_pool(
    x: TensorVariable,
    rois: TensorVariable,
    *,
    pooled_shape: Sequence[int],
    spatial_scale: float = 1.0,
) -> TensorVariable:
    """Return the maximum of each part of regions, zero for parts without elements."""
    values = x[rois[:, 0].astype("int64")]
    bounds = pt.floor(rois[:, 1:] * like(rois, spatial_scale) + like(rois, 0.5))
    lowest = like(x, -np.inf)
    for axis, count in enumerate(pooled_shape):
        # One axis after the other: the largest of each row, then of the columns.
        start, end = bounds[:, 1 - axis, None], bounds[:, 3 - axis, None]
        part = pt.maximum(end - start + like(end, 1), like(end, 1)) / like(end, count)
        steps = pt.arange(count).astype(end.type.dtype)[None, :]
        first, after = (
            pt.floor(steps * part) + start,
            pt.ceil((steps + like(end, 1)) * part) + start,
        )
        places = pt.arange(size(x, 2 + axis)).astype(end.type.dtype)
        is_inside = (places >= first[..., None]) & (places < after[..., None])
        shape = (0, "x", 1, 2, "x") if axis == 0 else (0, "x", "x", 1, 2)
        parts = pt.expand_dims(values, 2 if axis == 0 else 3)
        values = pt.switch(is_inside.dimshuffle(shape), parts, lowest).max(axis=3 + axis)
    return pt.switch(pt.isneginf(values), like(x, 0), values)


@onnx_import("NonMaxSuppression")
def non_max_suppression(
    boxes: TensorVariable,
    scores: TensorVariable,
    most: Optional = None,
    overlap: Optional = None,
    least_score: Optional = None,
    *,
    center_point_box: int = 0,
) -> TensorVariable:
    """Select boxes that no better box of their class overlaps."""
    if most is None:
        return pt.zeros((0, 3), dtype="int64")
    return nn.non_max_suppression(
        boxes,
        scores,
        _scalar(most, 0),
        _scalar(overlap, 0.0),
        _scalar(least_score, -np.inf),
        bool(center_point_box),
    )


def _scalar(number: Optional, default: Any) -> Any:
    if number is None:
        return default
    value = known(number)
    return number.reshape(()) if value is None else value.reshape(()).item()


@onnx_import("Col2Im")
def columns_to_image(
    x: TensorVariable,
    image_shape: TensorVariable,
    block_shape: TensorVariable,
    *,
    dilations: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Add blocks to the places of an image where windows took them."""
    image = static_ints(image_shape, "image_shape") or []
    block = static_ints(block_shape, "block_shape") or []
    rank = len(image)
    steps, gaps, padding = strides or (1,) * rank, dilations or (1,) * rank, pairs(pads, rank)
    whole = [n + int(a) + int(b) for n, (a, b) in zip(image, padding, strict=True)]
    counts = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(whole, block, gaps, steps, strict=True)
    ]
    n, rows = sizes(x)[:2]
    channels = rows // int(np.prod(block))
    blocks = x.reshape((n, channels, *block, *counts))
    total = pt.zeros((n, channels, *whole), dtype=x.type.dtype)
    for taps in product(*map(range, block)):
        place = tuple(
            slice(t * d, t * d + (c - 1) * s + 1, s)
            for t, d, c, s in zip(taps, gaps, counts, steps, strict=True)
        )
        where = (slice(None), slice(None), *place)
        total = pt.inc_subtensor(total[where], blocks[(slice(None), slice(None), *taps)])
    inner = (slice(int(a), int(a) + m) for m, (a, _) in zip(image, padding, strict=True))
    return total[(slice(None), slice(None), *inner)]
