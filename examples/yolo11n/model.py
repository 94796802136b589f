"""YOLO11n, a network that detects objects of 80 classes, out of the blocks of `blocks.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytensor.tensor as pt
from blocks import C2PSA, SPPF, C3k2, Conv
from head import Detect, RawHeads
from pytensor.tensor.variable import TensorVariable
from weights import State

from pytensor_onnx import nn

Layer = Callable[..., TensorVariable]


class Yolo11n:
    """The network and its parameters.

    Parameters
    ----------
    training
        Whether batch norms use the statistics of the batch, and note the running ones in
        ``state.updates``.

    Attributes
    ----------
    state
        The parameters, which are zero until their values are set.
    detect
        The head, with the decoding of its maps.
    """

    def __init__(self, *, training: bool = False) -> None:
        s = self.state = State(training=training)
        # What each layer takes: -1 is the layer before it, other numbers are positions here.
        self.layers: list[tuple[tuple[int, ...], Layer]] = [
            ((-1,), Conv(s, "model.0", 3, 16, 3, stride=2)),
            ((-1,), Conv(s, "model.1", 16, 32, 3, stride=2)),
            ((-1,), C3k2(s, "model.2", 32, 64, 16)),
            ((-1,), Conv(s, "model.3", 64, 64, 3, stride=2)),
            ((-1,), C3k2(s, "model.4", 64, 128, 32)),
            ((-1,), Conv(s, "model.5", 128, 128, 3, stride=2)),
            ((-1,), C3k2(s, "model.6", 128, 128, 64, deep=True)),
            ((-1,), Conv(s, "model.7", 128, 256, 3, stride=2)),
            ((-1,), C3k2(s, "model.8", 256, 256, 128, deep=True)),
            ((-1,), SPPF(s, "model.9", 256)),
            ((-1,), C2PSA(s, "model.10", 256)),
            ((-1,), upsampled),
            ((-1, 6), joined),
            ((-1,), C3k2(s, "model.13", 384, 128, 64)),
            ((-1,), upsampled),
            ((-1, 4), joined),
            ((-1,), C3k2(s, "model.16", 256, 64, 32)),
            ((-1,), Conv(s, "model.17", 64, 64, 3, stride=2)),
            ((-1, 13), joined),
            ((-1,), C3k2(s, "model.19", 192, 128, 64)),
            ((-1,), Conv(s, "model.20", 128, 128, 3, stride=2)),
            ((-1, 10), joined),
            ((-1,), C3k2(s, "model.22", 384, 256, 128, deep=True)),
        ]
        self.detect = Detect(s, "model.23", (64, 128, 256))

    def __call__(self, images: TensorVariable) -> RawHeads:
        """Return the raw maps for images (B, 3, H, W) of values from 0 to 1."""
        features = [images]
        for sources, layer in self.layers:
            features.append(layer(*(features[i if i < 0 else i + 1] for i in sources)))
        return self.detect([features[i + 1] for i in (16, 19, 22)])


def upsampled(x: TensorVariable) -> TensorVariable:
    """Repeat each row and each column."""
    return nn.upsample(x, 2, mode="nearest")


def joined(*features: TensorVariable) -> TensorVariable:
    """Join along the channels."""
    return pt.concatenate(features, axis=1)
