"""The network of `benchmarks.resnet18`, batch norms folded."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.torch_networks.descent import predict, step_of


class Block(nn.Module):
    """A residual block of two convolutions of 3x3."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, channels, 3, stride, 1)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1)
        is_same = before == channels and stride == 1
        self.shortcut = nn.Identity() if is_same else nn.Conv2d(before, channels, 1, stride)

    def forward(self, x: Any) -> Any:
        """Add both."""
        return torch.relu(self.shortcut(x) + self.second(torch.relu(self.first(x))))


def network(blocks: list[tuple[int, int]], classes: int) -> Any:
    """Return the network, for channels and stride of each block."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for channels, stride in blocks:
        layers.append(Block(before, channels, stride))
        before = channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes)]
    return nn.Sequential(*layers)


def calls(
    *, blocks: list[tuple[int, int]], classes: int, rate: float, size: int, batch: int
) -> dict[str, Callable[[], Any]]:
    """Return the measured functions."""
    resnet = network(blocks, classes)
    images = torch.rand(batch, 3, size, size)
    labels = torch.randint(classes, (batch,))
    optimizer = torch.optim.SGD(resnet.parameters(), rate)
    return {
        "prediction": predict(resnet, images[:1]),
        "training step": step_of(
            optimizer, lambda: nn.functional.cross_entropy(resnet(images), labels)
        ),
    }
