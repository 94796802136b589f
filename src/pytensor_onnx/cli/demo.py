"""Train a network on handwritten digits, export it, and run the file: the demo."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx.late_names import require

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable
    from pytensor_ml.model import Model

N_PIXELS = 64
N_CLASSES = 10
BATCH_SIZE = 32
LEARNING_RATE = 3e-3

OnEpoch = Callable[[int, float], None]


@dataclass(frozen=True)
class Digits:
    """Images of handwritten digits with values from 0 to 1, one in each row, and their labels."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


@dataclass(frozen=True)
class DigitsResult:
    """Results of the demo.

    Attributes
    ----------
    path
        The file written.
    probabilities, runtime_probabilities
        Probability of each class for each test image, by PyTensor and by ONNX Runtime.
    labels
        The true classes.
    operators
        Operators of the file in the order of computation.
    verification
        The verification at export.
    train_seconds, export_seconds
        Time for training, compilation included, and for export, verification included.
    single_seconds, batch_seconds
        Median time of one run of ONNX Runtime on one image, and on all test images.
    """

    path: Path
    probabilities: np.ndarray
    runtime_probabilities: np.ndarray
    labels: np.ndarray
    operators: list[str]
    verification: str
    train_seconds: float
    export_seconds: float
    single_seconds: float
    batch_seconds: float

    @property
    def predictions(self) -> np.ndarray:
        """Classes predicted in PyTensor."""
        return self.probabilities.argmax(axis=1)

    @property
    def runtime_predictions(self) -> np.ndarray:
        """Classes predicted in ONNX Runtime."""
        return self.runtime_probabilities.argmax(axis=1)

    def summary(self) -> dict[str, Any]:
        """Return the results in short, as data for JSON."""
        differences = abs(self.probabilities - self.runtime_probabilities)
        return {
            "file": str(self.path),
            "file_bytes": self.path.stat().st_size,
            "images": len(self.labels),
            "accuracy": float((self.predictions == self.labels).mean()),
            "runtime_accuracy": float((self.runtime_predictions == self.labels).mean()),
            "largest_difference": float(differences.max()),
            "operators": list(self.operators),
            "verification": str(self.verification),
            "train_seconds": self.train_seconds,
            "export_seconds": self.export_seconds,
            "single_seconds": self.single_seconds,
            "batch_seconds": self.batch_seconds,
        }


def run_digits(
    path: str | Path,
    *,
    epochs: int = 40,
    hidden: int = 64,
    seed: int = 0,
    on_epoch: OnEpoch | None = None,
) -> DigitsResult:
    """Train a network on scikit-learn's digits, export it, and compare the file with PyTensor.

    Parameters
    ----------
    path
        File to write.
    epochs
        Passes over the training images.
    hidden
        Units of the hidden layer.
    seed
        Seed of the initial weights and of the order of the images.
    on_epoch
        Called with the number of epochs done and the mean loss of the last.

    Raises
    ------
    MissingExtraError
        If pytensor-ml or scikit-learn is not installed.
    """
    require("ml", "the demo")
    import pytensor
    from pytensor.tensor.special import softmax

    from pytensor_onnx import export_onnx

    digits = load_digits()
    with pytensor.config.change_flags(floatX="float32"):
        pixels, model = build_network(hidden, seed)
        started = time.perf_counter()
        train(model, digits, epochs=epochs, seed=seed, on_epoch=on_epoch)
        train_seconds = time.perf_counter() - started

        probabilities = softmax(model.y, axis=-1)
        probabilities.name = "probabilities"
        started = time.perf_counter()
        program = export_onnx([pixels], probabilities, path, dynamic_axes={"pixels": {0: "batch"}})
        export_seconds = time.perf_counter() - started
    # Pure Python: PyTensor's other backends would compile for longer than the demo runs.
    with pytensor.config.change_flags(cxx=""):
        predict = pytensor.function([pixels], probabilities, mode=pytensor.compile.Mode("py", None))

    run = load_bare(path)
    return DigitsResult(
        path=Path(path),
        probabilities=predict(digits.test_images),
        runtime_probabilities=run(digits.test_images),
        labels=digits.test_labels,
        operators=[node.op_type for node in program.model.graph],
        verification=str(program.verification),
        train_seconds=train_seconds,
        export_seconds=export_seconds,
        single_seconds=median_seconds(lambda: run(digits.test_images[:1])),
        batch_seconds=median_seconds(lambda: run(digits.test_images)),
    )


def load_digits() -> Digits:
    """Return scikit-learn's handwritten digits, a quarter of them for the test."""
    from sklearn.datasets import load_digits as load
    from sklearn.model_selection import train_test_split

    images, labels = load(return_X_y=True)
    images = (images / images.max()).astype("float32")
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=0
    )
    return Digits(train_images, train_labels, test_images, test_labels)


def build_network(hidden: int, seed: int) -> tuple[TensorVariable, Model]:
    """Return the input and the model of a network with one hidden layer, in the dtype floatX."""
    from pytensor_ml.activations import ReLU
    from pytensor_ml.layers import Input, Linear, Sequential
    from pytensor_ml.model import Model

    pixels = Input("pixels", shape=(None, N_PIXELS))
    network = Sequential(
        Linear("hidden", n_in=N_PIXELS, n_out=hidden),
        ReLU(),
        Linear("logits", n_in=hidden, n_out=N_CLASSES),
    )
    return pixels, Model(network(pixels)).initialize(seed=seed)


def train(
    model: Model, digits: Digits, *, epochs: int, seed: int = 0, on_epoch: OnEpoch | None = None
) -> None:
    """Train a model with Adam, with the training step on ONNX Runtime."""
    from pytensor_ml.loss import CrossEntropy
    from pytensor_ml.optim import adam

    step = model.compile_train(
        adam(LEARNING_RATE),
        CrossEntropy(expect_onehot_labels=True, expect_logits=True),
        compile_kwargs={"mode": "ONNX"},
    )
    images = digits.train_images
    targets = np.eye(N_CLASSES, dtype=images.dtype)[digits.train_labels]
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        batches = [order[i : i + BATCH_SIZE] for i in range(0, len(order), BATCH_SIZE)]
        losses = [float(step(images[batch], targets[batch])) for batch in batches]
        if on_epoch is not None:
            on_epoch(epoch + 1, float(np.mean(losses)))


def load_bare(path: str | Path) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that runs a file of one input and one output with ONNX Runtime only."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (name,) = (x.name for x in session.get_inputs())
    return lambda array: session.run(None, {name: array})[0]


def median_seconds(run: Callable[[], Any], repeats: int = 200) -> float:
    """Return the median time of a call.

    Examples
    --------
    >>> median_seconds(lambda: None, repeats=3) < 1
    True
    """
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))
