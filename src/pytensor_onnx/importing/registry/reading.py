"""Read models from files, bytes and objects."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError, PyTensorONNXError
from pytensor_onnx.graph.model_reading import parse_model, read_model as read_model_file
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING
from pytensor_onnx.user_code import NOT_OF_USERS

_OF_MAPS = ("map_type", "sequence_type")
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
        model = _read(parse_model, bytes(source))
        _check(model, "the bytes")
    elif isinstance(source, ir.Model):
        model = source
    elif isinstance(getattr(source, "model", None), ir.Model):
        model = source.model
    elif type(source).__name__ == "ModelProto":
        model = ir.serde.deserialize_model(_without_maps(source))
    else:
        raise ArgumentError(f"from_onnx takes {_KINDS}; got {type(source).__name__}")
    return _in_order(model)


def _read_file(path: Path) -> ir.Model:
    model = _read(read_model_file, path)
    _check(model, str(path))
    folder = path.parent.resolve()
    for file in weight_files(model, path):
        if not file.resolve().is_relative_to(folder):
            raise PyTensorONNXError(f"{path} has weights in {file}, which is not in its folder")
    return model


def _read(reader: Callable[[Any], ir.Model], source: Path | bytes) -> ir.Model:
    """Return a model, that with matrices in place of maps where the reader refuses maps."""
    try:
        return reader(source)
    except PyTensorONNXError as error:
        if not isinstance(error.__cause__, ir.serde.SerdeError):
            raise
        import onnx

        is_file = isinstance(source, Path)
        proto = onnx.load(source) if is_file else onnx.load_model_from_string(source)
        found = _without_maps(proto)
        if found is proto:
            raise
        return ir.serde.deserialize_model(found)


def _without_maps(proto: Any) -> Any:
    """Return a model with the matrix before each ZipMap in place of its list of maps.

    scikit-learn's converter writes the probabilities of classes as one map for each row.
    """
    maps = {
        value.name for value in proto.graph.output if value.type.WhichOneof("value") in _OF_MAPS
    }
    makers = {
        node.output[0]: node
        for node in proto.graph.node
        if node.op_type == "ZipMap" and node.domain == MACHINE_LEARNING
    }
    if not maps & makers.keys():
        return proto
    model = type(proto)()
    model.CopyFrom(proto)
    for node in model.graph.node:
        if node.output and node.output[0] in maps & makers.keys():
            node.op_type, node.domain = "Identity", ""
            node.ClearField("attribute")
    for value in model.graph.output:
        if value.name in makers:
            value.type.Clear()
            value.type.tensor_type.elem_type = ir.DataType.FLOAT.value
    names = ", ".join(sorted(maps & makers.keys()))
    warnings.warn(
        f"{names}: one map for each row in the file, imported as the matrix of the probabilities. "
        "The converter writes the matrix with options={'zipmap': False}",
        UserWarning,
        skip_file_prefixes=NOT_OF_USERS,
    )
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
