"""A small convolutional network for digits, of pytensor-ml: mode ONNX against NUMBA and JAX."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor

from benchmarks.modes import installed
from benchmarks.timing import Table, interleaved
from benchmarks.user_models import digits_classifier
from pytensor_onnx import ONNXProgram, export_onnx

BATCH = 32
STEPS = 2000
BLOCK = 20


@dataclass
class _Network:
    """A network for one mode, with its compiled functions, and the seconds of their compilation."""

    step: Any
    predict: Any
    seconds_step: float
    seconds_predict: float
    model: Any
    pixels: Any


def measure(steps: int = STEPS) -> Table:
    """Return the times for compiling, training, predicting and exporting."""
    images, labels = _digits()
    with pytensor.config.change_flags(floatX="float32", numba__cache=False):
        networks = {}
        for mode in installed():
            try:
                networks[mode] = _compiled(mode, images, labels)
            except NotImplementedError as error:  # JAX: the size of a batch is not known.
                print(f"mode {mode} is left out: {str(error).splitlines()[0]}")
        training, step = _train(networks, images, labels, steps)
        started = time.perf_counter()
        file = _exported(networks["ONNX"])
        exported = time.perf_counter() - started
        forward = {size: _forward(networks, file, images[:size]) for size in (1, BATCH)}

    others = [mode for mode in networks if mode != "ONNX"]
    table = Table(
        "A small convolutional network",
        ["digits, two convolutions", *networks, *(f"ONNX / {mode}" for mode in others)],
        note=(
            "Two convolutions of 16 and 32 filters with maximum pooling and a dense layer, of "
            f"pytensor-ml, on images of 8 by 8 pixels; Adam on batches of {BATCH}. Compilation "
            "includes the first call; NUMBA finds nothing that it compiled before. Steps alternate "
            f"in blocks of {BLOCK}, and one step is the mean of the fastest block. The exported "
            "file holds the weights as constants; mode ONNX gives them to each call, as they may "
            "change. Images are so little to compute here that the calls of a runtime count, and "
            "of each of its operators."
        ),
    )
    rows: list[tuple[str, dict[str, float], float, str, float | None]] = [
        ("compile the step, s", {m: n.seconds_step for m, n in networks.items()}, 1, ".1f", 1),
        ("one step, ms", step, 1e3, ".2f", 2),
        (
            f"compile and train {steps} steps, s",
            {m: n.seconds_step + training[m] for m, n in networks.items()},
            1,
            ".1f",
            0.25,
        ),
        (
            "compile the prediction, s",
            {m: n.seconds_predict for m, n in networks.items()},
            1,
            ".1f",
            1,
        ),
        *(
            (f"predict {size}, {how}, µs", times, 1e6, ".0f", 1)
            for size in (1, BATCH)
            for how, times in forward[size].items()
        ),
    ]
    for name, seconds, unit, form, bound in rows:
        ratios = [seconds["ONNX"] / seconds[mode] for mode in others]
        cells = [format(seconds[mode] * unit, form) for mode in networks]
        table.rows.append([name, *cells, *(f"{ratio:.3f}" for ratio in ratios)])
        if bound is not None:
            for mode, ratio in zip(others, ratios, strict=True):
                table.claim(f"{name.rsplit(',', 1)[0]}, ONNX against {mode}", ratio, bound)
    empty = [""] * (2 * len(others))
    table.rows.append(["export the prediction, s", f"{exported:.1f}", *empty])
    return table


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return (pixels / 16).astype("float32").reshape(-1, 8, 8, 1), labels


def _compiled(mode: str, images: np.ndarray, labels: np.ndarray) -> _Network:
    from pytensor_ml.loss import CrossEntropy, supervised_loss
    from pytensor_ml.optim import adam, compile_train
    from pytensor_ml.pytensorf import compile_predict

    pixels, model = digits_classifier()
    loss, target = supervised_loss(
        model.y, CrossEntropy(expect_onehot_labels=False, expect_logits=True)
    )
    options = {"mode": mode}
    started = time.perf_counter()
    predict = compile_predict(model.y, inputs=[pixels], compile_kwargs=options)
    predict(images[:1])
    seconds_predict = time.perf_counter() - started
    started = time.perf_counter()
    step = compile_train(
        loss, adam(3e-3), parameters=model.weights, inputs=[pixels, target], compile_kwargs=options
    )
    step(images[:BATCH], labels[:BATCH])
    seconds_step = time.perf_counter() - started
    return _Network(step, predict, seconds_step, seconds_predict, model, pixels)


def _train(
    networks: dict[str, _Network], images: np.ndarray, labels: np.ndarray, steps: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the time of all steps and the least time of one, by mode."""
    rng = np.random.default_rng(0)
    blocks: dict[str, list[float]] = {mode: [] for mode in networks}
    for _ in range(0, steps, BLOCK):
        batches = rng.integers(0, len(images), size=(BLOCK, BATCH))
        for mode, network in networks.items():
            started = time.perf_counter()
            for batch in batches:
                np.asarray(network.step(images[batch], labels[batch]))
            blocks[mode].append(time.perf_counter() - started)
    total = {mode: sum(seconds) for mode, seconds in blocks.items()}
    return total, {mode: min(seconds) / BLOCK for mode, seconds in blocks.items()}


def _exported(network: _Network) -> ONNXProgram:
    axes = {"pixels": {0: "batch"}}
    return export_onnx([network.pixels], network.model.y, verify=False, dynamic_axes=axes)


def _forward(
    networks: dict[str, _Network], file: ONNXProgram, images: np.ndarray
) -> dict[str, dict[str, float]]:
    calls = {mode: lambda n=n: np.asarray(n.predict(images)) for mode, n in networks.items()}
    best = interleaved({**calls, "file": lambda: file(images)}, rounds=50)
    return {
        "mode ONNX": {mode: best[mode] for mode in networks},
        "exported file": {mode: best["file" if mode == "ONNX" else mode] for mode in networks},
    }


if __name__ == "__main__":
    measure().show()
