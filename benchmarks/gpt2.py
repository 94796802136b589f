"""A small GPT-2 of pytensor-ml in PyTensor's modes and, where there is one, in PyTorch.

PyTorch may live in an environment of its own: ``python -m benchmarks.gpt2 --torch PYTHON``.
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from benchmarks.modes import Case, compare
from benchmarks.timing import Table
from benchmarks.torch_process import in_torch
from pytensor_onnx import export_onnx
from pytensor_onnx.ml import decoding_step

CONFIG = {
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 4096,
    "n_positions": 256,
    "n_embd": 256,
    "n_head": 8,
    "n_layer": 2,
    "layer_norm_epsilon": 1e-5,
}
LENGTH = 64
BATCH = 4
RATE = 1e-3
ROUNDS = 20


def measure(
    config: dict[str, Any] = CONFIG, rounds: int = ROUNDS, torch: Path | None = None
) -> Table:
    """Time the logits of a text, one token more, a training step, and the first of each."""
    from pytensor_ml.models import build_from_config
    from pytensor_ml.pytensorf import collect_trainable_params

    with pytensor.config.change_flags(floatX="float32"):
        (ids,), (logits, *_), _ = build_from_config(config)
    weights = collect_trainable_params(logits)
    size = sum(w.get_value(borrow=True).size for w in weights)
    step = decoding_step(ids, logits)
    rng = np.random.default_rng(0)
    text = rng.integers(0, config["vocab_size"], (BATCH, LENGTH)).astype(ids.type.dtype)
    heads, width = config["n_head"], config["n_embd"] // config["n_head"]
    past = [rng.normal(size=(1, heads, LENGTH, width)).astype("float32") for _ in step.inputs[1:]]

    chosen = pt.special.log_softmax(logits[:, :-1], axis=-1)
    rows = chosen.reshape((-1, config["vocab_size"]))
    loss = -rows[pt.arange(rows.shape[0]), ids[:, 1:].flatten()].mean()
    rate = np.float32(RATE)
    updates = [(w, w - rate * g) for w, g in zip(weights, pt.grad(loss, weights), strict=True)]
    cases = {
        "text": Case([ids], logits, [text[:1]]),
        "next token": Case(step.inputs, step.outputs, [text[:1, :1], *past]),
        "training step": Case([ids], loss, [text], updates),
    }
    built_from = {"config": config, "length": LENGTH, "batch": BATCH, "rate": RATE}
    table = compare(
        "GPT-2, small",
        cases,
        note=f"{size / 1e6:.1f} million parameters in float32: {config['n_layer']} blocks of width "
        f"{config['n_embd']}. A text has {LENGTH} tokens; the next token takes keys and values of "
        f"{LENGTH} tokens before it; a step of gradient descent takes {BATCH} texts.",
        rounds=rounds,
        others=in_torch("gpt2", [*cases], torch, **built_from),
    )
    start = perf_counter()
    program = export_onnx(logits)
    table.note += (
        f" Export with verification takes {perf_counter() - start:.2f} s; the file has "
        f"{len(program.model.graph)} nodes."
    )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", type=Path, help="a Python that has PyTorch; else this one")
    measure(torch=parser.parse_args().torch).show()
