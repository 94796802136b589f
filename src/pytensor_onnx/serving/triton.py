"""The repository of a model for NVIDIA's Triton."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytensor_onnx.serving.tensors import ServedModel, ServedTensor

LARGEST_BATCH = 1024
"""Rows that Triton may put together of waiting requests."""


def labels_file(tensor: ServedTensor) -> str:
    """Return the name of the file of an output's labels."""
    return f"{tensor.name}_labels.txt"


def triton_config(name: str, model: ServedModel) -> str:
    """Return the text of ``config.pbtxt``.

    Where the first axis of all tensors has independent rows, Triton puts requests together.

    Examples
    --------
    >>> rows = ServedTensor("x", "FP64", ("row", 3)), ServedTensor("y", "FP64", ("row",))
    >>> print(triton_config("area", ServedModel(rows[:1], rows[1:], True)))
    name: "area"
    platform: "onnxruntime_onnx"
    max_batch_size: 1024
    dynamic_batching { }
    input {
      name: "x"
      data_type: TYPE_FP64
      dims: [ 3 ]
    }
    output {
      name: "y"
      data_type: TYPE_FP64
      dims: [ 1 ]
      reshape: { shape: [ ] }
    }
    <BLANKLINE>
    """
    return "\n".join(_lines(name, model)) + "\n"


def _lines(name: str, model: ServedModel) -> Iterator[str]:
    yield f"name: {json.dumps(name)}"
    yield 'platform: "onnxruntime_onnx"'
    yield f"max_batch_size: {LARGEST_BATCH if model.rows else 0}"
    if model.rows:
        yield "dynamic_batching { }"
    for tensor in model.inputs:
        yield from _tensor("input", tensor, model.rows)
    for tensor in model.outputs:
        yield from _tensor("output", tensor, model.rows)


def _tensor(kind: str, tensor: ServedTensor, rows: bool) -> Iterator[str]:
    sizes = tensor.sizes[1:] if rows else tensor.sizes
    datatype = "STRING" if tensor.datatype == "BYTES" else tensor.datatype
    yield f"{kind} {{"
    yield f"  name: {json.dumps(tensor.name, ensure_ascii=False)}"
    yield f"  data_type: TYPE_{datatype}"
    yield f"  dims: [ {', '.join(map(str, sizes or [1]))} ]"
    if not sizes:
        # Triton has no tensors without a further axis: it takes [row, 1], and the file [row].
        yield "  reshape: { shape: [ ] }"
    if kind == "output" and tensor.labels:
        yield f"  label_filename: {json.dumps(labels_file(tensor), ensure_ascii=False)}"
    yield "}"
