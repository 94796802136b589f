"""Define the Op of non-maximum suppression."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable


class NonMaxSuppression(Op):
    """Positions (image, class, box) of the boxes that no better box of their class overlaps."""

    __props__ = ("center_point_box",)

    def __init__(self, *, center_point_box: bool) -> None:
        self.center_point_box = center_point_box

    def make_node(
        self,
        boxes: TensorVariable,
        scores: TensorVariable,
        max_output: TensorVariable,
        iou_threshold: TensorVariable,
        score_threshold: TensorVariable,
    ) -> Apply:
        """Apply to inputs that `non_max_suppression` has checked."""
        inputs = [boxes, scores, max_output, iou_threshold, score_threshold]
        return Apply(self, inputs, [tensor(dtype="int64", shape=(None, 3))])

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Connect nothing: positions have no gradients."""
        return [[False]] * len(node.inputs)

    def perform(self, node: Apply, inputs: list[Any], output_storage: list[list[Any]]) -> None:
        """Compute in NumPy."""
        boxes, scores, max_output, iou_threshold, score_threshold = inputs
        lows, highs = _corners(boxes, self.center_point_box)
        found: list[tuple[int, int, int]] = []
        for image, label in np.ndindex(*scores.shape[:2]):
            score = scores[image, label]
            left = np.argsort(-score, kind="stable")
            left = left[score[left] > score_threshold]
            kept: list[int] = []
            while len(left) and len(kept) < max_output:
                best, left = left[0], left[1:]
                kept.append(best)
                low, high = lows[image], highs[image]
                overlap = _overlaps(low[best], high[best], low[left], high[left])
                left = left[~(overlap > iou_threshold)]
            found += [(image, label, box) for box in kept]
        output_storage[0][0] = np.array(found, dtype="int64").reshape(-1, 3)


def _corners(boxes: np.ndarray, center_point_box: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper corners of boxes (..., 2)."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if center_point_box:
        return first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _overlaps(low: np.ndarray, high: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return the intersection over union of one box with others, 0 for empty boxes."""
    sides = np.minimum(high, highs) - np.maximum(low, lows)
    intersection = sides.clip(0).prod(axis=-1)
    area, areas = (high - low).prod(), (highs - lows).prod(axis=-1)
    union = area + areas - intersection
    return np.divide(intersection, union, out=np.zeros_like(union), where=intersection > 0)
