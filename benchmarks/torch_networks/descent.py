"""A training step of gradient descent."""

from collections.abc import Callable
from typing import Any

import torch


def step_of(optimizer: Any, loss: Callable[[], Any]) -> Callable[[], float]:
    """Return a function that takes a step and returns the loss before it."""

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return step


def predict(network: Any, *inputs: Any) -> Callable[[], Any]:
    """Return a function that computes a network's outputs for some inputs."""

    def call() -> Any:
        with torch.inference_mode():
            return network(*inputs)

    return call
