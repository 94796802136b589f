"""Non-maximum suppression: of boxes that overlap, the one with the best score."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.detection_ops import NonMaxSuppression


def non_max_suppression(
    boxes: TensorVariable,
    scores: TensorVariable,
    max_output: int | TensorVariable,
    iou_threshold: float | TensorVariable,
    score_threshold: float | TensorVariable,
    center_point_box: bool = False,
) -> TensorVariable:
    """Return the boxes that overlap no better box of their class: non-maximum suppression.

    In each image and for each class, the boxes with a score above the threshold are taken from the
    best on, of equal ones the first one first; each takes those away that it overlaps too much.
    Gradients do not flow through it.

    Parameters
    ----------
    boxes
        float32 (images, n, 4): two opposite corners ``y1, x1, y2, x2``, or with
        ``center_point_box`` ``x, y, width, height``, where x and y are the centre.
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


def _number(name: str, value: Any, dtype: str, most: float, least: float = 0) -> TensorVariable:
    """Return an option as a 0-d tensor, checked where its value is known."""
    if not isinstance(value, TensorVariable):
        if not least <= value <= most:
            raise ValueError(f"{name}={value} of non_max_suppression is out of range")
        return pt.constant(value, dtype=dtype)
    if value.type.ndim != 0 or value.type.dtype != dtype:
        raise TypeError(f"{name} of non_max_suppression must be a {dtype} scalar: {value.type}")
    return value
