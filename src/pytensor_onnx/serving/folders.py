"""Write the folder of a model that a server loads."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.serving.tensors import (
    ServedModel,
    ServedTensor,
    column_metadata,
    kserve_manifest,
    model_metadata,
    served_model,
)
from pytensor_onnx_scoring import Scorer, ScoringError
from pytensor_onnx_scoring.problems import MissingConstantError

Texts = dict[str, str]
"""Texts of files by their paths in a folder."""


@dataclass(frozen=True)
class Request:
    """A model to serve.

    Attributes
    ----------
    path, model, name
        Its file, its contents, and its name on the server.
    constants
        Values of the inputs without rows, for servers that take tables.
    """

    path: Path
    model: ir.Model
    name: str
    constants: Mapping[str, Any]


def write_serving_folder(
    model: Path,
    server: str,
    folder: Path,
    constants: Mapping[str, Any] | None = None,
    *,
    force: bool = False,
) -> list[Path]:
    """Write the folder of a model that a server loads, and return its files.

    Parameters
    ----------
    model
        An ONNX file.
    server
        ``"triton"``, ``"kserve"``, ``"mlserver"``, ``"bentoml"`` or ``"mlflow"``.
    folder
        Folder to write; it must be empty or missing, unless ``force`` is given.
    constants
        Values of the inputs without rows, for MLServer, BentoML and MLflow, which serve tables.
    force
        Whether to write into a folder with files. Files of the same names are replaced, others
        stay.

    Raises
    ------
    PyTensorONNXError
        If the folder has files, or the model cannot be served so.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.vector("x")
    >>> _ = export_onnx([x], {"y": pt.exp(x)}, "exp.onnx")
    >>> [p.as_posix() for p in write_serving_folder(Path("exp.onnx"), "triton", Path("models"))]
    ['models/exp/1/model.onnx', 'models/exp/config.pbtxt']
    """
    if folder.exists() and not folder.is_dir():
        raise PyTensorONNXError(f"{folder} is a file: name a folder with -o")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise PyTensorONNXError(
            f"{folder} is not an empty folder: name another with -o, or replace files in it by "
            "--force"
        )
    name = re.sub(r"[^A-Za-z0-9_-]", "_", model.stem)
    request = Request(model, read_model(model), name, constants or {})
    place, texts_of = _SERVERS[server]
    texts = texts_of(request)
    copies = _copy_model(request, folder / place.format(name=name))
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return sorted([*copies, *(folder / path for path in texts)])


def _triton(request: Request) -> Texts:
    served = served_model(request.model)
    if served.rows and not _are_independent(request):
        served = replace(served, rows=False)
    labels = {
        f"{request.name}/{labels_file(output)}": "\n".join(output.labels) + "\n"
        for output in served.outputs
        if output.labels
    }
    return {f"{request.name}/config.pbtxt": triton_config(request.name, served)} | labels


def _kserve(request: Request) -> Texts:
    metadata = model_metadata(request.name, served_model(request.model))
    return {
        "inference_service.yaml": kserve_manifest(request.name),
        "metadata.json": _json(metadata),
        **{f"repository/{path}": text for path, text in _triton(request).items()},
    }


def _mlserver(request: Request) -> Texts:
    scorer, _ = _scorer_and_example(request)
    settings = {
        "name": request.name,
        "implementation": "service.Model",
        "platform": "onnxruntime_onnx",
        "inputs": column_metadata(scorer.input_columns),
        "outputs": column_metadata(scorer.output_columns),
    }
    return {
        "model-settings.json": _json(settings),
        # The service has threads; worker processes of MLServer 1.7 end with uvloop 0.22 and later.
        "settings.json": _json({"parallel_workers": 0}),
        "service.py": _file("mlserver_service.py"),
        **_of_scorer(request),
    }


def _bentoml(request: Request) -> Texts:
    _, example = _scorer_and_example(request)
    return {
        "service.py": _file("bentoml_service.py"),
        "example.json": _json({"columns": example}),
        **_of_scorer(request),
    }


def _mlflow(request: Request) -> Texts:
    _, example = _scorer_and_example(request)
    return {
        "model.py": _file("mlflow_model.py"),
        "log_model.py": _file("mlflow_log.py"),
        "example.json": _json(example),
        **{f"scorer/{path}": text for path, text in _of_scorer(request).items()},
    }


_SERVERS: dict[str, tuple[str, Callable[[Request], Texts]]] = {
    "triton": ("{name}/1/model.onnx", _triton),
    "kserve": ("repository/{name}/1/model.onnx", _kserve),
    "mlserver": ("model.onnx", _mlserver),
    "bentoml": ("model.onnx", _bentoml),
    "mlflow": ("scorer/model.onnx", _mlflow),
}
"""The place of the model, and the other files, for each server."""

SERVERS = tuple(_SERVERS)
"""The servers that have folders."""


def _are_independent(request: Request) -> bool:
    """Return whether the rows of an example have the same results together and apart."""
    try:
        _scored(request.path, {})
    except ScoringError:
        return False
    return True


def _scorer_and_example(request: Request) -> tuple[Scorer, dict[str, list]]:
    """Return the scorer of a model, and a table that it has scored.

    Raises
    ------
    PyTensorONNXError
        If the file takes no table, or the rows of the table depend on each other.
    """
    try:
        return _scored(request.path, request.constants)
    except ScoringError as error:
        is_missing = isinstance(error, MissingConstantError)
        way = "; in a shell by --constant NAME=VALUE" if is_missing else ""
        raise PyTensorONNXError(
            f"{request.path} cannot be served as a table: {error}{way}"
        ) from error


def _scored(path: Path, constants: Mapping[str, Any]) -> tuple[Scorer, dict[str, list]]:
    scorer = Scorer(path, constants=constants)
    example = example_columns(path, scorer)
    scorer(example)
    return scorer, example


def _of_scorer(request: Request) -> Texts:
    return {"scorer.json": _json({"constants": dict(request.constants)})}


def _json(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"


def _file(name: str) -> str:
    return (files("pytensor_onnx.serving") / "services" / name).read_text("utf-8")


def _copy_model(request: Request, target: Path) -> list[Path]:
    """Copy a model and its files of weights, which keep their names."""
    sources = weight_files(request.model, request.path)
    beside = (Path(os.path.relpath(source, request.path.parent)) for source in sources)
    copies = [target, *(target.parent / path for path in beside)]
    for source, copy in zip([request.path, *sources], copies, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        # The file may be one of a folder that is written again.
        if not (copy.exists() and copy.samefile(source)):
            shutil.copyfile(source, copy)
    return copies


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
