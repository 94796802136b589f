"""A convolutional network for images of digits."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn

N_CLASSES = 10


class Network:
    """Twice a convolution 3x3, Relu and pool 2x2, and a layer that sees all of it.

    Parameters
    ----------
    side
        Height and width of the images, a multiple of 4.
    seed
        Seed of the initial weights.
    """

    def __init__(self, side: int, seed: int = 0) -> None:
        self.parameters: list[TensorSharedVariable] = []
        rng = np.random.default_rng(seed)
        features = 32 * (side // 4) ** 2
        self.conv1 = self._weight_and_bias(rng, "conv1", (16, 1, 3, 3), fan_in=9)
        self.conv2 = self._weight_and_bias(rng, "conv2", (32, 16, 3, 3), fan_in=16 * 9)
        self.dense = self._weight_and_bias(rng, "dense", (features, N_CLASSES), fan_in=features)

    def __call__(self, images: TensorVariable) -> TensorVariable:
        """Return the logits (B, 10) of images (B, 1, side, side)."""
        x = images
        for weight, bias in (self.conv1, self.conv2):
            x = nn.conv2d(x, weight, border_mode="half", filter_flip=False, bias=bias)
            x = nn.max_pool(pt.maximum(x, np.float32(0)), 2)
        weight, bias = self.dense
        return x.flatten(ndim=2) @ weight + bias

    def _weight_and_bias(
        self, rng: np.random.Generator, name: str, shape: tuple[int, ...], fan_in: int
    ) -> list[TensorSharedVariable]:
        weight = rng.standard_normal(shape) * sqrt(2 / fan_in)
        bias = np.zeros(shape[-1] if name == "dense" else shape[0])
        pair = [
            pytensor.shared(value.astype("float32"), name=f"{name}.{kind}", shape=value.shape)
            for kind, value in (("weight", weight), ("bias", bias))
        ]
        self.parameters += pair
        return pair
