"""Files of models and weights."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.encodings.registry import tensor_constant
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError, choose_of
from pytensor_onnx.exporting.program.converting import convert_graph, weights_of
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.requests.output_names import check_file
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.graph.weights import is_large
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx_scoring.exact_casts import exactly, first_changed

METADATA = "weights"
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


def write_model(path: str | os.PathLike, model: ir.Model) -> Path:
    """Write a model to a file, which appears complete or not at all.

    Parameters
    ----------
    path
        The file. Weights above 2 GB go to a second file beside it, ``<name>.data``.
    model
        The model.

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
        else:
            ir.save(model, file)
        os.replace(file, target)
    return target
