"""Non-maximum suppression: of boxes that overlap, the one with the best score."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import onnx_funcify


class NonMaxSuppression(Op):
    """Positions (image, class, box) of the boxes that no better one of their class overlaps."""

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


def non_max_suppression(
    boxes: TensorVariable,
    scores: TensorVariable,
    max_output: int | TensorVariable,
    iou_threshold: float | TensorVariable,
    score_threshold: float | TensorVariable,
    center_point_box: bool = False,
) -> TensorVariable:
    """Return which boxes are left when those that overlap a better one of their class are not.

    In each image and for each class, the boxes with a score above the threshold are taken from the
    best on, of equal ones the first one first; each takes those away that it overlaps too much.
    Gradients do not flow through it.

    Parameters
    ----------
    boxes
        float32 (images, n, 4): two opposite corners ``y1, x1, y2, x2``, or with
        ``center_point_box`` ``x, y, width, height`` of which x and y are the centre.
    scores
        float32 (images, classes, n).
    max_output
        Most boxes of one class in one image.
    iou_threshold
        Most overlap of two boxes of one class, as their intersection over their union, 0 to 1.
    score_threshold
        Scores must be above this.
    center_point_box
        How boxes are given.

    Returns
    -------
    TensorVariable
        int64 (selected, 3): image, class and box, in the order of images and classes, the best
        first.

    Raises
    ------
    TypeError
        If boxes or scores are not of float32, the only dtype that ONNX has it for.
    ValueError
        If ranks or static sizes do not fit, or a threshold or number is out of range.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import compile_onnx
    >>> boxes, scores = pt.ftensor3("boxes"), pt.ftensor3("scores")
    >>> f = compile_onnx([boxes, scores], non_max_suppression(boxes, scores, 10, 0.5, 0.3))
    >>> corners = np.float32([[[0, 0, 4, 4], [0, 1, 4, 4], [5, 5, 6, 6]]])
    >>> f(corners, np.float32([[[0.6, 0.9, 0.4]]]))
    array([[0, 0, 1],
           [0, 0, 2]])
    """
    boxes, scores = pt.as_tensor(boxes), pt.as_tensor(scores)
    for name, value in (("boxes", boxes), ("scores", scores)):
        if value.type.dtype != "float32":
            raise TypeError(
                f"{name} of non_max_suppression must be of float32, not {value.type.dtype}"
            )
        if value.type.ndim != 3:
            raise ValueError(
                f"{name} of non_max_suppression must have 3 dimensions, not {value.type.ndim}"
            )
    for what, a, b in (
        ("coordinates", boxes.type.shape[2], 4),
        ("images", boxes.type.shape[0], scores.type.shape[0]),
        ("boxes", boxes.type.shape[1], scores.type.shape[2]),
    ):
        if a is not None and b is not None and a != b:
            raise ValueError(
                f"non_max_suppression: the number of {what} is {a} and not {b} in boxes of shape "
                f"{boxes.type.shape} with scores of shape {scores.type.shape}"
            )
    return NonMaxSuppression(center_point_box=center_point_box)(
        boxes,
        scores,
        _number("max_output", max_output, "int64", np.inf),
        _number("iou_threshold", iou_threshold, "float32", 1),
        _number("score_threshold", score_threshold, "float32", np.inf, least=-np.inf),
    )


@onnx_funcify.register(NonMaxSuppression)
def lower_non_max_suppression(
    op: NonMaxSuppression, node: Apply, onnx: Builder, *inputs: ir.Value
) -> ir.Value:
    """Emit the operator; how many it selects is known at run time."""
    selected = onnx.NonMaxSuppression(*inputs, center_point_box=int(op.center_point_box))
    selected.shape = ir.Shape([onnx.scope.computed_dim("selected"), 3])
    return selected


def _number(name: str, value: Any, dtype: str, most: float, least: float = 0) -> TensorVariable:
    """Return an option as a 0-d tensor, checked where its value is known."""
    if not isinstance(value, TensorVariable):
        if not least <= value <= most:
            raise ValueError(f"{name}={value} of non_max_suppression is out of range")
        return pt.constant(value, dtype=dtype)
    if value.type.ndim != 0 or value.type.dtype != dtype:
        raise TypeError(f"{name} of non_max_suppression must be a {dtype} scalar: {value.type}")
    return value


def _corners(boxes: np.ndarray, center_point_box: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper corners of boxes (..., 2)."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if center_point_box:
        return first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _overlaps(low: np.ndarray, high: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return the intersection over the union of one box with others, 0 where any is empty."""
    sides = np.minimum(high, highs) - np.maximum(low, lows)
    intersection = sides.clip(0).prod(axis=-1)
    area, areas = (high - low).prod(), (highs - lows).prod(axis=-1)
    union = area + areas - intersection
    return np.divide(intersection, union, out=np.zeros_like(union), where=intersection > 0)
