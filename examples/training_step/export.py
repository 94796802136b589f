"""Write what `train.py` needs: a training step, a predictor and the data."""

import argparse
from pathlib import Path

import numpy as np
import pytensor
from pytensor.tensor.special import softmax
from pytensor_ml.activations import ReLU
from pytensor_ml.layers import Input, Linear, Sequential
from pytensor_ml.loss import CrossEntropy, supervised_loss
from pytensor_ml.model import Model
from pytensor_ml.optim import adam

from pytensor_onnx import export_onnx, export_training_step
from pytensor_onnx.demo import load_digits


def build(seed: int = 0):
    """Return the input and the model of a network for images of 8 by 8 pixels."""
    pixels = Input("pixels", shape=(None, 64))
    network = Sequential(
        Linear("hidden", n_in=64, n_out=128), ReLU(), Linear("logits", n_in=128, n_out=10)
    )
    return pixels, Model(network(pixels)).initialize(seed=seed)


def main() -> None:
    """Write ``step.onnx``, ``predict.onnx`` and ``digits.npz``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."))
    folder = parser.parse_args().folder
    pytensor.config.floatX = "float32"
    pixels, model = build()
    loss, labels = supervised_loss(
        model.y, CrossEntropy(expect_onehot_labels=False, expect_logits=True)
    )
    labels.name = "labels"
    step = export_training_step(
        loss, model.weights, adam, folder / "step.onnx", inputs=[pixels, labels]
    )
    print(step.report())

    # The weights are inputs of the predictor: those of the training step fit it at any time.
    probabilities = softmax(model.y, axis=-1)
    probabilities.name = "probabilities"
    export_onnx(
        [pixels, *model.weights],
        probabilities,
        folder / "predict.onnx",
        dynamic_axes={"pixels": {0: "batch"}},
    )

    digits = load_digits()
    np.savez(
        folder / "digits.npz",
        train_pixels=digits.train_images.reshape(-1, *pixels.type.shape[1:]),
        train_labels=digits.train_labels,
        test_pixels=digits.test_images.reshape(-1, *pixels.type.shape[1:]),
        test_labels=digits.test_labels,
    )


if __name__ == "__main__":
    main()
