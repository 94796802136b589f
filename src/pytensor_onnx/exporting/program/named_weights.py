"""The stored arrays of a graph by their names, and other values for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.encodings.array_constants import tensor_constant
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError, choose_of
from pytensor_onnx.exporting.program.converting import convert_graph, weights_of
from pytensor_onnx.exporting.verification.converted_graph import Conversion
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx_scoring.exact_casts import exactly, first_changed


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
