"""The detection head: branches for boxes and classes at three scales, and their decoding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from blocks import Conv, PlainConv
from pytensor.tensor.special import softmax
from pytensor.tensor.variable import TensorVariable
from weights import State

from pytensor_onnx import nn

STRIDES = (8, 16, 32)
N_CLASSES = 80
N_BINS = 16

# Sides are left, top, right, bottom; rows give x, y of the centre, width, height.
BOX_OF_SIDES = np.array(
    [[-0.5, 0, 0.5, 0], [0, -0.5, 0, 0.5], [1, 0, 1, 0], [0, 1, 0, 1]], dtype="float32"
)


@dataclass(frozen=True)
class RawHeads:
    """Outputs of the branches at each scale: (B, 64, H, W) for boxes, (B, 80, H, W) for classes."""

    boxes: list[TensorVariable]
    classes: list[TensorVariable]

    @property
    def maps(self) -> list[TensorVariable]:
        """The maps p3, p4 and p5, (B, 144, H, W)."""
        return [pt.concatenate(pair, axis=1) for pair in zip(self.boxes, self.classes, strict=True)]

    @property
    def box_logits(self) -> TensorVariable:
        """Bins of the four sides, for all cells: (B, 64, A)."""
        return _all_cells(self.boxes)

    @property
    def class_logits(self) -> TensorVariable:
        """Classes of all cells, before the sigmoid: (B, 80, A)."""
        return _all_cells(self.classes)


class Detect:
    """Convolutions for boxes and for classes at three scales."""

    def __init__(self, state: State, path: str, channels: tuple[int, ...]) -> None:
        width = 4 * N_BINS
        self.boxes = [
            [
                Conv(state, f"{path}.cv2.{i}.0", c, width, 3),
                Conv(state, f"{path}.cv2.{i}.1", width, width, 3),
                PlainConv(state, f"{path}.cv2.{i}.2", width, width),
            ]
            for i, c in enumerate(channels)
        ]
        self.classes = [
            [
                Conv(state, f"{path}.cv3.{i}.0.0", c, c, 3, groups=c),
                Conv(state, f"{path}.cv3.{i}.0.1", c, N_CLASSES),
                Conv(state, f"{path}.cv3.{i}.1.0", N_CLASSES, N_CLASSES, 3, groups=N_CLASSES),
                Conv(state, f"{path}.cv3.{i}.1.1", N_CLASSES, N_CLASSES),
                PlainConv(state, f"{path}.cv3.{i}.2", N_CLASSES, N_CLASSES),
            ]
            for i, c in enumerate(channels)
        ]
        self.bins = state.add(f"{path}.dfl.conv.weight", 1, N_BINS, 1, 1)

    def __call__(self, features: list[TensorVariable]) -> RawHeads:
        """Return the raw maps of each scale."""
        return RawHeads(
            [_chain(*pair) for pair in zip(self.boxes, features, strict=True)],
            [_chain(*pair) for pair in zip(self.classes, features, strict=True)],
        )

    def distances(self, box_logits: TensorVariable) -> TensorVariable:
        """Return the expected distances of the sides from their cell, in cells: (B, 4, A)."""
        batch, _, cells = box_logits.shape
        bins = softmax(box_logits.reshape((batch, 4, N_BINS, cells)), axis=2)
        return self.bins.reshape((N_BINS,)) @ bins

    def decode(self, heads: RawHeads, height: int, width: int) -> TensorVariable:
        """Return boxes in pixels of an image of this size, and scores: (B, 84, A)."""
        cells, strides = anchors(height, width)
        # The centres of the cells in pixels, and nothing for width and height.
        centres = np.concatenate([cells * strides, np.zeros_like(cells)])
        sides = self.distances(heads.box_logits)
        boxes = pt.constant(BOX_OF_SIDES, name="box_of_sides") @ sides
        boxes = boxes * pt.constant(strides, name="strides") + pt.constant(centres, name="anchors")
        return pt.concatenate([boxes, nn.sigmoid(heads.class_logits)], axis=1)


def anchors(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of all cells in cells (2, A) and their strides (A,), row by row."""
    centres, strides = [], []
    for stride in STRIDES:
        y, x = np.mgrid[: height // stride, : width // stride] + np.float32(0.5)
        centres.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full(x.size, stride))
    return (
        np.concatenate(centres, axis=1).astype("float32"),
        np.concatenate(strides).astype("float32"),
    )


def _chain(blocks: list[Conv | PlainConv], x: TensorVariable) -> TensorVariable:
    for block in blocks:
        x = block(x)
    return x


def _all_cells(maps: list[TensorVariable]) -> TensorVariable:
    flat = [m.reshape((*m.shape[:2], m.shape[2] * m.shape[3])) for m in maps]
    return pt.concatenate(flat, axis=2)
