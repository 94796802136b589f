"""Make the table of docs/how-to/small-files.md.

``python scripts/measure_small_files.py [--size 320]``.

Two networks in float32, float16 and 8 bits: the one of digits, trained here, and YOLO11n with the
weights that training begins with. The accuracy of the second is the distance of its boxes and
scores from those in float32, on images of smooth noise.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytensor.tensor as pt

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pytensor_onnx import ONNXProgram, export_onnx, quantize_onnx  # noqa: E402
from tests.page_parts import write_part  # noqa: E402

PAGE = ROOT / "docs" / "how-to" / "small-files.md"
Row = tuple[str, str, int, str]


def load(example: str, module: str) -> ModuleType:
    """Import a module of an example, whose folder its own imports need."""
    folder = ROOT / "examples" / example
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(module, folder / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def run(path: Path, images: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path)
    dtype = {"tensor(float16)": "float16", "tensor(float)": "float32"}[session.get_inputs()[0].type]
    return session.run(None, {"images": images.astype(dtype)})[0].astype("float32")


def files(
    make: Callable[..., ONNXProgram], calibration: list[Any], folder: Path
) -> dict[str, Path]:
    """Return a file for each way to store a network."""
    single, paths = make(), {}
    paths["float32"] = single.save(folder / "float32.onnx")
    paths["float16"] = make(precision="float16").save(folder / "float16.onnx")
    paths["8-bit weights"] = quantize_onnx(single, folder / "dynamic.onnx").path
    static = quantize_onnx(single, folder / "static.onnx", calibration=calibration)
    return paths | {"8-bit weights and activations": static.path}


def digits_rows(folder: Path) -> list[Row]:
    train = load("mnist", "train")
    digits = train.small_digits()
    trained = train.train(digits, epochs=10)

    def make(**options: Any) -> ONNXProgram:
        return export_onnx(
            [trained.images],
            trained.probabilities,
            dynamic_axes={"images": {0: "batch"}},
            assume_finite=True,
            **options,
        )

    calibration = [[part] for part in np.array_split(digits.train_images[:400], 8)]
    rows = []
    for name, path in files(make, calibration, folder).items():
        found = run(path, digits.test_images).argmax(axis=1)
        right = np.mean(found == digits.test_labels)
        rows.append(("digits", name, path.stat().st_size, f"{right:.1%} recognised"))
    return rows


def yolo_rows(folder: Path, size: int) -> list[Row]:
    load("yolo11n", "model")
    from model import Yolo11n
    from weights import initial_weights

    model = Yolo11n()
    model.state.set_values(initial_weights(model.state.shapes))
    images = pt.tensor("images", dtype="float32", shape=(1, 3, size, size))
    boxes = model.detect.decode(model(images), size, size)

    def make(**options: Any) -> ONNXProgram:
        return export_onnx([images], boxes, verify=False, assume_finite=True, **options)

    rng = np.random.default_rng(0)
    coarse = rng.random((5, 1, 3, 8, 8)).repeat(size // 8, -1).repeat(size // 8, -2)
    pictures = coarse.astype("float32")
    rows, paths = [], files(make, [[picture] for picture in pictures[1:]], folder)
    exact = run(paths["float32"], pictures[0])
    for name, path in paths.items():
        error = np.abs(run(path, pictures[0]) - exact).max() / np.abs(exact).max()
        rows.append((f"YOLO11n, {size} x {size}", name, path.stat().st_size, f"error {error:.1e}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=320, help="side of the images (320)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        rows = digits_rows(Path(one)) + yolo_rows(Path(other), given.size)
    lines = ["| network | floats | file | result |", "|---|---|---|---|"]
    lines += [f"| {a} | {b} | {n / 1e3:,.0f} kB | {r} |" for a, b, n, r in rows]
    table = "\n".join(lines) + "\n"
    write_part(PAGE, "table", table)
    print(table)


if __name__ == "__main__":
    main()
