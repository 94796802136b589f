"""YOLO11n at 320x320: the example's file against the form in which other exporters write it."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from benchmarks.timing import Table, interleaved
from benchmarks.yolo11n_reference import reference_model

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "yolo11n"))
SIZE = 320
THREADS = 2


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
    measure().show()
