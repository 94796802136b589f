"""Files without the weights of their models, which are inputs there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.requests.descriptions import describe

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
