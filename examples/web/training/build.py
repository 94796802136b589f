"""Export a training step and make a page that trains with it: ``python build.py -o site``."""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor_ml.optim import adam

from pytensor_onnx import ONNXProgram, export_training_step
from pytensor_onnx.web.controls import read_description
from pytensor_onnx.web.site import build_site

WIDTH, POSITIONS = 32, 100


def export_step(
    path: str | Path, state_path: str | Path, *, seed: int = 0, n_points: int | None = None
) -> ONNXProgram:
    """Export a step of training of a network with two hidden layers, with its curve as output.

    The number of points is open unless given.
    """
    rng = np.random.default_rng(seed)
    sizes = [1, WIDTH, WIDTH, 1]
    layers = []
    for i, (n_in, n_out) in enumerate(pairwise(sizes), start=1):
        weights = rng.normal(size=(n_in, n_out)) * np.sqrt(1 / n_in)
        bias = rng.normal(size=n_out)
        layers.append(
            [
                pytensor.shared(weights.astype("float32"), name=f"weights{i}"),
                pytensor.shared(bias.astype("float32"), name=f"bias{i}"),
            ]
        )

    def network(x: pt.TensorVariable) -> pt.TensorVariable:
        for weights, bias in layers[:-1]:
            x = pt.tanh(x @ weights + bias)
        weights, bias = layers[-1]
        return x @ weights + bias

    data = pt.tensor("data", dtype="float32", shape=(n_points, 2))
    loss = pt.mean((network(data[:, :1]) - data[:, 1:]) ** 2)
    positions = pt.constant(np.linspace(-3, 3, POSITIONS, dtype="float32"))
    curve = network(positions[:, None])[:, 0]
    curve.name = "curve"
    return export_training_step(
        loss,
        [parameter for layer in layers for parameter in layer],
        adam,
        path,
        inputs=[data],
        extra_outputs=[curve, positions.copy("positions")],
        state_path=state_path,
        target="web",
    )


def points(n: int = 60, seed: int = 1) -> np.ndarray:
    """Return points around a wave, rows of x and y."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2.8, 2.8, n))
    return np.round(np.stack([x, np.sin(2 * x) + x / 3 + rng.normal(0, 0.15, n)], axis=1), 2)


def build(folder: str | Path, *, runtime: str = "npm") -> Path:
    """Write the page to an empty folder, and return it."""
    page = read_description(Path(__file__).with_name("page.yaml"))
    page["inputs"]["data"]["value"] = points().tolist()
    with tempfile.TemporaryDirectory() as temporary:
        file, state = Path(temporary) / "step.onnx", Path(temporary) / "state.npz"
        export_step(file, state)
        return build_site(file, folder, page=page, state=state, runtime=runtime)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", "-o", default="site", help="folder to write (site)")
    given = parser.parse_args()
    print(f"wrote {build(given.output)}: any web server shows it")


if __name__ == "__main__":
    main()
