"""Read the contents of an ONNX file without running it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.exporting.verification.file_vectors import METADATA, Vectors


@dataclass(frozen=True)
class Inspection:
    """Contents of an ONNX file.

    Attributes
    ----------
    file, file_bytes
        Its name and size.
    inputs, defaults, outputs
        Name, dtype and shape of the inputs without and with a default, and of the outputs.
    state
        Name of the output with the next value, for each input of the state.
    operator_sets, ir_version, producer
        Operator sets, IR version and producer in the file.
    nodes, constants, constant_bytes
        Numbers of nodes and constants, and the size of the constants.
    operators, functions
        Number of nodes of each operator, and number of nodes in each function.
    test_vectors
        Names, dtypes and shapes of the arrays of its test vectors, if it has some.
    metadata
        Further metadata of the file.
    """

    file: str
    file_bytes: int
    inputs: list[str]
    defaults: list[str]
    outputs: list[str]
    state: dict[str, str]
    operator_sets: dict[str, int]
    ir_version: int
    producer: str
    nodes: int
    constants: int
    constant_bytes: int
    operators: dict[str, int]
    functions: dict[str, int]
    test_vectors: list[str]
    metadata: dict[str, str]


def inspect_file(file: Path) -> Inspection:
    """Return the contents of an ONNX file.

    Raises
    ------
    PyTensorONNXError
        If the file is no readable model.
    """
    from pytensor_onnx.exporting.requests.descriptions import describe
    from pytensor_onnx.graph.model_reading import read_model
    from pytensor_onnx.graph.node_counts import function_sizes, operator_counts
    from pytensor_onnx.graph.weights import weight_bytes

    model = read_model(file)
    graph = model.graph
    counts = operator_counts(model)
    metadata = {str(key): str(value) for key, value in model.metadata_props.items()}
    return Inspection(
        file=str(file),
        file_bytes=file.stat().st_size,
        inputs=[describe(v) for v in graph.inputs if v.name not in graph.initializers],
        defaults=[describe(v) for v in graph.inputs if v.is_initializer()],
        outputs=[describe(v) for v in graph.outputs],
        state=_state_pairs(metadata.pop("state", "")),
        operator_sets={domain or "onnx": v for domain, v in graph.opset_imports.items()},
        ir_version=model.ir_version,
        producer=f"{model.producer_name or '?'} {model.producer_version or ''}".strip(),
        nodes=counts.total(),
        constants=len(graph.initializers),
        constant_bytes=weight_bytes(model),
        operators=dict(counts.most_common()),
        functions=dict(function_sizes(model)),
        test_vectors=_described_vectors(metadata.pop(METADATA, "")),
        metadata=metadata,
    )


def _described_vectors(text: str) -> list[str]:
    """Return a line for each array of test vectors; none for other metadata."""
    try:
        vectors = Vectors.of_text(text)
    except PyTensorONNXError:
        return []
    return [
        f"{name}: {array.dtype}{list(array.shape)}"
        for name, array in {**vectors.inputs, **vectors.outputs}.items()
    ]


def _state_pairs(text: str) -> dict[str, str]:
    """Return the state pairs in the metadata of a model, empty for other metadata."""
    try:
        pairs: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(pairs, dict):
        return {}
    return {name: after for name, after in pairs.items() if isinstance(after, str)}
