"""Shared helpers of the tests of loops."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pytensor_onnx import ONNXProgram


def scan(*args: Any, **kwargs: Any) -> Any:
    """Return the outputs of a loop that updates nothing."""
    return pytensor.scan(*args, return_updates=False, **kwargs)


def loops(program: ONNXProgram) -> list[str]:
    """Return the loop operators of a model, those inside branches too."""
    return [n.op_type for n in program.model.graph.all_nodes() if n.op_type in ("Loop", "Scan")]


LSTM_UNITS = 3


def lstm(dtype: str, n_batch_axes: int = 0) -> tuple[list[Variable], list[Variable]]:
    """Return the inputs x, h, c, w, u, b of an LSTM in a loop, and its outputs and memories."""
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (2 + n_batch_axes))
    h, c = (pt.tensor(name, dtype=dtype, shape=(None,) * (1 + n_batch_axes)) for name in "hc")
    w, u, b = pt.matrix("w", dtype=dtype), pt.matrix("u", dtype=dtype), pt.vector("b", dtype=dtype)

    def step(e: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> tuple[Any, Any]:
        i, f, g, o = pt.split(e @ w + h @ u + b, [LSTM_UNITS] * 4, n_splits=4, axis=-1)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        return pt.sigmoid(o) * pt.tanh(c), c

    return [x, h, c, w, u, b], scan(step, [x], [h, c], [w, u, b])


def lstm_values(dtype: str, length: int, *batch: int) -> list[np.ndarray]:
    """Return values of the inputs of `lstm`."""
    rng = np.random.default_rng(length)
    sizes = [(2, 4 * LSTM_UNITS), (LSTM_UNITS, 4 * LSTM_UNITS), (4 * LSTM_UNITS,)]
    shapes = [(length, *batch, 2), (*batch, LSTM_UNITS), (*batch, LSTM_UNITS), *sizes]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]
