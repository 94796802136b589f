"""Draw the graphs in docs/pictures: one node by node, one by blocks.

python -m scripts.picture_graphs
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor_ml.models import build_from_config

from benchmarks.gpt2 import CONFIG
from pytensor_onnx import ONNXProgram, export_onnx
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.pictures.graph_picture import draw_graph

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def regression() -> ONNXProgram:
    """Return probabilities of three classes, and the most probable one."""
    x = pt.matrix("x", shape=(None, 4))
    weights, scale = pytensor.shared(np.ones((4, 3)), name="weights"), pt.scalar("scale")
    scores = pt.erf(x / scale) @ weights
    scores.name = "scores"
    outputs = {"probability": pt.special.softmax(2.0 * scores, axis=1), "score": scores.max(axis=1)}
    return export_onnx([x, scale], outputs, dynamic_axes={"x": {0: "n"}}, verify=False)


def transformer() -> ONNXProgram:
    """Return a small GPT-2 of 12 layers."""
    with pytensor.config.change_flags(floatX="float32"):
        (ids,), (logits, *_), _ = build_from_config({**CONFIG, "n_layer": 12})
    axes = {ids.name: {0: "batch", 1: "token"}}
    return export_onnx([ids], {"logits": logits}, dynamic_axes=axes, verify=False)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for name, program in {"graph": regression(), "graph-blocks": transformer()}.items():
            # A file has no lines of code: their paths are those of one machine.
            model = read_model(program.save(Path(folder, "model.onnx")))
            print(draw_graph(model).save(PICTURES / f"{name}.svg"))
