"""Files of models and weights."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx_ir as ir
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.encodings.registry import tensor_constant
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError, choose_of
from pytensor_onnx.exporting.program.converting import convert_graph, weights_of
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.requests.output_names import check_file
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.graph.names import OP, VARIABLE
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.graph.weights import is_large
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx_scoring.exact_casts import exactly, first_changed
from pytensor_onnx_scoring.interface import BATCH_AXIS, ROW_BYTES

METADATA = "weights"
_MAKERS = ("pytensor_onnx_version", "pytensor_version")
"""Metadata of the versions; the field of the producer has the version of this package, too."""
_MADE = re.compile(r"c_(minus_)?[\d.e+-]{4,}(_\d+)?")
"""Names of constants by their values."""
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
_TRANSPOSED = ".T"


def digest(array: np.ndarray) -> str:
    """Return the SHA-256 of an array: of its dtype, shape and values.

    Examples
    --------
    >>> digest(np.zeros(2)) == digest(np.zeros((1, 2)))
    False
    """
    head = f"{array.dtype.str}{list(array.shape)}"
    return hashlib.sha256(head.encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def with_weights_as_inputs(model: ir.Model, weights: Mapping[str, np.ndarray]) -> ir.Model:
    """Return a copy of a model whose named weights are inputs, with their hashes in the metadata.

    Parameters
    ----------
    model
        The model.
    weights
        All weights of the program by name. A weight that was folded into another constant is no
        input; its constant stays in the file, so that the file is valid for these values only.
    """
    copy = model.clone()
    initializers = copy.graph.initializers
    for name, value in list(initializers.items()):
        array, tensor = _stored(name, weights), value.const_value
        if value.is_graph_input() or array is None or tensor is None:
            continue
        if not np.array_equal(tensor.numpy(), array, equal_nan=True):
            continue
        del initializers[name]
        value.const_value = None
        copy.graph.inputs.append(value)
    copy.metadata_props[METADATA] = json.dumps({k: digest(v) for k, v in weights.items()})
    return copy


def without_origins(model: ir.Model) -> ir.Model:
    """Return a copy of a model without the parts that an export adds to an imported file.

    These are Ops and names of nodes, shapes within the graph, and names of axes that had none. A
    file that nobody changed is then no larger than it was.

    Examples
    --------
    >>> text = "m (float[n] x) => (float[n] y) { z = Neg(x) y = Abs(z) }"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    >>> model.graph[0].outputs[0].shape = ir.Shape(["n"])
    >>> without_origins(model).graph[0].outputs[0].shape is None
    True
    """
    copy = model.clone()
    graph = copy.graph
    unnamed = {
        f"{value.name}_dim{i}" for value in graph.inputs for i in range(len(value.shape or ()))
    }
    for value in (*graph.inputs, *graph.outputs):
        dims = dims_of(value) or ()
        kept = [None if any(name in str(dim) for name in unnamed) else dim for dim in dims]
        if value.shape is not None:
            value.shape = ir.Shape(kept)
    if copy.metadata_props.get(BATCH_AXIS) in unnamed:
        del copy.metadata_props[BATCH_AXIS]
    for key in (*_MAKERS, ROW_BYTES):
        copy.metadata_props.pop(key, None)
    inner = [value for node in nodes_of_model(copy) for value in node.outputs]
    for value in (*inner, *graph.initializers.values()):
        if not value.is_graph_output() and not value.is_graph_input():
            value.shape = value.type = None
            value.metadata_props.clear()
    for i, node in enumerate(nodes_of_model(copy)):
        for key in (OP, VARIABLE):
            node.metadata_props.pop(key, None)
        name, short = str(node.name), f"n{i}"
        if len(name) > len(short) and name == node.outputs[0].name:
            node.name = short
    _shorten_constants(graph)
    return copy


def _shorten_constants(graph: ir.Graph) -> None:
    """Store integers in as many bytes as they have digits, and shorten names of made constants."""
    taken = {str(value.name) for node in graph.all_nodes() for value in node.outputs}
    taken |= {*graph.initializers, *(str(value.name) for value in graph.inputs)}
    short = (name for i in itertools.count() if (name := f"c{i}") not in taken)
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if _MADE.fullmatch(str(value.name)) and not value.is_graph_input():
            value.name = next(short)
        if tensor is not None and tensor.dtype in _INTEGERS:
            packed = onnx.helper.make_tensor(
                str(value.name), tensor.dtype.value, tensor.shape.numpy(), tensor.numpy().ravel()
            )
            if packed.ByteSize() < tensor.nbytes + len(str(value.name)):
                value.const_value = ir.TensorProtoTensor(packed)


def give_weights(model: ir.Model, weights: Mapping[str, Any] | None, file: Path) -> None:
    """Store weights in a model of `with_weights_as_inputs`.

    Raises
    ------
    ArgumentError
        If weights are missing, unknown, or others than those of the export; the message has all.
    """
    hashes = json.loads(model.metadata_props.pop(METADATA, "{}"))
    given = {name: np.asarray(array) for name, array in (weights or {}).items()}
    problems = [
        f"{name} has other values than at export: replace_weights and save the program again"
        if name in hashes
        else f"the file takes no weight {name!r}"
        for name, array in given.items()
        if hashes.get(name) != digest(array)
    ]
    left = [value for value in model.graph.inputs if _named(str(value.name), hashes) is not None]
    missing = [value for value in left if _named(str(value.name), given) is None]
    problems += [
        f"the weight {describe(value)} is not in the file: give weights={{name: array}}"
        for value in missing
    ]
    if problems:
        raise ArgumentError(f"{file}: {'; '.join(problems)}")
    for value in left:
        array = _stored(str(value.name), given)
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(np.ascontiguousarray(array), name=value.name)
        model.graph.initializers.add(value)


def _named(tensor: str, known: Mapping[str, Any]) -> str | None:
    """Return the name of the weight in a tensor, maybe transposed, or None without a weight."""
    if tensor in known:
        return tensor
    name = tensor.removesuffix(_TRANSPOSED)
    return name if name in known else None


def _stored(tensor: str, weights: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the array of a tensor by its name, transposed if the name says so."""
    name = _named(tensor, weights)
    if name is None:
        return None
    return weights[name] if name == tensor else weights[name].T


