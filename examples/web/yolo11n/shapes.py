"""Images of circles, squares and triangles, and the boxes around them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from loss import Objects

NAMES = ("circle", "square", "triangle")


def shapes(
    n: int, size: int, rng: np.random.Generator, *, least: int = 1, most: int = 3
) -> tuple[np.ndarray, list[Objects]]:
    """Return images (n, 3, size, size) of values from 0 to 1, and the objects in each."""
    y, x = np.mgrid[:size, :size] + 0.5
    images = np.empty((n, 3, size, size), dtype="float32")
    objects = []
    for image in images:
        slope = rng.uniform(-0.3, 0.3, (3, 2, 1, 1))
        image[:] = (
            rng.uniform(0.2, 0.8, (3, 1, 1)) + slope[:, 0] * x / size + slope[:, 1] * y / size
        )
        corners: list[np.ndarray] = []
        classes = []
        for _ in range(rng.integers(least, most + 1)):
            side = rng.uniform(28, 64)
            left, top = rng.uniform(2, size - side - 2, 2)
            box = np.array([left, top, left + side, top + side])
            if any(_touch(box, other) for other in corners):
                continue
            kind = int(rng.integers(len(NAMES)))
            inside = _inside(kind, (x - left) / side, (y - top) / side)
            image[:, inside] = _apart(image[:, inside].mean(axis=1), rng)[:, None]
            corners.append(box)
            classes.append(kind)
        objects.append(Objects(np.array(corners), np.array(classes)))
    noise = rng.normal(0, 0.02, images.shape).astype("float32")
    return (images + noise).clip(0, 1), objects


def _inside(kind: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return which pixels a shape covers, by their place in its box from 0 to 1."""
    if NAMES[kind] == "circle":
        return (u - 0.5) ** 2 + (v - 0.5) ** 2 < 0.25
    if NAMES[kind] == "square":
        return (u > 0) & (u < 1) & (v > 0) & (v < 1)
    return (v > 0) & (v < 1) & (np.abs(u - 0.5) < v / 2)


def _touch(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.all(a[:2] < b[2:]) and np.all(b[:2] < a[2:]))


def _apart(background: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a colour that differs from another one."""
    while True:
        colour = rng.uniform(0, 1, 3)
        if np.abs(colour - background).max() > 0.35:
            return colour.astype("float32")


def write_png(path: Path, image: np.ndarray) -> None:
    """Write an image (3, height, width) of values from 0 to 1."""
    pixels = np.round(255 * image.transpose(1, 2, 0)).astype("uint8")
    height, width = pixels.shape[:2]
    # A filter byte of zero stands before each row.
    rows = np.pad(pixels.reshape(height, 3 * width), ((0, 0), (1, 0)))
    parts = [
        (b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    chunks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
