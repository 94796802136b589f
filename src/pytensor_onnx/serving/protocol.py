"""The descriptions of the Open Inference Protocol, and the manifest of KServe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pytensor_onnx.serving.tensors import ServedModel, ServedTensor

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
