"""Train the network in `step.onnx`, with ONNX Runtime and NumPy alone."""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnxruntime

BATCH_SIZE = 32


class TrainingStep:
    """A file of `export_training_step`, and the state that it works on."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # It would warn of every input that has a default.
        self.session = onnxruntime.InferenceSession(path, options)
        # The outputs that are the next values of inputs. The file holds the first values.
        self.pairs = json.loads(self.session.get_modelmeta().custom_metadata_map["state"])
        self.outputs = ["loss", *self.pairs.values()]
        self.state: dict[str, np.ndarray] = {}

    def __call__(self, **data: np.ndarray) -> float:
        """Do one step and return the loss before it."""
        loss, *state = self.session.run(self.outputs, data | self.state)
        self.state = dict(zip(self.pairs, state, strict=True))
        return float(loss)


def main() -> None:
    """Train, print the accuracy reached, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    digits = np.load(options.folder / "digits.npz")
    pixels, labels = digits["train_pixels"], digits["train_labels"]

    step = TrainingStep(options.folder / "step.onnx")
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    for epoch in range(options.epochs):
        rate = np.array(3e-3 * (1 - epoch / options.epochs), dtype=np.float32)
        order = rng.permutation(len(pixels))
        batches = [order[i : i + BATCH_SIZE] for i in range(0, len(order), BATCH_SIZE)]
        losses = [step(pixels=pixels[b], labels=labels[b], learning_rate=rate) for b in batches]
        print(f"epoch {epoch + 1:2}  loss {np.mean(losses):.4f}")
    print(f"trained in {time.perf_counter() - started:.1f} s")

    predict = onnxruntime.InferenceSession(options.folder / "predict.onnx")
    weights = {v.name: step.state[v.name] for v in predict.get_inputs() if v.name in step.state}
    (probabilities,) = predict.run(None, {"pixels": digits["test_pixels"]} | weights)
    accuracy = np.mean(probabilities.argmax(axis=1) == digits["test_labels"])
    print(f"held-out accuracy {100 * accuracy:.1f} %")
    np.savez(options.folder / "weights.npz", **weights)


if __name__ == "__main__":
    main()
