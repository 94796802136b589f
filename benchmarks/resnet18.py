"""A network of the size of ResNet-18 in PyTensor's modes and, where there is one, in PyTorch.

PyTorch may live in an environment of its own: ``python -m benchmarks.resnet18 --torch PYTHON``.
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from benchmarks.modes import Case, compare
from benchmarks.timing import Table
from benchmarks.torch_process import in_torch
from pytensor_onnx import export_onnx, nn

SIZE = 64
BATCH = 8
BLOCKS = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
"""Channels and stride of each residual block: He and others 2015, table 1."""

CLASSES = 1000
RATE = 1e-3


class ResNet18:
    """The network; its parameters are drawn as it is built."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.weights: list[Any] = []

    def __call__(self, images: TensorVariable) -> TensorVariable:
        """Return the logits of images (N, 3, H, W)."""
        self.used = iter(self.weights)
        x = nn.relu(self.conv(images, 64, 7, 2))
        x = nn.max_pool(x, 3, stride=2, padding=1)
        for channels, stride in BLOCKS:
            x = self.block(x, channels, stride)
        features = x.mean(axis=(2, 3))
        weight = self.parameter((BLOCKS[-1][0], CLASSES), BLOCKS[-1][0])
        return features @ weight + self.parameter((CLASSES,))

    def block(self, x: TensorVariable, channels: int, stride: int) -> TensorVariable:
        """Return the sum of a residual block's input and two convolutions of 3x3."""
        y = nn.relu(self.conv(x, channels, 3, stride))
        y = self.conv(y, channels, 3, 1)
        if x.type.shape[1] != channels or stride > 1:
            x = self.conv(x, channels, 1, stride)
        return nn.relu(x + y)

    def conv(self, x: TensorVariable, channels: int, size: int, stride: int) -> TensorVariable:
        """Return a convolution, the batch norm after it folded into filters and bias."""
        shape = (channels, x.type.shape[1], size, size)
        filters, bias = self.parameter(shape, shape[1] * size**2), self.parameter((channels,))
        return nn.conv2d(x, filters, (size // 2,) * 2, stride, filter_flip=False, bias=bias)

    def parameter(self, shape: tuple[int, ...], inputs: int | None = None) -> Any:
        """Return a shared variable of normal numbers, or of zeros where no inputs scale them.

        On the second call of the network it is the same as on the first.
        """
        for known in self.used:
            return known
        scale = 0.0 if inputs is None else np.sqrt(2 / inputs)
        value = self.rng.normal(0, scale, shape).astype("float32")
        weight = pytensor.shared(value, name=f"w{len(self.weights)}", shape=shape)
        self.weights.append(weight)
        return weight


def measure(
    *, size: int = SIZE, batch: int = BATCH, rounds: int = 10, torch: Path | None = None
) -> Table:
    """Time predictions and training steps, and the way to the first of them."""
    rng = np.random.default_rng(1)
    values = rng.random((batch, 3, size, size), dtype="float32")
    classes = rng.integers(0, CLASSES, batch)
    one, images = (pt.tensor(shape=(n, 3, size, size), dtype="float32") for n in (1, batch))
    labels = pt.tensor("labels", shape=(batch,), dtype="int64")
    network = ResNet18()
    prediction, logits = network(one), network(images)
    loss = -pt.special.log_softmax(logits, axis=1)[np.arange(batch), labels].mean()
    rate, weights = np.float32(RATE), network.weights
    updates = [(w, w - rate * g) for w, g in zip(weights, pt.grad(loss, weights), strict=True)]
    count = sum(w.get_value(borrow=True).size for w in weights)

    cases = {
        "prediction": Case([one], prediction, [values[:1]]),
        "training step": Case([images, labels], loss, [values, classes], updates),
    }
    built_from = {"blocks": BLOCKS, "classes": CLASSES, "rate": RATE, "size": size, "batch": batch}
    table = compare(
        f"ResNet-18 at {size}x{size}",
        cases,
        note=f"{count / 1e6:.1f} million parameters in float32, batch norms folded; a prediction "
        f"is of one image, a step of gradient descent of {batch}.",
        rounds=rounds,
        others=in_torch("resnet18", [*cases], torch, **built_from),
    )
    start = perf_counter()
    program = export_onnx([one], prediction)
    table.note += (
        f" Export with verification takes {perf_counter() - start:.2f} s; the file has "
        f"{len(program.model.graph)} nodes."
    )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help="side of the images")
    parser.add_argument("--batch", type=int, default=BATCH, help="images in a training step")
    parser.add_argument("--rounds", type=int, default=10, help="turns; the fastest counts")
    parser.add_argument("--torch", type=Path, help="a Python that has PyTorch; else this one")
    measure(**vars(parser.parse_args())).show()
