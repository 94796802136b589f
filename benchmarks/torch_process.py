"""A process that runs PyTorch, which may need another Python than the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class TorchProcess:
    """A process of `benchmarks.torch_networks`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @classmethod
    def start(cls, python: Path | None) -> TorchProcess | None:
        """Start the process, or print why there is none."""
        command = [str(python or sys.executable), "-m", "benchmarks.torch_networks"]
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[1],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
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


def in_torch(
    network: str, whats: Sequence[str], python: Path | None, **given: Any
) -> dict[str, dict[str, Callable[[], None]]]:
    """Return a network's functions in PyTorch for `benchmarks.modes.compare`, if PyTorch is there.

    Parameters
    ----------
    network
        A module of `benchmarks.torch_networks`.
    whats
        Functions to measure.
    python
        A Python that has PyTorch; by default this one.
    given
        Numbers that the network is built from.
    """
    process = TorchProcess.start(python)
    if process is None:
        return {}
    process.send(network=network, **given)
    return {"PyTorch": {what: lambda what=what: process.send(what=what) for what in whats}}
