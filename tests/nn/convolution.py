"""Convolution and its gradients in NumPy, from the definition: a loop over groups and taps."""

from collections.abc import Iterator, Sequence

import numpy as np

Pads = Sequence[tuple[int, int]]


def _windows(
    kernel: Sequence[int],
    counts: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    channels: int,
    outputs: int,
    groups: int,
) -> Iterator[tuple[slice, slice, tuple[int, ...], tuple[slice, ...]]]:
    """Yield what belongs together: channels, outputs, a tap, and the cells that it sees."""
    for g in range(groups):
        c = slice(g * channels // groups, (g + 1) * channels // groups)
        o = slice(g * outputs // groups, (g + 1) * outputs // groups)
        for tap in np.ndindex(*kernel):
            cells = tuple(
                slice(k * d, k * d + (count - 1) * s + 1, s)
                for k, d, s, count in zip(tap, dilations, strides, counts, strict=True)
            )
            yield c, o, tap, cells


def correlate(
    x: np.ndarray,
    w: np.ndarray,
    pads: Pads,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """Correlate images (N, C, *S) with filters (O, C / groups, *K)."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    kernel = w.shape[2:]
    counts = [
        (size - (k - 1) * d - 1) // s + 1
        for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True)
    ]
    y = np.zeros((len(x), len(w), *counts), x.dtype)
    geometry = (kernel, counts, strides, dilations, x.shape[1], len(w), groups)
    for c, o, tap, cells in _windows(*geometry):
        seen = x[(slice(None), c, *cells)]
        y[:, o] += np.einsum("nc...,oc->no...", seen, w[(o, slice(None), *tap)])
    return y


def image_gradient(
    y: np.ndarray,
    w: np.ndarray,
    sizes: Sequence[int],
    pads: Pads,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """Return the gradient of images of spatial sizes from that of the result."""
    channels = w.shape[1] * groups
    padded = [size + sum(pair) for size, pair in zip(sizes, pads, strict=True)]
    x = np.zeros((len(y), channels, *padded), y.dtype)
    geometry = (w.shape[2:], y.shape[2:], strides, dilations, channels, len(w), groups)
    for c, o, tap, cells in _windows(*geometry):
        x[(slice(None), c, *cells)] += np.einsum(
            "no...,oc->nc...", y[:, o], w[(o, slice(None), *tap)]
        )
    box = [slice(pair[0], pair[0] + size) for size, pair in zip(sizes, pads, strict=True)]
    return x[(slice(None), slice(None), *box)]


def filter_gradient(
    x: np.ndarray,
    y: np.ndarray,
    kernel: Sequence[int],
    pads: Pads,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """Return the gradient of filters from the images and the gradient of the result."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    w = np.zeros((y.shape[1], x.shape[1] // groups, *kernel), y.dtype)
    geometry = (kernel, y.shape[2:], strides, dilations, x.shape[1], y.shape[1], groups)
    for c, o, tap, cells in _windows(*geometry):
        seen = x[(slice(None), c, *cells)]
        axes = (0, *range(2, x.ndim))
        w[(o, slice(None), *tap)] = np.tensordot(y[:, o], seen, (axes, axes))
    return w


def transpose(
    x: np.ndarray,
    w: np.ndarray,
    pads: Pads,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
    output_padding: Sequence[int] | None = None,
) -> np.ndarray:
    """Convolve images (N, C, *S) with filters (C, O / groups, *K), transposed."""
    more = output_padding or [0] * len(pads)
    sizes = [
        (size - 1) * s + (k - 1) * d + 1 - sum(pair) + extra
        for size, k, s, d, pair, extra in zip(
            x.shape[2:], w.shape[2:], strides, dilations, pads, more, strict=True
        )
    ]
    reached = [
        (before, max(after - extra, 0)) for (before, after), extra in zip(pads, more, strict=True)
    ]
    beyond = [max(extra - after, 0) for (_, after), extra in zip(pads, more, strict=True)]
    kept = [size - extra for size, extra in zip(sizes, beyond, strict=True)]
    y = image_gradient(x, w, kept, reached, strides, dilations, groups)
    return np.pad(y, [(0, 0), (0, 0), *((0, extra) for extra in beyond)])
