"""Read models from files, bytes and objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError, PyTensorONNXError
from pytensor_onnx.graph.model_reading import parse_model, read_model as read_model_file
from pytensor_onnx.graph.weights import weight_files

_KINDS = "a path, bytes, onnx.ModelProto, onnx_ir.Model or ONNXProgram"


def read_model(source: Any) -> ir.Model:
    """Return a model with its nodes in order.

    Parameters
    ----------
    source
        Path of a file, its bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model`` or a program of this
        package.

    Raises
    ------
    ArgumentError
        If the source is none of these.
    PyTensorONNXError
        If it is not a model, its weights are missing, or its nodes form a cycle.

    Examples
    --------
    >>> graph = ir.Graph([], [], nodes=[], name="empty", opset_imports={"": 21})
    >>> read_model(ir.Model(graph, ir_version=10)).graph.name
    'empty'
    """
    if isinstance(source, str | os.PathLike):
        model = _read_file(Path(source))
    elif isinstance(source, bytes | bytearray | memoryview):
        model = parse_model(bytes(source))
        _check(model, "the bytes")
    elif isinstance(source, ir.Model):
        model = source
    elif isinstance(getattr(source, "model", None), ir.Model):
        model = source.model
    elif type(source).__name__ == "ModelProto":
        model = ir.serde.deserialize_model(source)
    else:
        raise ArgumentError(f"from_onnx takes {_KINDS}; got {type(source).__name__}")
    return _in_order(model)


def _read_file(path: Path) -> ir.Model:
    model = read_model_file(path)
    _check(model, str(path))
    folder = path.parent.resolve()
    for file in weight_files(model, path):
        if not file.resolve().is_relative_to(folder):
            raise PyTensorONNXError(f"{path} has weights in {file}, which is not in its folder")
    return model


def _check(model: ir.Model, name: str) -> None:
    if not model.opset_imports:
        raise PyTensorONNXError(
            f"{name} cannot be read as an ONNX model: it names no version of the operators"
        )


def _in_order(model: ir.Model) -> ir.Model:
    """Return the model, or a copy whose nodes are sorted where a node comes before its operands."""
    if _is_sorted(model.graph):
        return model
    copy = ir.serde.deserialize_model(ir.serde.serialize_model(model))
    try:
        copy.graph.sort()
    except ValueError as error:
        raise PyTensorONNXError("the nodes of the model form a cycle") from error
    return copy


def _is_sorted(graph: ir.Graph) -> bool:
    seen: set[int] = set()
    for node in graph:
        for value in node.inputs:
            producer = None if value is None else value.producer()
            if producer is not None and producer.graph is graph and id(producer) not in seen:
                return False
        seen.add(id(node))
    return True
