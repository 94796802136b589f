"""Convolutions of signals and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import (
    like,
    not_known,
    size,
    static_number,
)
from pytensor_onnx.importing.registry.operator_imports import dtype_name, onnx_import

type Optional = TensorVariable | None


@onnx_import("DFT", since=17)
def fourier_of_axis(
    x: TensorVariable,
    length: Optional = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> TensorVariable:
    """Transform along an axis of an attribute."""
    return _fourier(x, static_number(length, "dft_length", None), axis, inverse, onesided)


@onnx_import("DFT", since=20)
def fourier(
    x: TensorVariable,
    length: Optional = None,
    axis: Optional = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> TensorVariable:
    """Transform along an axis of an operand."""
    count = static_number(length, "dft_length", None)
    return _fourier(x, count, static_number(axis, "axis", -2), inverse, onesided)


def _fourier(
    x: TensorVariable, count: int | None, axis: int, inverse: int, onesided: int
) -> TensorVariable:
    """Multiply by the matrices of cosines and sines; pairs of parts are the last axis."""
    axis %= x.type.ndim
    x = x.astype("float64")
    length = size(x, axis)
    if not isinstance(length, int):
        raise not_known("the size of its axis must be known at import", x)
    if count is None:
        count = 2 * (length - 1) if inverse and onesided else length
    last = pt.moveaxis(x, axis, -2)
    real = last[..., 0]
    imaginary = last[..., 1] if x.type.shape[-1] == 2 else None
    if inverse and onesided:
        result = _real_inverse(real, imaginary, count, length)
        return pt.moveaxis(result[..., None], -2, axis)
    rows = min(length, count)
    columns = count // 2 + 1 if onesided else count
    angles = 2 * np.pi * (np.outer(np.arange(rows), np.arange(columns)) % count) / count
    cosine, sine = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    if inverse:
        cosine, sine = cosine / count, sine / count
    parts = _product(
        real[..., :rows], None if imaginary is None else imaginary[..., :rows], cosine, sine
    )
    return pt.moveaxis(pt.stack(parts, axis=-1), -2, axis)


def _product(real: Any, imaginary: Any, cosine: np.ndarray, sine: np.ndarray) -> list[Any]:
    c, s = like(real, cosine), like(real, sine)
    if imaginary is None:
        return [real @ c, real @ s]
    return [real @ c - imaginary @ s, real @ s + imaginary @ c]


def _real_inverse(real: Any, imaginary: Any, count: int, length: int) -> Any:
    """Return the real signal of the first half of its transform."""
    rows = min(length, count // 2 + 1)
    angles = 2 * np.pi * (np.outer(np.arange(rows), np.arange(count)) % count) / count
    # All frequencies but zero, and the highest one of an even count, occur twice.
    twice = np.full((rows, 1), 2.0)
    twice[0] = 1
    if count % 2 == 0 and rows == count // 2 + 1:
        twice[-1] = 1
    result = real[..., :rows] @ like(real, twice * np.cos(angles) / count)
    if imaginary is None:
        return result
    return result - imaginary[..., :rows] @ like(real, twice * np.sin(angles) / count)


@onnx_import("STFT", since=17)
def short_time_fourier(
    x: TensorVariable,
    step: TensorVariable,
    window: Optional = None,
    length: Optional = None,
    *,
    onesided: int = 1,
) -> TensorVariable:
    """Transform windows of a signal."""
    stride = static_number(step, "frame_step", 1)
    count = static_number(length, "frame_length", None)
    count = size(window, 0) if count is None and window is not None else count
    if not isinstance(count, int):
        raise not_known("the length of its frames must be known at import", window)
    signal = x if x.type.ndim == 3 else x[..., None]
    frames = (size(signal, 1) - count) // stride + 1
    places = (pt.arange(frames) * stride)[:, None] + pt.arange(count)
    taken = signal.take(places, axis=1)
    if window is not None:
        taken = taken * window[:, None]
    return _fourier(taken, count, 2, 0, onesided)


@onnx_import("MelWeightMatrix", since=17)
def mel_weights(
    bins: TensorVariable,
    length: TensorVariable,
    rate: TensorVariable,
    low: TensorVariable,
    high: TensorVariable,
    *,
    output_datatype: int = 1,
) -> TensorVariable:
    """Return the weights of frequencies in the bins of the mel scale."""
    count, size_of_transform, sampling = (
        int(static_number(v, n, 0))
        for v, n in ((bins, "num_mel_bins"), (length, "dft_length"), (rate, "sample_rate"))
    )
    edges = [
        2595 * np.log10(1 + static_number(v, n, 0.0) / 700)
        for v, n in ((low, "lower_edge_hertz"), (high, "upper_edge_hertz"))
    ]
    mels = edges[0] + np.arange(count + 2) * (edges[1] - edges[0]) / (count + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    points = ((size_of_transform + 1) * hertz // sampling).astype(int)
    matrix = np.zeros((size_of_transform // 2 + 1, count))
    for i, (first, centre, last) in enumerate(zip(points, points[1:], points[2:], strict=False)):
        rising = np.arange(first, centre + 1)
        matrix[rising, i] = (rising - first) / (centre - first) if centre > first else 1
        falling = np.arange(centre, last)
        if last > centre:
            matrix[falling, i] = (last - falling) / (last - centre)
    return pt.constant(matrix.astype(dtype_name(ir.DataType(output_datatype))))
