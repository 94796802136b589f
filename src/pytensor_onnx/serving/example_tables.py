"""Tables that a file scores, as examples of requests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.serving.tensors import ServedTensor, served_model
from pytensor_onnx_scoring import Scorer


def example_columns(path: Path, scorer: Scorer) -> dict[str, list]:
    """Return columns of two rows, of sampled inputs of the file if it runs on them, else of zeros.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.lvector("x")
    >>> _ = export_onnx([x], {"y": 2 * x}, "double.onnx")
    >>> example_columns(Path("double.onnx"), Scorer("double.onnx"))
    {'x': [..., ...]}
    """
    try:
        drawn, _ = run_on_sample(load(str(path), threads=1), str(path))
    except VerificationError:
        return _zeros(scorer)
    arrays = dict(zip(drawn.names, drawn.arrays, strict=True))
    columns: dict[str, np.ndarray] = {}
    for tensor in served_model(ir.load(path)).inputs:
        columns |= _columns(tensor, arrays[tensor.name])
    return {name: columns[name][:2].tolist() for name in scorer.input_columns}


def _columns(tensor: ServedTensor, array: np.ndarray) -> dict[str, np.ndarray]:
    if tensor.labels:
        return dict(zip(tensor.labels, array.T, strict=True))
    return {tensor.name: array}


def _zeros(scorer: Scorer) -> dict[str, list]:
    zeros = {
        name: np.zeros((2, *dtype.shape), "U" if dtype.kind == "O" else dtype.base)
        for name, dtype in scorer.input_columns.items()
    }
    return {name: values.tolist() for name, values in zeros.items()}
