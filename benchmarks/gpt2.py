"""A small GPT-2 of pytensor-ml in mode ONNX against PyTensor's other backends."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from benchmarks.timing import Table, interleaved
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


MODES = ("ONNX", "NUMBA")
"""PyTensor's JAX backend does not compile positions whose number is not known."""


def measure() -> Table:
    """Time the logits of a text, one token more, a training step, and the first of each."""
    from pytensor_ml.models import build_from_config
    from pytensor_ml.pytensorf import collect_trainable_params

    with pytensor.config.change_flags(floatX="float32"):
        (ids,), (logits, *_), _ = build_from_config(CONFIG)
    weights = collect_trainable_params(logits)
    size = sum(w.get_value(borrow=True).size for w in weights)
    step = decoding_step(ids, logits)
    rng = np.random.default_rng(0)
    text = rng.integers(0, CONFIG["vocab_size"], (BATCH, LENGTH))
    heads, width = CONFIG["n_head"], CONFIG["n_embd"] // CONFIG["n_head"]
    past = [rng.normal(size=(1, heads, LENGTH, width)).astype("float32") for _ in step.inputs[1:]]

    chosen = pt.special.log_softmax(logits[:, :-1], axis=-1)
    rows = chosen.reshape((-1, CONFIG["vocab_size"]))
    loss = -rows[pt.arange(rows.shape[0]), ids[:, 1:].flatten()].mean()
    rate = np.float32(1e-3)
    updates = [(w, w - rate * g) for w, g in zip(weights, pt.grad(loss, weights), strict=True)]
    calls: dict[str, tuple[list[Any], Any, dict[str, Any], list[np.ndarray]]] = {
        "text": ([ids], logits, {}, [text[:1]]),
        "next token": (step.inputs, step.outputs, {}, [text[:1, :1], *past]),
        "training step": ([ids], loss, {"updates": updates}, [text]),
    }
    table = Table(
        "GPT-2, small",
        ["mode", *(f"{what}, {unit}" for what in calls for unit in ("ms", "first, s"))],
        note=f"{size / 1e6:.1f} million parameters in float32: {CONFIG['n_layer']} blocks of width "
        f"{CONFIG['n_embd']}. A text has {LENGTH} tokens; the next token takes keys and values of "
        f"{LENGTH} tokens before it; a step of gradient descent takes {BATCH} texts. The first of "
        "each counts the compilation.",
    )
    times: dict[str, dict[str, float]] = {}
    first: dict[tuple[str, str], float] = {}
    for what, (inputs, outputs, options, values) in calls.items():
        functions = {}
        for mode in MODES:
            functions[mode], first[mode, what] = _compiled(inputs, outputs, mode, options, values)
        times[what] = interleaved(functions, rounds=20, seconds=0)
    for mode in MODES:
        cells = [x for what in calls for x in (1e3 * times[what][mode], first[mode, what])]
        table.rows.append([mode, *(f"{cell:.2f}" for cell in cells)])
    for mode in MODES[1:]:
        for what, found in times.items():
            table.claim(f"{what}, mode ONNX against mode {mode}", found["ONNX"] / found[mode], 1)
    start = perf_counter()
    program = export_onnx(logits)
    table.note += (
        f" Export with verification takes {perf_counter() - start:.2f} s; the file has "
        f"{len(program.model.graph)} nodes."
    )
    return table


def _compiled(
    inputs: list[Any], outputs: Any, mode: str, options: dict[str, Any], values: list[np.ndarray]
) -> tuple[Callable[[], Any], float]:
    """Return a call of a new function, and the time that it took to make it and call it once."""
    start = perf_counter()
    function = pytensor.function(inputs, outputs, mode=mode, **options)
    _fetched(function(*values))
    seconds = perf_counter() - start
    return lambda: _fetched(function(*values)), seconds


def _fetched(results: Any) -> list[np.ndarray]:
    """Return results as arrays, which waits for a backend that computes later."""
    return [np.asarray(x) for x in (results if isinstance(results, list) else [results])]


if __name__ == "__main__":
    measure().show()
