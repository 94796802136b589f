"""A detection loss, and the assignment of objects to cells that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from head import N_BINS, N_CLASSES, STRIDES, Detect, RawHeads, anchors
from pytensor.tensor.special import log_softmax
from pytensor.tensor.variable import TensorVariable

BOX_GAIN, CLASS_GAIN, BIN_GAIN = 7.5, 0.5, 1.5
LARGEST_SIDE = (64, 128, np.inf)


@dataclass(frozen=True)
class Objects:
    """The objects in one image: corners x1, y1, x2, y2 in pixels (n, 4), and classes (n,)."""

    corners: np.ndarray
    classes: np.ndarray


@dataclass(frozen=True)
class Targets[T]:
    """Targets of the head: arrays, or the variables that stand for them.

    Attributes
    ----------
    assigned
        1 for cells that an object is assigned to, else 0: (B, A).
    corners
        The object's x1, y1, x2, y2 in pixels: (B, 4, A).
    bins
        The object's distances in cells, each as weights of the two nearest bins: (B, 4, 16, A).
    classes
        1 for the class of the object, else 0: (B, 80, A).
    """

    assigned: T
    corners: T
    bins: T
    classes: T


def assign(objects: Sequence[Objects], height: int, width: int) -> Targets[np.ndarray]:
    """Assign each object to the cell that holds its centre.

    The scale is the finest whose bins reach across the object: stride 8 up to 64 pixels, 16 up
    to 128, else 32. Of two objects in one cell the later is kept.
    """
    cells, strides = anchors(height, width)
    n_images, n_cells = len(objects), len(strides)
    assigned = np.zeros((n_images, n_cells), "float32")
    corners = np.zeros((n_images, 4, n_cells), "float32")
    bins = np.zeros((n_images, 4, N_BINS, n_cells), "float32")
    classes = np.zeros((n_images, N_CLASSES, n_cells), "float32")
    for i, found in enumerate(objects):
        for box, label in zip(found.corners, found.classes, strict=True):
            x1, y1, x2, y2 = box
            side = max(x2 - x1, y2 - y1)
            stride = next(s for s, most in zip(STRIDES, LARGEST_SIDE, strict=True) if side <= most)
            centre = np.array([x1 + x2, y1 + y2]) / (2 * stride)
            away = np.abs(cells - centre[:, None]).max(axis=0)
            cell = np.where(strides == stride, away, np.inf).argmin()
            x, y = cells[:, cell]
            sides = np.array([x - x1 / stride, y - y1 / stride, x2 / stride - x, y2 / stride - y])
            sides = sides.clip(0, N_BINS - 1.01)
            lower = sides.astype(int)
            assigned[i, cell] = 1
            corners[i, :, cell] = box
            bins[i, :, :, cell] = 0
            bins[i, range(4), lower, cell] = 1 - (sides - lower)
            bins[i, range(4), lower + 1, cell] = sides - lower
            classes[i, :, cell] = np.arange(N_CLASSES) == label
    return Targets(assigned, corners, bins, classes)


def target_variables() -> Targets[TensorVariable]:
    """Return variables for the targets, inputs of a training step."""
    return Targets(
        pt.tensor("assigned", shape=(None, None), dtype="float32"),
        pt.tensor("corners", shape=(None, 4, None), dtype="float32"),
        pt.tensor("bins", shape=(None, 4, N_BINS, None), dtype="float32"),
        pt.tensor("classes", shape=(None, N_CLASSES, None), dtype="float32"),
    )


def detection_loss(
    detect: Detect, heads: RawHeads, targets: Targets[TensorVariable], height: int, width: int
) -> TensorVariable:
    """Return the loss per object, of three parts with the customary weights 7.5, 0.5 and 1.5.

    - Boxes: one minus the intersection over union, of the assigned cells.
    - Classes: binary cross-entropy of all classes of all cells.
    - Bins: cross-entropy with the two bins that each side lies between, mean of the four sides, of
      the assigned cells.
    """
    assigned, corners = targets.assigned, targets.corners
    n_objects = pt.maximum(assigned.sum(), np.float32(1))

    cells, strides = anchors(height, width)
    sides = detect.distances(heads.box_logits) * strides
    centres = cells * strides
    first, last = centres - sides[:, :2], centres + sides[:, 2:]
    overlap = pt.minimum(last, corners[:, 2:]) - pt.maximum(first, corners[:, :2])
    intersection = pt.maximum(overlap, np.float32(0)).prod(axis=1)
    areas = (last - first).prod(axis=1) + (corners[:, 2:] - corners[:, :2]).prod(axis=1)
    iou = intersection / (areas - intersection + np.float32(1e-7))
    box_loss = ((1 - iou) * assigned).sum()

    logits = heads.class_logits
    class_loss = (pt.softplus(logits) - targets.classes * logits).sum()

    batch, _, n_cells = heads.box_logits.shape
    log_bins = log_softmax(heads.box_logits.reshape((batch, 4, N_BINS, n_cells)), axis=2)
    bin_loss = -(targets.bins * log_bins).sum() / np.float32(4)

    gains = np.float32([BOX_GAIN, CLASS_GAIN, BIN_GAIN])
    loss = (gains[0] * box_loss + gains[1] * class_loss + gains[2] * bin_loss) / n_objects
    loss.name = "loss"
    return loss
