"""Write what `train.py` needs: a training step, a predictor and the data."""

import argparse
from pathlib import Path

import numpy as np
import pytensor
from pytensor.tensor.special import softmax
from pytensor_ml.activations import ReLU
from pytensor_ml.layers import Conv2D, Input, Linear, MaxPool2D, Sequential
from pytensor_ml.loss import CrossEntropy, supervised_loss
from pytensor_ml.model import Model
from pytensor_ml.optim import adam

from pytensor_onnx import export_onnx, export_training_step
from pytensor_onnx.cli.demo import load_digits


def build_cnn():
    """Return the input and the output of a convolutional network for images of 8 by 8 pixels."""
    pixels = Input("pixels", shape=(None, 8, 8, 1))
    features = Sequential(
        Conv2D("conv1", in_channels=1, out_channels=16, kernel_size=3, padding="same"),
        ReLU(),
        MaxPool2D(kernel_size=2),
        Conv2D("conv2", in_channels=16, out_channels=32, kernel_size=3, padding="same"),
        ReLU(),
        MaxPool2D(kernel_size=2),
    )
    flat = features(pixels).reshape((-1, 128))
    return pixels, Linear("logits", n_in=128, n_out=10)(flat)


def build_mlp():
    """Return the input and the output of a network with one hidden layer."""
    pixels = Input("pixels", shape=(None, 64))
    network = Sequential(
        Linear("hidden", n_in=64, n_out=128), ReLU(), Linear("logits", n_in=128, n_out=10)
    )
    return pixels, network(pixels)


NETWORKS = {"cnn": build_cnn, "mlp": build_mlp}


def main() -> None:
    """Write ``step.onnx``, ``predict.onnx`` and ``digits.npz``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--network", choices=list(NETWORKS), default="cnn")
    options = parser.parse_args()
    folder = options.folder
    pytensor.config.floatX = "float32"
    pixels, logits = NETWORKS[options.network]()
    model = Model(logits).initialize(seed=0)
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
