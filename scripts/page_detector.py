"""A small network that finds discs, squares and triangles, for the page of a detector."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor_ml.optim import adam

from pytensor_onnx import ONNXProgram, export_onnx, export_training_step, nn

SIDE, CELL = 64, 8
CELLS = SIDE // CELL
MOST = 3
SHAPES = ["disc", "square", "triangle"]
BATCH, STEPS, RATE = 16, 900, 3e-3
_OUT = 5 + len(SHAPES)
_FILTERS = [(12, 3, 3, 3), (24, 12, 3, 3), (32, 24, 3, 3), (32, 32, 3, 3), (_OUT, 32, 1, 1)]
_STRIDED = 3

Box = tuple[float, float, float, float, int]


def draw_shapes(rng: np.random.Generator, noise: float = 0.02) -> tuple[np.ndarray, list[Box]]:
    """Return an image of a few shapes, and left, top, right, bottom and class of each."""
    image = rng.uniform(0, 0.25) + rng.normal(0, noise, (3, SIDE, SIDE))
    rows, columns = np.mgrid[:SIDE, :SIDE]
    boxes: list[Box] = []
    for _ in range(2 * MOST):
        radius, kind = int(rng.integers(6, 12)), int(rng.integers(3))
        x, y = (int(n) for n in rng.integers(radius, SIDE - radius, 2))
        is_free = all(
            max(abs(x - (b[0] + b[2]) / 2), abs(y - (b[1] + b[3]) / 2)) > 22 for b in boxes
        )
        if not is_free or len(boxes) == MOST:
            continue
        dx, dy = abs(columns - x), rows - y
        inside = [
            dx**2 + dy**2 <= radius**2,
            np.maximum(dx, abs(dy)) <= radius,
            (2 * dx - radius <= dy) & (abs(dy) <= radius),
        ][kind]
        image[:, inside] = rng.uniform(0.4, 1, 3)[:, None]
        boxes.append((x - radius, y - radius, x + radius, y + radius, kind))
    return np.clip(image, 0, 1).astype("float32"), boxes


def _targets(boxes: Sequence[Box]) -> np.ndarray:
    """Return for each cell whether a shape has its centre there, its box and its class."""
    target = np.zeros((CELLS, CELLS, _OUT), "float32")
    for left, top, right, bottom, kind in boxes:
        x, y = (left + right) / 2 / CELL, (top + bottom) / 2 / CELL
        i, j = min(int(y), CELLS - 1), min(int(x), CELLS - 1)
        target[i, j, :5] = 1, x - j, y - i, (right - left) / SIDE, (bottom - top) / SIDE
        target[i, j, 5 + kind] = 1
    return target


def _network(image: Any, weights: Sequence[Any]) -> Any:
    """Return for each cell the logit of a shape, the box in it, and logits of the classes."""
    for i, filters in enumerate(_FILTERS):
        image = nn.conv2d(
            image,
            weights[2 * i],
            padding=filters[2] // 2,
            stride=2 if i < _STRIDED else 1,
            filter_flip=False,
            bias=weights[2 * i + 1],
        )
        image = nn.relu(image) if i < len(_FILTERS) - 1 else image
    return image.transpose(0, 2, 3, 1)


def trained_detector() -> list[Any]:
    """Return the weights of the network after some steps, each on new images."""
    rng = np.random.default_rng(0)
    weights = []
    for i, size in enumerate(_FILTERS):
        start = rng.normal(size=size) * np.sqrt(2 / np.prod(size[1:]))
        weights.append(pytensor.shared(start.astype("float32"), f"filters{i}"))
        weights.append(pytensor.shared(np.zeros(size[0], "float32"), f"bias{i}"))
    pictures = pt.tensor("pictures", dtype="float32", shape=(BATCH, 3, SIDE, SIDE))
    targets = pt.tensor("targets", dtype="float32", shape=(BATCH, CELLS, CELLS, _OUT))
    found, there = _network(pictures, weights), targets[..., :1]
    by_box = pt.sqr(found[..., 1:5] - targets[..., 1:5]).sum(axis=-1, keepdims=True)
    chances = pt.special.log_softmax(found[..., 5:], axis=-1)
    by_class = -(chances * targets[..., 5:]).sum(axis=-1, keepdims=True)
    by_score = pt.softplus(found[..., :1]) - found[..., :1] * there
    loss = (by_score + there * (10 * by_box + by_class)).mean()
    step = export_training_step(loss, weights, adam, inputs=[pictures, targets], verify=False)
    for i in range(STEPS):
        images, boxes = zip(*(draw_shapes(rng) for _ in range(BATCH)), strict=True)
        rate = np.float32(RATE if i < 0.8 * STEPS else RATE / 10)
        step(np.stack(images), np.stack([_targets(b) for b in boxes]), rate)
    for weight in weights:
        weight.set_value(np.asarray(step.state[weight.name], "float32"))
    return weights


def export_detector(weights: Sequence[Any]) -> ONNXProgram:
    """Export the network with rows of left, top, right, bottom, score and class."""
    picture = pt.tensor("picture", dtype="float32", shape=(1, 3, SIDE, SIDE))
    found = _network(picture, [w.get_value() for w in weights]).reshape((CELLS**2, _OUT))
    rows, columns = (x.ravel().astype("float32") for x in np.mgrid[:CELLS, :CELLS])
    x, y = (found[:, 1] + columns) * CELL, (found[:, 2] + rows) * CELL
    width, height = found[:, 3] * (SIDE / 2), found[:, 4] * (SIDE / 2)
    score = pt.sigmoid(found[:, 0])
    kind = pt.argmax(found[:, 5:], axis=1).astype("float32")
    boxes = pt.stack([x - width, y - height, x + width, y + height, score, kind], axis=1)
    example, _ = draw_shapes(np.random.default_rng(6), 0.0)
    program = export_onnx(
        [picture],
        {"shapes": boxes.astype("float32")},
        example_inputs=[example[None]],
        target="web",
        verify=False,
    )
    program.model.metadata_props["names"] = json.dumps(SHAPES)
    return program
