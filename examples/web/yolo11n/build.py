"""Train YOLO11n on drawn shapes and make a page that finds them: ``python build.py -o site``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytensor.tensor as pt

from pytensor_onnx import ONNXProgram, export_onnx
from pytensor_onnx.web.controls import read_description
from pytensor_onnx.web.site import build_site

# The network is the one of the example beside, whose modules import each other by plain names.
sys.path[:0] = [str(Path(__file__).parents[2] / "yolo11n"), str(Path(__file__).parent)]

from export import selected_boxes  # noqa: E402
from loss import assign  # noqa: E402
from model import Yolo11n  # noqa: E402
from shapes import NAMES, shapes, write_png  # noqa: E402
from train import make_step  # noqa: E402
from weights import initial_weights  # noqa: E402

TRAINING_SIZE, BATCH, SIZE = 128, 8, 256


def train(steps: int, *, learning_rate: float = 5e-3) -> dict[str, np.ndarray]:
    """Return the weights after some steps, each on new images."""
    model = Yolo11n(training=True)
    start = initial_weights(model.state.shapes)
    model.state.set_values(start)
    if not steps:
        return start
    step = make_step(model, TRAINING_SIZE, learning_rate=learning_rate, mode="ONNX", batch=BATCH)
    rng = np.random.default_rng(1)
    for number in range(1, steps + 1):
        images, objects = shapes(BATCH, TRAINING_SIZE, rng)
        loss = step(images, assign(objects, TRAINING_SIZE, TRAINING_SIZE))
        if number % 50 == 0:
            print(f"step {number} of {steps}: loss {loss:.1f}", flush=True)
    return model.state.values()


def export(
    path: Path | None, weights: Mapping[str, np.ndarray], *, threshold: float = 0.25
) -> ONNXProgram:
    """Export the network with its selection of boxes: left, top, right, bottom, score, class."""
    model = Yolo11n()
    model.state.set_values(weights)
    images = pt.tensor("images", dtype="float32", shape=(1, 3, SIZE, SIZE))
    decoded = model.detect.decode(model(images), SIZE, SIZE)
    rows = selected_boxes(decoded, max_per_class=20, score_threshold=threshold)
    centre, half = rows[:, 1:3], rows[:, 3:5] / np.float32(2)
    boxes = pt.concatenate([centre - half, centre + half, rows[:, 5:]], axis=1)
    boxes.name = "boxes"
    # A box at a threshold falls to one side or the other by rounding, so nothing is compared here.
    return export_onnx([images], boxes, path, target="web", verify=False, assume_finite=True)


def example_image() -> np.ndarray:
    """Return the image that the page shows first."""
    return shapes(1, SIZE, np.random.default_rng(7), least=8, most=8)[0][0]


def build(
    folder: str | Path, *, steps: int = 600, threshold: float = 0.25, runtime: str = "npm"
) -> Path:
    """Write the page to an empty folder, and return it."""
    weights = train(steps)
    page = read_description(Path(__file__).with_name("page.yaml"))
    with tempfile.TemporaryDirectory() as temporary:
        file, image = Path(temporary) / "yolo11n.onnx", Path(temporary) / "shapes.png"
        export(file, weights, threshold=threshold)
        write_png(image, example_image())
        page["text"] = page["text"].format(steps=steps)
        page["inputs"]["images"]["example"] = str(image)
        page["outputs"]["boxes"]["labels"] = list(NAMES)
        return build_site(file, folder, page=page, runtime=runtime)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", "-o", default="site", help="folder to write (site)")
    parser.add_argument("--steps", type=int, default=600, help="steps of training (600)")
    parser.add_argument(
        "--threshold", type=float, default=0.25, help="boxes below this score are left out (0.25)"
    )
    given = parser.parse_args()
    folder = build(given.output, steps=given.steps, threshold=given.threshold)
    print(f"wrote {folder}: any web server shows it")


if __name__ == "__main__":
    main()
