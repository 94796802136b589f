"""Train a network on handwritten digits and export it: ``python train.py``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
from digits import Digits, mnist, small_digits
from network import N_CLASSES, Network
from pytensor.tensor.special import log_softmax, softmax
from pytensor.tensor.variable import TensorVariable
from pytensor_ml.optim import adam_updates

from pytensor_onnx import ONNXProgram, export_onnx

BATCH_SIZE = 32
LEARNING_RATE = 3e-3
Step = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Trained:
    """A trained network: its input, its probabilities, and the loss of each epoch."""

    images: TensorVariable
    probabilities: TensorVariable
    losses: list[float]


def train(
    digits: Digits,
    *,
    epochs: int,
    mode: str = "ONNX",
    seed: int = 0,
    on_epoch: Callable[[int, float], None] = lambda epoch, loss: None,
) -> Trained:
    """Train a network with Adam.

    Parameters
    ----------
    digits
        What to train on.
    epochs
        Passes over the training images.
    mode
        Where the steps run: ``"ONNX"``, ``"NUMBA"`` or another mode of PyTensor.
    seed
        Seed of the initial weights and of the order of the images.
    on_epoch
        Called with the number of epochs done and the mean loss of the last.
    """
    images = pt.tensor("images", shape=(None, 1, digits.side, digits.side), dtype="float32")
    network = Network(digits.side, seed)
    logits = network(images)
    probabilities = softmax(logits, axis=-1)
    probabilities.name = "probabilities"

    targets = pt.tensor("targets", shape=(None, N_CLASSES), dtype="float32")
    loss = -(targets * log_softmax(logits, axis=-1)).sum(axis=1).mean()
    # What Adam keeps has the dtype floatX.
    with pytensor.config.change_flags(floatX="float32"):
        updates = adam_updates(loss, network.parameters, learning_rate=LEARNING_RATE)
    step = pytensor.function([images, targets], loss, updates=updates, mode=mode)

    one_hot = np.eye(N_CLASSES, dtype="float32")
    rng = np.random.default_rng(seed)
    losses = []
    for epoch in range(epochs):
        order = rng.permutation(len(digits.train_images))
        batches = [order[i : i + BATCH_SIZE] for i in range(0, len(order), BATCH_SIZE)]
        batch_losses = [
            float(step(digits.train_images[batch], one_hot[digits.train_labels[batch]]))
            for batch in batches
        ]
        losses.append(float(np.mean(batch_losses)))
        on_epoch(epoch + 1, losses[-1])
    return Trained(images, probabilities, losses)


def export(trained: Trained, path: str | Path | None) -> ONNXProgram:
    """Write the network as a file that takes batches of any size."""
    return export_onnx(
        [trained.images],
        trained.probabilities,
        path,
        dynamic_axes={"images": {0: "batch"}},
        # Nothing that the network computes from pixels is NaN: its maxima need no guards.
        assume_finite=True,
    )


def predictions_of_pytensor(trained: Trained, images: np.ndarray) -> np.ndarray:
    """Return the classes that PyTensor's Python implementation predicts."""
    # Without a compiler it is ready at once.
    with pytensor.config.change_flags(cxx=""):
        mode = pytensor.compile.Mode("py", "fast_compile")
        predict = pytensor.function([trained.images], trained.probabilities, mode=mode)
    parts = [predict(images[i : i + 500]) for i in range(0, len(images), 500)]
    return np.concatenate(parts).argmax(axis=1)


def predictions_of_file(path: str | Path, images: np.ndarray) -> np.ndarray:
    """Return the classes that a file predicts in ONNX Runtime."""
    session = onnxruntime.InferenceSession(path)
    return session.run(["probabilities"], {"images": images})[0].argmax(axis=1)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Train a network on digits and export it.")
    add = parser.add_argument
    add("--data", type=Path, help="folder with the four files of MNIST; else the small digits")
    add("--epochs", type=int, default=10, help="passes over the training images (10)")
    add("--mode", default="ONNX", help="ONNX (the default), NUMBA or another mode of PyTensor")
    add("--output", type=Path, default=Path("mnist.onnx"), help="file to write (mnist.onnx)")
    given = parser.parse_args(argv)
    try:
        digits = mnist(given.data) if given.data else small_digits()
    except ValueError as error:
        sys.exit(str(error))

    started = time.perf_counter()
    trained = train(
        digits,
        epochs=given.epochs,
        mode=given.mode,
        on_epoch=lambda epoch, loss: print(f"epoch {epoch}: loss {loss:.4f}"),
    )
    print(f"trained in {time.perf_counter() - started:.1f} s")
    program = export(trained, given.output)
    print(f"{program}\n{program.verification}; wrote {given.output}")

    found = predictions_of_file(given.output, digits.test_images)
    expected = predictions_of_pytensor(trained, digits.test_images)
    print(
        f"test images: {len(found)}, recognised: {(found == digits.test_labels).mean():.1%}, "
        f"predicted alike by PyTensor and ONNX Runtime: {(found == expected).sum()}"
    )


if __name__ == "__main__":
    main()
