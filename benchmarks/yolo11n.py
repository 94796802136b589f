"""YOLO11n at 320x320: the example's file against the form in which other exporters write it.

``python -m benchmarks.yolo11n --modes`` compares PyTensor's modes and, where there is one, PyTorch,
which may live in an environment of its own: ``--torch PYTHON``. Numba compiles for minutes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt

from benchmarks.modes import Case, compare
from benchmarks.timing import Table, interleaved
from benchmarks.torch_process import in_torch
from benchmarks.yolo11n_reference import reference_model

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "yolo11n"))
SIZE = 320
THREADS = 2
TRAINED_SIZE, BATCH = 64, 2
RATE = 1e-3
ROUNDS = 10


def measure() -> Table:
    """Time both files on one image."""
    from export import export
    from model import Yolo11n
    from weights import initial_weights

    weights = initial_weights(Yolo11n().state.shapes)
    ours = export(None, size=(SIZE, SIZE), verify=False).proto
    reference = reference_model(weights, SIZE, SIZE)
    feed = {"images": np.random.default_rng(0).random((1, 3, SIZE, SIZE), dtype="float32")}
    with tempfile.TemporaryDirectory() as folder:
        forms = {
            "this package": Form(ours, folder, "ours"),
            "convolution, batch norm, Sigmoid, Mul": Form(reference, folder, "reference"),
        }
    results = [form.session.run(None, feed)[0] for form in forms.values()]
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3)
    calls = {name: lambda form=form: form.session.run(None, feed) for name, form in forms.items()}
    seconds = interleaved(calls, rounds=60, seconds=0)

    table = Table(
        f"YOLO11n at {SIZE}x{SIZE}",
        ["file", "nodes", "after the runtime's optimizer", "latency in ms"],
        note=f"One image, {THREADS} threads. The other file was written node by node with "
        "`onnx.helper`, in the form in which exporters write the network before they simplify it.",
    )
    for name, form in forms.items():
        row = [name, str(form.nodes), str(form.optimized_nodes), f"{1e3 * seconds[name]:.2f}"]
        table.rows.append(row)
    first, second = seconds.values()
    table.claim("this package's file against the other", first / second, 1.05)
    return table


def measure_modes(size: int = SIZE, rounds: int = ROUNDS, torch: Path | None = None) -> Table:
    """Time a prediction and a training step in PyTensor's modes, and the first of each."""
    from loss import assign, detection_loss, target_variables
    from model import Yolo11n
    from numba_calls import unoptimized_calls
    from train import MOMENTUM, descent, synthetic_images
    from weights import initial_weights

    predicting, training = Yolo11n(), Yolo11n(training=True)
    weights = initial_weights(predicting.state.shapes)
    for model in (predicting, training):
        model.state.set_values(weights)
    image = pt.tensor("image", shape=(1, 3, size, size), dtype="float32")
    side = TRAINED_SIZE
    images = pt.tensor("images", shape=(BATCH, 3, side, side), dtype="float32")
    targets = target_variables()
    loss = detection_loss(training.detect, training(images), targets, side, side)
    updates = training.state.updates | descent(loss, training.state.trainable, RATE)
    pictures, objects = synthetic_images(BATCH, side)
    assigned = assign(objects, side, side)
    names = ("assigned", "corners", "bins", "classes")
    cases = {
        "prediction": Case(
            [image],
            predicting.detect.decode(predicting(image), size, size),
            [np.random.default_rng(0).random((1, 3, size, size), dtype="float32")],
        ),
        "training step": Case(
            [images, *(getattr(targets, name) for name in names)],
            loss,
            [pictures, *(getattr(assigned, name) for name in names)],
            list(updates.items()),
        ),
    }
    built_from = {"size": size, "trained_size": side, "batch": BATCH}
    built_from |= {"rate": RATE, "momentum": MOMENTUM}
    with unoptimized_calls():
        return compare(
            f"YOLO11n in PyTensor's modes, {size}x{size}",
            cases,
            note=f"A prediction is of one image; a training step of {BATCH} of {side}x{side}.",
            rounds=rounds,
            others=in_torch("yolo11n", [*cases], torch, **built_from),
        )


class Form:
    """A file, loaded, and the number of its nodes before and after the runtime's optimizer."""

    def __init__(self, model: onnx.ModelProto, folder: str, name: str) -> None:
        optimized = Path(folder, f"{name}.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.optimized_model_filepath = str(optimized)
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        self.nodes = len(model.graph.node)
        self.optimized_nodes = len(onnx.load(optimized).graph.node)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", action="store_true", help="compare PyTensor's modes")
    parser.add_argument("--torch", type=Path, help="a Python that has PyTorch; else this one")
    given = parser.parse_args()
    (measure_modes(torch=given.torch) if given.modes else measure()).show()
