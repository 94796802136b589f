"""Train YOLO11n for a few steps on synthetic images: ``python train.py --steps 20``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
from loss import Objects, Targets, assign, detection_loss, target_variables
from model import Yolo11n
from numba_calls import unoptimized_calls
from pytensor.compile.mode import get_mode
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.variable import TensorVariable
from weights import initial_weights, load_weights

import pytensor_onnx  # noqa: F401  (mode ONNX)

MOMENTUM = 0.9
Updates = dict[TensorSharedVariable, TensorVariable]
Step = Callable[[np.ndarray, Targets[np.ndarray]], float]


def make_step(
    model: Yolo11n, size: int, *, learning_rate: float, mode: str, batch: int | None = None
) -> Step:
    """Compile a step of gradient descent with momentum, which returns the loss before it.

    Parameters
    ----------
    model
        A network in training.
    size
        Side of the images.
    learning_rate
        How far a step goes.
    mode
        Where it is computed: ``"ONNX"``, ``"NUMBA"`` or another mode of PyTensor.
    batch
        Number of images of each step, if it is always the same: the graph is smaller then.
    """
    images = pt.tensor("images", shape=(batch, 3, size, size), dtype="float32")
    targets = target_variables()
    loss = detection_loss(model.detect, model(images), targets, size, size)
    updates = model.state.updates | descent(loss, model.state.trainable, learning_rate)
    inputs = [images, targets.assigned, targets.corners, targets.bins, targets.classes]
    # To find out whether each of thousands of results may be written over takes PyTensor minutes.
    compile_mode = get_mode(mode).excluding("inplace")
    step = pytensor.function(inputs, loss, updates=updates, mode=compile_mode)
    return lambda images, t: float(step(images, t.assigned, t.corners, t.bins, t.classes))


def descent(
    loss: TensorVariable, variables: Sequence[TensorSharedVariable], learning_rate: float
) -> Updates:
    """Return the updates of gradient descent with momentum."""
    updates: Updates = {}
    for variable, gradient in zip(variables, pt.grad(loss, list(variables)), strict=True):
        zeros = np.zeros_like(variable.get_value())
        velocity = pytensor.shared(zeros, name=f"{variable.name}.velocity", shape=zeros.shape)
        updates[velocity] = np.float32(MOMENTUM) * velocity + gradient
        updates[variable] = variable - np.float32(learning_rate) * updates[velocity]
    return updates


def synthetic_images(n: int, size: int, seed: int = 0) -> tuple[np.ndarray, list[Objects]]:
    """Return images of two rectangles each: red ones of class 0 and blue ones of class 2."""
    rng = np.random.default_rng(seed)
    images = 0.3 * rng.random((n, 3, size, size), dtype="float32")
    objects = []
    for image in images:
        sides = rng.integers(size // 4, size // 2, (2, 2))
        first = rng.integers(0, size - sides)
        classes = rng.choice([0, 2], 2)
        for (x, y), (width, height), channel in zip(first, sides, classes, strict=True):
            image[channel, y : y + height, x : x + width] += 0.7
        objects.append(Objects(np.concatenate([first, first + sides], axis=1), classes))
    return images, objects


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Train YOLO11n on a few synthetic images.")
    add = parser.add_argument
    add("--weights", type=Path, help="npz file to start from; else a seeded start")
    add("--steps", type=int, default=20, help="steps (20)")
    add("--images", type=int, default=4, help="images, all of them in each step (4)")
    add("--size", type=int, default=64, help="their side, a multiple of 32 (64)")
    add("--learning-rate", type=float, default=1e-2, help="how far a step goes (0.01)")
    add("--mode", default="ONNX", help="ONNX (the default), NUMBA or another mode of PyTensor")
    add("--output", type=Path, help="npz file to write the weights to")
    given = parser.parse_args(argv)

    model = Yolo11n(training=True)
    start = load_weights(given.weights) if given.weights else initial_weights(model.state.shapes)
    model.state.set_values(start)
    images, objects = synthetic_images(given.images, given.size)
    targets = assign(objects, given.size, given.size)

    with unoptimized_calls():
        started = time.perf_counter()
        step = make_step(
            model,
            given.size,
            learning_rate=given.learning_rate,
            mode=given.mode,
            batch=given.images,
        )
        print(f"compiled in {time.perf_counter() - started:.1f} s")
        for number in range(given.steps):
            started = time.perf_counter()
            loss = step(images, targets)
            print(f"step {number + 1}: loss {loss:.3f} ({time.perf_counter() - started:.2f} s)")
    if given.output:
        np.savez(given.output, **model.state.values())


if __name__ == "__main__":
    main()
