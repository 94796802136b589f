"""ResNet-18 in PyTorch, in a process of its own: it needs another Python than the rest may.

Run as a script it is that process, which needs torch alone. It reads a line of JSON for each call
and answers with a line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class TorchProcess:
    """A process that computes what it is asked to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @classmethod
    def start(cls, python: Path | None) -> TorchProcess | None:
        """Start the process, or print why there is none."""
        command = [str(python or sys.executable), str(Path(__file__).resolve())]
        process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started = cls(process)
        answer = started._answer()
        if answer == "ready":
            return started
        print(f"PyTorch is left out: {answer or 'its process ended'}")
        return None

    def send(self, **request: Any) -> None:
        """Ask for something, and wait until it is done."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        if answer != "done":
            raise RuntimeError(f"the process of PyTorch failed: {answer or 'it ended'}")

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def serve() -> None:
    """Build the network of the first request, and run what the others name."""
    try:
        import torch
    except ImportError as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    given = json.loads(sys.stdin.readline())
    torch.manual_seed(0)
    network = _network(torch, given["blocks"], given["classes"])
    images = torch.rand(given["batch"], 3, given["size"], given["size"])
    labels = torch.randint(given["classes"], (given["batch"],))
    optimizer = torch.optim.SGD(network.parameters(), given["rate"])
    print("done", flush=True)
    for line in sys.stdin:
        if json.loads(line)["what"] == "prediction":
            with torch.inference_mode():
                network(images[:1])
        else:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
        print("done", flush=True)


def _network(torch: Any, blocks: list[tuple[int, int]], classes: int) -> Any:
    """Return the network of `benchmarks.resnet18`, batch norms folded."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(before, channels, 3, stride, 1)
            self.second = nn.Conv2d(channels, channels, 3, 1, 1)
            is_same = before == channels and stride == 1
            self.shortcut = nn.Identity() if is_same else nn.Conv2d(before, channels, 1, stride)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.shortcut(x) + self.second(torch.relu(self.first(x))))

    layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for channels, stride in blocks:
        layers.append(Block(before, channels, stride))
        before = channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes)]
    return nn.Sequential(*layers)


if __name__ == "__main__":
    serve()
