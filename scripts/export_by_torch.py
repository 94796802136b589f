"""Export the networks of the web demos by `torch.onnx`, for scripts/measure_web.py.

    PYTHON scripts/export_by_torch.py NETWORK FOLDER

PYTHON has torch, onnx and onnxscript. FOLDER has NETWORK.npz, the numbers of the network, and gets
NETWORK.onnx.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

sys.path[:0] = [str(Path(__file__).parents[1])]

from benchmarks.torch_networks.yolo11n import Decoded, Yolo11n  # noqa: E402

Exported = tuple[Any, tuple[Any, ...], dict[str, Any]]


def digits(numbers: dict[str, torch.Tensor]) -> Exported:
    """Return the network that recognises digits."""
    first, last = (nn.Linear(*numbers[name].shape) for name in ("first", "last"))
    for layer, name in ((first, "first"), (last, "last")):
        layer.weight.data, layer.bias.data = numbers[name].T.contiguous(), numbers[f"{name}_bias"]
    network = nn.Sequential(first, nn.ReLU(), last, nn.Softmax(-1)).eval()
    batch = torch.export.Dim("batch")
    return network, (torch.zeros(2, len(numbers["first"])),), {"dynamic_shapes": ({0: batch},)}


class Regression(nn.Module):
    """Mean yield of fields for all draws of a posterior, summarised."""

    def __init__(self, numbers: dict[str, torch.Tensor]) -> None:
        super().__init__()
        for name, draws in numbers.items():
            self.register_buffer(name, draws[:, None])

    def forward(self, nitrogen: Any, rain: Any) -> tuple[Any, Any]:
        """Return the mean of the draws and their narrowest interval of 94 %."""
        share = 1 - (1 - self.start) * torch.exp(-nitrogen / self.scale)
        means = (self.level + self.gain * (rain - 500) / 100) * share
        ordered = means.sort(0).values.T
        inside = int(0.94 * len(means))
        first = (ordered[:, inside:] - ordered[:, :-inside]).argmin(1, keepdim=True)
        ends = [ordered.gather(1, first + i) for i in (0, inside)]
        return means.mean(0), torch.cat(ends, 1)


def regression(numbers: dict[str, torch.Tensor]) -> Exported:
    """Return the predictor without the draws of new fields."""
    sizes = {"dynamic_shapes": ({0: torch.export.Dim("fields")}, {})}
    return Regression(numbers), (torch.linspace(0, 200, 50), torch.tensor(400.0)), sizes


def training(numbers: dict[str, torch.Tensor]) -> Exported:
    """Return a step of Adam on the network that learns a curve, as the operators that it runs."""
    positions = torch.linspace(-3, 3, 100)[:, None]

    def network(x: Any, weights: Any) -> Any:
        for i in (0, 2):
            x = torch.tanh(x @ weights[i] + weights[i + 1])
        return x @ weights[4] + weights[5]

    def step(data: Any, rate: Any, count: Any, *state: Any) -> list[Any]:
        weights, first, second = state[:6], state[6:12], state[12:]

        def loss_of(weights: Any) -> Any:
            return ((network(data[:, :1], weights) - data[:, 1:]) ** 2).mean()

        gradients, loss = torch.func.grad_and_value(loss_of)(weights)
        count = count + 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
        scales = [(v / (1 - 0.999**count)).sqrt() + 1e-8 for v in second]
        moves = [m / (1 - 0.9**count) / s for m, s in zip(first, scales, strict=True)]
        new = [w - rate * move for w, move in zip(weights, moves, strict=True)]
        return [loss, network(positions, weights)[:, 0], count, *new, *first, *second]

    data = numbers.pop("data")
    weights = list(numbers.values())
    moments = [torch.zeros_like(w) for w in weights * 2]
    given = (data, torch.tensor(0.005), torch.tensor(0.0), *weights, *moments)
    return make_fx(step)(*given), given, {}


def yolo11n(numbers: dict[str, torch.Tensor]) -> Exported:
    """Return the network with decoded boxes; its weights are others."""
    size = int(numbers["size"])
    return Decoded(Yolo11n().eval(), size), (torch.zeros(1, 3, size, size),), {}


NETWORKS: dict[str, Callable[[dict[str, torch.Tensor]], Exported]] = {
    "digits": digits,
    "regression": regression,
    "training": training,
    "yolo11n": yolo11n,
}


def main(name: str, folder: Path) -> None:
    """Write the file of a network."""
    with np.load(folder / f"{name}.npz") as arrays:
        numbers = {key: torch.tensor(array) for key, array in arrays.items()}
    network, given, options = NETWORKS[name](numbers)
    file = folder / f"{name}.onnx"
    torch.onnx.export(network, given, file, dynamo=True, **options)
    # Weights that the exporter has put into a file of their own.
    onnx.save(onnx.load(file), file)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
