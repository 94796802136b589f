"""Tensors of the inference protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx import native
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.model_reading import stored_mapping
from pytensor_onnx_scoring.interface import BATCH_AXIS, FEATURE_NAMES

Dim = int | str | None

_DATATYPES = {
    ir.DataType.BOOL: "BOOL",
    ir.DataType.FLOAT16: "FP16",
    ir.DataType.FLOAT: "FP32",
    ir.DataType.DOUBLE: "FP64",
    ir.DataType.STRING: "BYTES",
    **{ir.DataType[f"INT{bits}"]: f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{ir.DataType[f"UINT{bits}"]: f"UINT{bits}" for bits in (8, 16, 32, 64)},
}
"""The datatypes of the Open Inference Protocol (KServe V2)."""


@dataclass(frozen=True)
class ServedTensor:
    """An input or output of a file.

    Attributes
    ----------
    name, datatype, shape
        Its name, its datatype in the Open Inference Protocol, and the sizes or names of its axes.
    labels
        Names of its columns, if the file has them.
    """

    name: str
    datatype: str
    shape: tuple[Dim, ...]
    labels: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[int]:
        """The sizes of the axes, −1 for any, as servers want them: of one element at least one."""
        return [dim if isinstance(dim, int) else -1 for dim in self.shape] or [1]


@dataclass(frozen=True)
class ServedModel:
    """The interface of a file.

    Attributes
    ----------
    inputs, outputs
        Its tensors; inputs with a default are left out, as servers give all inputs.
    rows
        Whether the first axis of each tensor has the rows.
    """

    inputs: tuple[ServedTensor, ...]
    outputs: tuple[ServedTensor, ...]
    rows: bool


def served_model(model: ir.Model) -> ServedModel:
    """Return the interface of a model.

    Raises
    ------
    PyTensorONNXError
        If a tensor has no rank, or a dtype that servers lack, or the model has regions.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.matrix("x", shape=(None, 3))
    >>> program = export_onnx([x], {"y": x.sum(axis=1)})
    >>> served_model(program.model).outputs
    (ServedTensor(name='y', datatype='FP64', shape=('x_dim0',), labels=()),)
    """
    native.refuse_regions(model)
    graph, metadata = model.graph, model.metadata_props
    stored = stored_mapping(metadata, FEATURE_NAMES)
    labels = {name: texts for name, texts in stored.items() if isinstance(texts, list)}
    values = [v for v in graph.inputs if v.name not in graph.initializers]
    inputs = tuple(_tensor(value, labels.get(str(value.name), ())) for value in values)
    outputs = tuple(_tensor(value, labels.get(str(value.name), ())) for value in graph.outputs)
    return ServedModel(inputs, outputs, _has_rows((*inputs, *outputs), metadata.get(BATCH_AXIS)))


def _tensor(value: ir.Value, labels: Sequence[str]) -> ServedTensor:
    is_tensor = isinstance(value.type, ir.TensorType)
    if not is_tensor or value.dtype not in _DATATYPES or value.shape is None:
        raise PyTensorONNXError(
            f"{value.name} has the type {value.type}, which servers cannot exchange: export the "
            "model with tensors of known rank, and cast outputs to another dtype"
        )
    dims = (dim if isinstance(dim, int) else dim.value for dim in value.shape)
    return ServedTensor(str(value.name), _DATATYPES[value.dtype], tuple(dims), tuple(labels))


def _has_rows(tensors: Sequence[ServedTensor], rows: str | None) -> bool:
    first = {tensor.shape[0] if tensor.shape else 1 for tensor in tensors}
    if rows:
        return first == {rows}
    return len(first) == 1 and not isinstance(first.pop(), int)


_OF_NUMPY = {"bool": "BOOL", "object": "BYTES"} | {
    f"float{bits}": f"FP{bits}" for bits in (16, 32, 64)
}


def model_metadata(name: str, model: ServedModel) -> dict[str, Any]:
    """Return the answer of a server of KServe V2 to ``GET /v2/models/NAME``.

    Examples
    --------
    >>> x, y = ServedTensor("x", "FP64", ("row", 3)), ServedTensor("y", "FP64", ("row",))
    >>> model_metadata("area", ServedModel((x,), (y,), True))["inputs"]
    [{'name': 'x', 'datatype': 'FP64', 'shape': [-1, 3]}]
    """
    return {
        "name": name,
        "versions": ["1"],
        "platform": "onnxruntime_onnx",
        "inputs": list(map(_described, model.inputs)),
        "outputs": list(map(_described, model.outputs)),
    }


def _described(tensor: ServedTensor) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.sizes}


def column_metadata(columns: Mapping[str, np.dtype]) -> list[dict[str, Any]]:
    """Return the tensors of a server whose inputs or outputs are columns.

    Examples
    --------
    >>> column_metadata({"width": np.dtype("float64"), "name": np.dtype(object)})
    [{'name': 'width', 'datatype': 'FP64', 'shape': [-1]}, {'name': 'name', 'datatype': 'BYTES', ...
    """
    return [
        {
            "name": name,
            "datatype": _OF_NUMPY.get(dtype.base.name, dtype.base.name.upper()),
            "shape": [-1, *(dim if isinstance(dim, int) else -1 for dim in dtype.shape)],
        }
        for name, dtype in columns.items()
    ]


def kserve_manifest(name: str) -> str:
    """Return the manifest of an ``InferenceService``, which serves a repository of Triton.

    Examples
    --------
    >>> print(kserve_manifest("Area_1"))
    apiVersion: serving.kserve.io/v1beta1
    kind: InferenceService
    metadata:
      name: area-1
    ...
    >>> kserve_manifest("2024_prices").splitlines()[3]
    '  name: model-2024-prices'
    """
    return "\n".join(_manifest(name)) + "\n"


def _manifest(name: str) -> Iterable[str]:
    # Names of services begin with a letter, and have at most 63 characters.
    host = name.lower().replace("_", "-").strip("-")
    host = (host if host[:1].isalpha() else f"model-{host}")[:63].rstrip("-")
    return (
        "apiVersion: serving.kserve.io/v1beta1",
        "kind: InferenceService",
        "metadata:",
        f"  name: {host}",
        "spec:",
        "  predictor:",
        "    model:",
        "      modelFormat:",
        "        name: onnx",
        "      runtime: kserve-tritonserver",
        "      protocolVersion: v2",
        "      # The address to which you copy the folder `repository`.",
        f"      storageUri: s3://BUCKET/{host}/repository",
    )