def replace_weights(conversion: Conversion, arrays: Mapping[str, Any]) -> Conversion:
    """Return the conversion of a graph with other values of its weights.

    The graph is converted again, as constants may have been computed from the weights.

    Raises
    ------
    ArgumentError
        For names that the graph does not have, and arrays that do not fit; the message has all.
    PyTensorONNXError
        If the graph is not known, as for a loaded file.
    """
    if conversion.request is None:
        raise PyTensorONNXError(
            "a file has no PyTensor graph, and constants may have been computed from its weights: "
            "replace them in the exported program, and save it"
        )
    narrowing = conversion.narrowing
    written = narrowing.written if narrowing else conversion.reference
    graph = _with_weights(written, arrays, conversion.model)
    new = convert_graph(graph, conversion.request)
    for key, text in conversion.model.metadata_props.items():
        new.model.metadata_props.setdefault(key, text)
    _take_names(new.model, conversion.model)
    return new


def _with_weights(
    written: FunctionGraph, arrays: Mapping[str, Any], model: ir.Model
) -> FunctionGraph:
    """Return a copy of a graph with arrays in place of some weights."""
    graph, copies = written.clone_get_equiv(check_integrity=False)
    known = weights_of(written)
    hashed = json.loads(model.metadata_props.get("pymc", "{}")).get("data", {})
    problems = []
    for name, given in arrays.items():
        if name not in known:
            problems.append(f"there is no weight {name!r}: {choose_of(name, known)}")
            continue
        array, problem = _fitting(known[name], given)
        if name in hashed:
            problem = f"data of the model, whose hash the file has: export it with {name} as input"
        if problem:
            problems.append(f"{name} is {problem}")
        else:
            old = known[name]
            new = tensor_constant(old.type, array, old.name)
            graph.replace(copies.get(old, old), new, import_missing=True)
    if problems:
        raise ArgumentError("; ".join(problems))
    return graph


def _fitting(weight: Constant, given: Any) -> tuple[np.ndarray, str]:
    """Return an array in the weight's dtype, and a message if the array does not fit."""
    array, own = np.asarray(given), np.asarray(weight.data)
    if array.dtype.kind not in "biuf":
        return own, f"of dtype {own.dtype}, and was given {array.dtype}"
    if array.shape != own.shape:
        return own, f"of shape {list(own.shape)}, and was given {list(array.shape)}"
    converted = exactly(array, own.dtype.name)
    if converted is None:
        _, number = first_changed(array, own.dtype) or ((), "some")
        return own, f'of {own.dtype}, which does not hold {number}: .astype("{own.dtype}")'
    return np.array(converted), ""


def _take_names(model: ir.Model, old: ir.Model) -> None:
    """Give the axes of outputs the names that they have in another model."""
    for value, known in zip(model.graph.outputs, old.graph.outputs, strict=True):
        pairs = zip(dims_of(value) or (), dims_of(known) or (), strict=False)
        value.shape = ir.Shape(
            [b if isinstance(a, str) and isinstance(b, str) else a for a, b in pairs]
        )


def write_model(
    path: str | os.PathLike,
    model: ir.Model,
    parts: Sequence[Callable[[onnx.ModelProto], None]] = (),
) -> Path:
    """Write a model to a file, which appears complete or not at all.

    Parameters
    ----------
    path
        The file. Weights above 2 GB go to a second file beside it, ``<name>.data``.
    model
        The model.
    parts
        Functions that add parts to the message of a model of at most 2 GB.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    check_file(path)
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        file = Path(folder) / target.name
        data = f"{target.name}.data"
        if is_large(model):
            ir.save(model, file, external_data=data)
            os.replace(file.with_name(data), target.with_name(data))
        elif parts:
            proto = ir.to_proto(model)
            for add in parts:
                add(proto)
            onnx.save(proto, file)
        else:
            ir.save(model, file)
        os.replace(file, target)
    return target
