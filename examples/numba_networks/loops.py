"""Convolution and maximum pooling of volumes (N, C, D, H, W) in functions that Numba compiles.

How windows lie is a `Geometry`: strides, dilations, and the zeros before and after each axis.
"""

from __future__ import annotations

import numpy as np
from pytensor.link.numba.dispatch.basic import numba_njit

type Array = np.ndarray
type Three = tuple[int, int, int]
type Geometry = tuple[Three, Three, Three, Three]


@numba_njit
def window_count(
    size: int, taps: int, stride: int, dilation: int, start: int, end: int, ceil_mode: bool
) -> int:
    """Return the number of windows along an axis."""
    room = size + start + end - ((taps - 1) * dilation + 1)
    if ceil_mode:
        return max(0, min((room + stride - 1) // stride, (size + start - 1) // stride) + 1)
    return max(0, room // stride + 1)


@numba_njit
def windows_inside(size: int, count: int, offset: int, stride: int) -> tuple[int, int]:
    """Return the first window in which a tap sees a cell, and the one after the last."""
    return max(0, -(offset // stride)), min(count, (size - 1 - offset) // stride + 1)


@numba_njit
def exchange(image: Array, seen: Array, geometry: Geometry, back: bool) -> None:
    """Write down what each tap sees in each window of an image, or add it back to the image.

    What is seen has the shape (C, *K, *L). Where a tap sees no cell it stays as it is.
    """
    (s0, s1, s2), (d0, d1, d2), (p0, p1, p2), _ = geometry
    channels, k0, k1, k2, n0, n1, n2 = seen.shape
    for i in range(k0):
        first0, last0 = windows_inside(image.shape[1], n0, i * d0 - p0, s0)
        for j in range(k1):
            first1, last1 = windows_inside(image.shape[2], n1, j * d1 - p1, s1)
            for k in range(k2):
                first2, last2 = windows_inside(image.shape[3], n2, k * d2 - p2, s2)
                for c in range(channels):
                    for a in range(first0, last0):
                        for b in range(first1, last1):
                            row = image[c, a * s0 + i * d0 - p0, b * s1 + j * d1 - p1]
                            taps = seen[c, i, j, k, a, b]
                            offset = k * d2 - p2
                            if back:
                                for e in range(first2, last2):
                                    row[e * s2 + offset] += taps[e]
                            else:
                                for e in range(first2, last2):
                                    taps[e] = row[e * s2 + offset]


@numba_njit
def correlate(
    images: Array, filters: Array, filter_sizes: Three, geometry: Geometry, groups: int
) -> Array:
    """Correlate images (N, C, *S) with filters (O, C / groups, *K)."""
    s, d, p, q = geometry
    n, channels, s0, s1, s2 = images.shape
    outputs, per_group, k0, k1, k2 = filters.shape
    check_filter_sizes(filter_sizes, filters.shape[2:])
    check_groups(channels, per_group, outputs, groups)
    l0 = window_count(s0, k0, s[0], d[0], p[0], q[0], False)
    l1 = window_count(s1, k1, s[1], d[1], p[1], q[1], False)
    l2 = window_count(s2, k2, s[2], d[2], p[2], q[2], False)
    if min(l0, l1, l2) < 1:
        raise ValueError("The images of a convolution are smaller than its windows.")
    matrices = filters.reshape(groups, outputs // groups, per_group * k0 * k1 * k2)
    seen = np.zeros((per_group, k0, k1, k2, l0, l1, l2), images.dtype)
    columns = seen.reshape(per_group * k0 * k1 * k2, l0 * l1 * l2)
    result = np.empty((n, groups, outputs // groups, l0 * l1 * l2), images.dtype)
    for i in range(n):
        for g in range(groups):
            exchange(images[i, g * per_group : (g + 1) * per_group], seen, geometry, False)
            np.dot(matrices[g], columns, result[i, g])
    return result.reshape(n, outputs, l0, l1, l2)


@numba_njit
def transpose(
    images: Array, filters: Array, filter_sizes: Three, geometry: Geometry, groups: int, more: Three
) -> Array:
    """Return the adjoint of `correlate` in its images: (N, O, *L) becomes (N, C, *S).

    The images have so many cells more than the windows reach.
    """
    s, d, p, q = geometry
    n, outputs, l0, l1, l2 = images.shape
    own, per_group, k0, k1, k2 = filters.shape
    check_filter_sizes(filter_sizes, filters.shape[2:])
    if own != outputs:
        raise ValueError("A transposed convolution needs as many filters as channels.")
    check_groups(per_group * groups, per_group, outputs, groups)
    s0 = (l0 - 1) * s[0] + (k0 - 1) * d[0] + 1 - p[0] - q[0] + more[0]
    s1 = (l1 - 1) * s[1] + (k1 - 1) * d[1] + 1 - p[1] - q[1] + more[1]
    s2 = (l2 - 1) * s[2] + (k2 - 1) * d[2] + 1 - p[2] - q[2] + more[2]
    matrices = filters.reshape(groups, outputs // groups, per_group * k0 * k1 * k2)
    cells = images.reshape(n, groups, outputs // groups, l0 * l1 * l2)
    seen = np.empty((per_group, k0, k1, k2, l0, l1, l2), images.dtype)
    columns = seen.reshape(per_group * k0 * k1 * k2, l0 * l1 * l2)
    result = np.zeros((n, groups * per_group, s0, s1, s2), images.dtype)
    for i in range(n):
        for g in range(groups):
            np.dot(matrices[g].T, cells[i, g], columns)
            exchange(result[i, g * per_group : (g + 1) * per_group], seen, geometry, True)
    return result


@numba_njit
def filter_gradient(
    images: Array, gradient: Array, filter_sizes: Three, geometry: Geometry, groups: int
) -> Array:
    """Return the adjoint of `correlate` in its filters.

    Where the filter_sizes is 0, it is as large as the images leave room for.
    """
    s, d, p, q = geometry
    n, channels, s0, s1, s2 = images.shape
    same, outputs, l0, l1, l2 = gradient.shape
    if same != n:
        raise ValueError("The gradient of a convolution is for another number of images.")
    per_group = channels // groups
    check_groups(channels, per_group, outputs, groups)
    k0 = filter_sizes[0] or window_count(s0, l0, d[0], s[0], p[0], q[0], False)
    k1 = filter_sizes[1] or window_count(s1, l1, d[1], s[1], p[1], q[1], False)
    k2 = filter_sizes[2] or window_count(s2, l2, d[2], s[2], p[2], q[2], False)
    cells = gradient.reshape(n, groups, outputs // groups, l0 * l1 * l2)
    seen = np.zeros((per_group, k0, k1, k2, l0, l1, l2), images.dtype)
    columns = seen.reshape(per_group * k0 * k1 * k2, l0 * l1 * l2)
    product = np.empty((outputs // groups, per_group * k0 * k1 * k2), images.dtype)
    total = np.zeros((groups, *product.shape), np.float64)
    for i in range(n):
        for g in range(groups):
            exchange(images[i, g * per_group : (g + 1) * per_group], seen, geometry, False)
            np.dot(cells[i, g], columns.T, product)
            total[g] += product
    return total.astype(images.dtype).reshape(outputs, per_group, k0, k1, k2)


@numba_njit
def check_filter_sizes(filter_sizes: Three, sizes: Three) -> None:
    """Fail where filters have other sizes than those, not 0, for which an Op was made."""
    for i in range(3):
        if filter_sizes[i] not in (0, sizes[i]):
            raise ValueError("The filters of a convolution must keep their sizes.")


@numba_njit
def check_groups(channels: int, per_group: int, outputs: int, groups: int) -> None:
    """Fail where channels and filters do not fit."""
    if channels != per_group * groups or outputs % groups != 0:
        raise ValueError("The channels and filters of a convolution do not fit its groups.")


@numba_njit
def add_bias(images: Array, bias: Array) -> Array:
    """Add a number to each channel of new images, in place."""
    if len(bias) != images.shape[1]:
        raise ValueError("The bias of a convolution must have a number for each filter.")
    for i in range(images.shape[0]):
        for c in range(len(bias)):
            images[i, c] += bias[c]
    return images


@numba_njit
def first_largest(
    image: Array, window: Three, geometry: Geometry, cell: Three
) -> tuple[float, Three]:
    """Return the largest value of a window, NaN if it holds one, and where it is first.

    A window without cells has minus infinity, at the indices -1.
    """
    s, d, p, _ = geometry
    best, where, is_found = -np.inf, (-1, -1, -1), False
    for i in range(window[0]):
        a = cell[0] * s[0] + i * d[0] - p[0]
        for j in range(window[1]):
            b = cell[1] * s[1] + j * d[1] - p[1]
            for k in range(window[2]):
                e = cell[2] * s[2] + k * d[2] - p[2]
                if 0 <= a < image.shape[0] and 0 <= b < image.shape[1] and 0 <= e < image.shape[2]:
                    value = image[a, b, e]
                    if not is_found or value > best or np.isnan(value):
                        best, where, is_found = value, (a, b, e), True
    return best, where


@numba_njit
def max_pool(images: Array, window: Three, geometry: Geometry, ceil_mode: bool) -> Array:
    """Return the largest value of each window."""
    s, d, p, q = geometry
    n, channels, s0, s1, s2 = images.shape
    l0 = window_count(s0, window[0], s[0], d[0], p[0], q[0], ceil_mode)
    l1 = window_count(s1, window[1], s[1], d[1], p[1], q[1], ceil_mode)
    l2 = window_count(s2, window[2], s[2], d[2], p[2], q[2], ceil_mode)
    if min(l0, l1, l2) == 0:
        raise ValueError("a window of a pool is larger than the padded array")
    result = np.empty((n, channels, l0, l1, l2), images.dtype)
    for i in range(n):
        for c in range(channels):
            for a in range(l0):
                for b in range(l1):
                    for e in range(l2):
                        best, _ = first_largest(images[i, c], window, geometry, (a, b, e))
                        result[i, c, a, b, e] = best
    return result


@numba_njit
def max_pool_gradient(images: Array, gradient: Array, window: Three, geometry: Geometry) -> Array:
    """Add the gradient of each window to its first largest cell, unless that is NaN."""
    result = np.zeros_like(images)
    n, channels, l0, l1, l2 = gradient.shape
    if images.shape[0] != n or images.shape[1] != channels:
        raise ValueError("The gradient of a pooling is for other images.")
    for i in range(n):
        for c in range(channels):
            for a in range(l0):
                for b in range(l1):
                    for e in range(l2):
                        best, where = first_largest(images[i, c], window, geometry, (a, b, e))
                        if where[0] >= 0 and not np.isnan(best):
                            result[i, c, where[0], where[1], where[2]] += gradient[i, c, a, b, e]
    return result


@numba_njit
def _volumes_1(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(*x.shape[:2], 1, 1, x.shape[2])


@numba_njit
def _volumes_2(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(*x.shape[:2], 1, *x.shape[2:])


@numba_njit
def _volumes_3(x: Array) -> Array:
    return np.ascontiguousarray(x)


@numba_njit
def _sequences(x: Array) -> Array:
    return x.reshape(*x.shape[:2], x.shape[4])


@numba_njit
def _areas(x: Array) -> Array:
    return x.reshape(*x.shape[:2], *x.shape[3:])


RANKS = {1: (_volumes_1, _sequences), 2: (_volumes_2, _areas), 3: (_volumes_3, _volumes_3)}
"""For a number of spatial axes, functions that make three of them, and as many of three."""
