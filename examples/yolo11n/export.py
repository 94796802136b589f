"""Write YOLO11n as an ONNX file: ``python export.py --weights WEIGHTS.npz --size 320``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
from head import STRIDES
from model import Yolo11n
from pytensor.tensor.variable import TensorVariable
from weights import initial_weights, load_weights

from pytensor_onnx import ONNXProgram, export_onnx, nn
from pytensor_onnx.errors import PyTensorONNXError


def export(
    path: str | Path | None,
    *,
    weights: str | Path | None = None,
    size: tuple[int, int] = (640, 640),
    batch: int | None = 1,
    raw_heads: bool = False,
    nms: dict[str, float] | None = None,
    verify: bool = True,
    image: str | Path | None = None,
) -> ONNXProgram:
    """Export the network.

    Parameters
    ----------
    path
        File to write; none if it is None.
    weights
        An npz file of arrays by their public names; without it, values to start training from.
    size
        Height and width of the images, multiples of 32.
    batch
        Number of images, or None for any.
    raw_heads
        Whether the maps ``p3``, ``p4``, ``p5`` are outputs besides ``output0``.
    nms
        Options of `selected_boxes`, which make ``detections`` an output besides ``output0``.
    verify
        Whether to compare the file with PyTensor before it is written.
    image
        A file that `read_image` reads, to compare on; sampled pixels unless given.

    Raises
    ------
    ValueError
        If the size is not a multiple of 32, the weights do not fit, or the image cannot be read.
    """
    step = STRIDES[-1]
    if any(n <= 0 or n % step for n in size):
        raise ValueError(f"images of {size[0]}x{size[1]}: both sides must be multiples of {step}")
    pixels = None if image is None else read_image(image, size)
    model = Yolo11n()
    shapes = model.state.shapes
    model.state.set_values(load_weights(weights) if weights else initial_weights(shapes))

    images = pt.tensor("images", dtype="float32", shape=(batch, 3, *size))
    heads = model(images)
    output0 = model.detect.decode(heads, *size)
    output0.name = "output0"
    outputs = [output0]
    if raw_heads:
        for level, level_map in zip((3, 4, 5), heads.maps, strict=True):
            level_map.name = f"p{level}"
            outputs.append(level_map)
    options = {
        "dynamic_axes": {"images": {0: "batch"}} if batch is None else None,
        # Nothing that the network computes from pixels is NaN: its maxima need no guards.
        "assume_finite": True,
    }
    # A box at a threshold falls to one side or the other by rounding: what is compared with
    # PyTensor is the network before the selection.
    program = export_onnx([images], outputs, verify=False, **options)
    if verify:
        program.verify(None if pixels is None else [pixels])
    if nms is not None:
        selected = selected_boxes(output0, **nms)
        verified = program.verification
        program = export_onnx([images], [*outputs, selected], verify=False, **options)
        program.verification = replace(
            verified, reference=f"{verified.reference}, without detections"
        )
    if path is not None:
        program.save(path)
    return program


def read_image(path: str | Path, size: tuple[int, int]) -> np.ndarray:
    """Return an image as the network takes it, resized to a height and width: (1, 3, H, W).

    Parameters
    ----------
    path
        A NumPy file of pixels, (H, W, 3), or a picture in a format that Pillow reads.
    size
        Height and width.

    Raises
    ------
    ValueError
        If the file is no such image, or Pillow is not installed.
    """
    try:
        if Path(path).suffix == ".npy":
            pixels = np.load(path)
        else:
            from PIL import Image

            with Image.open(path) as picture:
                pixels = np.asarray(picture.convert("RGB"))
    except ImportError as error:
        raise ValueError(f"{path}: install Pillow, or give a .npy file of pixels") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as an image: {error}") from error
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(f"{path} has the shape {pixels.shape} instead of (height, width, 3)")
    if pixels.dtype == "uint8":
        pixels = pixels / 255
    rows, columns = (
        (np.arange(n) * old) // n for n, old in zip(size, pixels.shape[:2], strict=True)
    )
    nearest = pixels[rows][:, columns]
    return np.ascontiguousarray(nearest.transpose(2, 0, 1)[None], dtype="float32")


def selected_boxes(
    decoded: TensorVariable,
    *,
    max_per_class: int = 100,
    iou_threshold: float = 0.45,
    score_threshold: float = 0.25,
) -> TensorVariable:
    """Return what non-maximum suppression leaves of each class in each image.

    A row is image, centre x, centre y, width, height, score, class; the rows of one image and one
    class stand together, the best first.

    Parameters
    ----------
    decoded
        Boxes and scores as `Detect.decode` returns them, (B, 84, A).
    max_per_class
        Most boxes of one class in one image.
    iou_threshold
        A box is left out if it overlaps a better one of its class by more than this share of both.
    score_threshold
        A box is left out unless its score is above this.
    """
    boxes, scores = decoded[:, :4].mT, decoded[:, 4:]
    chosen = nn.non_max_suppression(
        boxes,
        scores,
        max_output=max_per_class,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        center_point_box=True,
    )
    image, label, cell = chosen[:, 0], chosen[:, 1], chosen[:, 2]
    columns = [image[:, None], boxes[image, cell], scores[image, label, cell][:, None]]
    rows = pt.concatenate([c.astype("float32") for c in [*columns, label[:, None]]], axis=1)
    rows.name = "detections"
    return rows


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Write YOLO11n as an ONNX file.")
    add = parser.add_argument
    add("--weights", type=Path, help="npz file of arrays by public names; else a seeded start")
    add(
        "--size",
        type=int,
        nargs="+",
        default=[640],
        metavar="N",
        help="side of the images, or height and width: multiples of 32 (640)",
    )
    add("--dynamic-batch", action="store_true", help="any number of images, not one")
    add("--raw-heads", action="store_true", help="outputs p3, p4, p5: the maps before decoding")
    add("--nms", action="store_true", help="output detections: what non-maximum suppression leaves")
    add("--max-per-class", type=int, default=100, help="most boxes of a class in an image (100)")
    add("--iou-threshold", type=float, default=0.45, help="overlap that is too much (0.45)")
    add("--score-threshold", type=float, default=0.25, help="score that is too low (0.25)")
    add("--image", type=Path, help="picture or .npy file of pixels to compare on; else samples")
    add("--no-verify", action="store_true", help="write the file without comparing with PyTensor")
    add("--output", type=Path, default=Path("yolo11n.onnx"), help="file to write (yolo11n.onnx)")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = arguments()
    given = parser.parse_args(argv)
    if len(given.size) > 2:
        parser.error("--size takes a side, or height and width")
    nms = {
        name: getattr(given, name) for name in ("max_per_class", "iou_threshold", "score_threshold")
    }
    try:
        program = export(
            given.output,
            weights=given.weights,
            size=(given.size[0], given.size[-1]),
            batch=None if given.dynamic_batch else 1,
            raw_heads=given.raw_heads,
            nms=nms if given.nms else None,
            verify=not given.no_verify,
            image=given.image,
        )
    except (ValueError, PyTensorONNXError) as error:
        sys.exit(str(error))
    count = sum(1 for _ in program.model.graph)
    print(f"{program}\n{count} nodes, wrote {given.output}")
    print(program.verification)


if __name__ == "__main__":
    main()
