"""Read models from files, bytes and objects."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError, PyTensorONNXError, did_you_mean
from pytensor_onnx.graph.file_parts import MAPS, deserialized
from pytensor_onnx.graph.large_files import read_apart
from pytensor_onnx.graph.model_reading import (
    parse_model,
    read_model as read_model_file,
    state_pairs,
)
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING
from pytensor_onnx.user_code import NOT_OF_USERS

FIRST_OPSET = 7
"""First opset whose operators are imported."""

_INTEGER_LABELS = {"TreeEnsembleClassifier": "classlabels_int64s"}
"""Attributes of labels that are not named as others."""
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
        model = _with_arrays(_read_file(Path(source)))
    elif isinstance(source, bytes | bytearray | memoryview):
        model = _with_arrays(parse_model(bytes(source)))
        _check(model, "the bytes")
    elif isinstance(source, ir.Model):
        model = source
    elif isinstance(getattr(source, "model", None), ir.Model):
        model = source.model
    elif type(source).__name__ == "ModelProto":
        model = deserialized(source)
    else:
        raise ArgumentError(f"from_onnx takes {_KINDS}; got {type(source).__name__}")
    _warn_of_maps(model)
    maps = model.meta.get(MAPS, {})
    model = _in_order(_converted(model))
    model.meta[MAPS] = maps
    return model


def _with_arrays(model: ir.Model) -> ir.Model:
    """Replace the tensors of the message that a model was read from by arrays, and free it.

    The message would keep a second copy of all weights.
    """
    for graph in model.graphs():
        for value in graph.initializers.values():
            value.const_value = _array_tensor(value.const_value)
    functions = [f.all_nodes() for f in model.functions.values()]
    for node in chain(model.graph.all_nodes(), *functions):
        for name, attribute in list(node.attributes.items()):
            if not attribute.is_ref() and attribute.type == ir.AttributeType.TENSOR:
                tensor = _array_tensor(attribute.as_tensor())
                node.attributes[name] = ir.AttrTensor(name, tensor, attribute.doc_string)
    return model


def _array_tensor(tensor: Any) -> Any:
    if not isinstance(tensor, ir.TensorProtoTensor) or tensor.dtype == ir.DataType.STRING:
        return tensor
    return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)


def _converted(model: ir.Model) -> ir.Model:
    """Return a model in the first opset whose operators are imported, if it is in an older one."""
    opset = model.opset_imports.get("", FIRST_OPSET)
    if opset >= FIRST_OPSET:
        return model
    from onnx.version_converter import ConvertError, convert_version

    nodes = [node for node in model.graph.all_nodes() if node.op_type == "PRelu"]
    old = [_has_slopes_of_channels(node) for node in nodes]
    try:
        converted = convert_version(ir.serde.serialize_model(model), FIRST_OPSET)
    except (ConvertError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise PyTensorONNXError(
            f"the model is of opset {opset}, and onnx cannot convert it to {FIRST_OPSET}: {reason}"
        ) from error
    made = ir.serde.deserialize_model(converted)
    slopes = [node for node in made.graph.all_nodes() if node.op_type == "PRelu"]
    for node, is_old in zip(slopes, old, strict=True):
        node.version = opset if is_old else None
    return made


def _has_slopes_of_channels(node: ir.Node) -> bool:
    """Return whether a node has slopes along the second axis, which the converter leaves as is."""
    slope = node.inputs[1] if node.op_type == "PRelu" else None
    return slope is not None and (slope.const_value is None or slope.const_value.size != 1)


def _read_file(path: Path) -> ir.Model:
    model = (read_apart(path) if path.is_file() else None) or read_model_file(path)
    _check(model, str(path))
    folder = path.parent.resolve()
    for file in weight_files(model, path):
        if not file.resolve().is_relative_to(folder):
            raise PyTensorONNXError(f"{path} has weights in {file}, which is not in its folder")
    return model


def _warn_of_maps(model: ir.Model) -> None:
    if names := ", ".join(sorted(model.meta.get(MAPS, ()))):
        warnings.warn(
            f"{names}: one map for each row in the file, imported as the matrix of the "
            "probabilities; a file of the unchanged graph has the maps again. The converter writes "
            "the matrix with options={'zipmap': False}",
            UserWarning,
            skip_file_prefixes=NOT_OF_USERS,
        )


def cut(model: ir.Model, given: Collection[str], outputs: Sequence[str] | None) -> ir.Model:
    """Return the part of a model between values and outputs, the model itself if that is all of it.

    Parameters
    ----------
    model
        The model.
    given
        Names of inputs and of values within the main graph, which are inputs of the part.
    outputs
        Names of its outputs, those of the model if None.

    Raises
    ------
    ArgumentError
        If the main graph has no value of a name.

    Examples
    --------
    >>> text = "(float[n] x) => (float[n] y) { z = Neg(x) y = Abs(z) }"
    >>> whole = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    >>> [node.op_type for node in cut(whole, [], ["z"]).graph]
    ['Neg']
    >>> [node.op_type for node in cut(whole, ["z"], None).graph]
    ['Abs']
    """
    graph = model.graph
    own = [str(value.name) for value in graph.inputs]
    results = {str(value.name): value for node in graph for value in node.outputs if value.name}
    inner = [name for name in given if name not in own]
    check_names(inner, [*own, *results], "input or value")
    if outputs is not None:
        check_names(outputs, [*results, *own, *map(str, graph.initializers)], "value")
    ends = [str(value.name) for value in graph.outputs] if outputs is None else list(outputs)
    if not inner and ends == [value.name for value in graph.outputs]:
        return model
    if not ends:
        raise ArgumentError("outputs= names no value")
    part = ir.convenience.extract(graph, [*own, *inner], ends)
    read = {value for node in part.all_nodes() for value in node.inputs} | set(part.outputs)
    for value in list(part.inputs):
        if value.name not in given and value not in read:
            part.inputs.remove(value)
    _number_unused_labels(part)
    made = ir.Model(part, ir_version=model.ir_version, functions=list(model.functions.values()))
    made.opset_imports.update(model.opset_imports)
    made.metadata_props.update(model.metadata_props)
    made.meta[MAPS] = model.meta.get(MAPS, {})
    return made


def in_training(model: ir.Model) -> ir.Model:
    """Return a copy whose batch norms take the statistics of the batch, and return running ones.

    The running statistics are states of the copy, as a file of this package has them.
    """
    copy = model.clone()
    graph = copy.graph
    pairs = dict(state_pairs(copy))
    for node in graph:
        is_layer = node.op_type == "BatchNormalization" and not node.domain
        given = node.inputs[3:5] if is_layer else ()
        statistics = [v for v in given if v is not None and v.const_value is not None]
        if len(statistics) < 2:
            continue
        node.attributes.add(ir.AttrInt64("training_mode", 1))
        if any(v.name in pairs for v in statistics):  # a layer that is applied twice
            continue
        node.resize_outputs(3)
        for value, result in zip(statistics, node.outputs[1:], strict=True):
            result.name = f"{value.name}_next"
            result.type, result.shape = value.type, value.shape
            pairs[str(value.name)] = result.name
            graph.outputs.append(result)
            if not value.is_graph_input():
                graph.inputs.append(value)
    copy.metadata_props["state"] = json.dumps(pairs)
    return copy


def _number_unused_labels(graph: ir.Graph) -> None:
    """Replace labels that are strings by integers in classifiers whose labels nothing takes."""
    for node in graph.all_nodes():
        strings = node.attributes.get("classlabels_strings")
        label = node.outputs[0] if node.domain == MACHINE_LEARNING and node.outputs else None
        if strings is None or not strings.value or label is None:
            continue
        if not label.uses() and not label.is_graph_output():
            number_labels(node)


def number_labels(node: ir.Node) -> None:
    """Replace the labels of a classifier that are strings by their positions."""
    strings = node.attributes.pop("classlabels_strings")
    name = _INTEGER_LABELS.get(node.op_type, "classlabels_ints")
    node.attributes.add(ir.AttrInt64s(name, range(len(strings.value))))


def check_names(names: Iterable[str], known: Collection[str], kind: str) -> None:
    """Raise for a name that a model does not have.

    Raises
    ------
    ArgumentError
        With the nearest names, or the first ones.
    """
    for name in names:
        if name not in known:
            few = ", ".join([*list(known)[:20], *["…"] * (len(known) > 20)])
            advice = did_you_mean(name, known, f"it has {few or 'none'}")
            raise ArgumentError(f"the model has no {kind} {name}: {advice}")


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
