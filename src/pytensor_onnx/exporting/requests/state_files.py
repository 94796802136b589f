"""Variables that a graph updates, and files of their values."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.requests.output_names import check_file

IR_VERSION = 10


@dataclass
class State:
    """A shared variable that the graph updates: an input with a default, and an output.

    Attributes
    ----------
    name, next_name
        Names of the input and of the output.
    value
        Value at export.
    """

    name: str
    next_name: str
    value: np.ndarray


def write_state(path: str | os.PathLike, values: Mapping[str, np.ndarray], opset: int) -> Path:
    """Write named arrays to a file.

    Parameters
    ----------
    path
        A file ending in ``.npz``, for NumPy, or in ``.onnx``: a model without inputs whose outputs
        are the arrays, for any ONNX runtime, in a browser too.
    values
        The arrays.
    opset
        Version of the standard operator set of an ``.onnx`` file.

    Raises
    ------
    ArgumentError, MissingFolderError
        If the name has another ending, or the folder does not exist.
    """
    check_state_file(path)
    file = Path(path)
    if file.suffix == ".npz":
        np.savez(file, **dict(values))  # type: ignore[arg-type]
    else:
        ir.save(_model_of(values, opset), file)
    return file


def read_state(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read the named arrays of a file of `write_state`."""
    file = Path(path)
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            return dict(arrays)
    from pytensor_onnx.running.session import Session

    session = Session(file)
    return dict(zip(session.output_names, session.run({}), strict=True))


def values_as_text(states: Iterable[State]) -> str:
    """Return the values of states as a JSON object, with the bytes of each array in base64.

    Examples
    --------
    >>> values_as_text([State("n", "n_next", np.int32(1))])
    '{"n": {"dtype": "int32", "shape": [], "data": "AQAAAA=="}}'
    """
    arrays = {state.name: np.asarray(state.value) for state in states}
    return json.dumps(
        {
            name: {
                "dtype": array.dtype.name,
                "shape": array.shape,
                "data": b64encode(array.tobytes()).decode(),
            }
            for name, array in arrays.items()
        }
    )


def values_of_text(text: str) -> dict[str, np.ndarray]:
    """Return the arrays of a text of `values_as_text`, by name."""
    return {
        name: np.frombuffer(b64decode(entry["data"]), entry["dtype"]).reshape(entry["shape"]).copy()
        for name, entry in json.loads(text).items()
    }


def check_state_file(
    path: str | os.PathLike | None, model_path: str | os.PathLike | None = None
) -> None:
    """Raise if a state cannot be written to a path, or is to replace the model; None is allowed."""
    check_file(path, "state_path")
    if path is None:
        return
    if Path(path).suffix not in (".npz", ".onnx"):
        raise ArgumentError(
            f"the state goes to a file named *.npz or *.onnx, not {Path(path).name!r}"
        )
    if model_path is not None and Path(path).resolve() == Path(model_path).resolve():
        raise ArgumentError(
            f"path and state_path are both {str(path)!r}: give the state a file of its own"
        )


def _model_of(values: Mapping[str, np.ndarray], opset: int) -> ir.Model:
    initializers, nodes = [], []
    for name, array in values.items():
        tensor = ir.tensor(array, name=f"{name}_initial")
        stored = ir.Value(
            name=tensor.name,
            const_value=tensor,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(array.shape),
        )
        node = ir.node("Identity", [stored])
        output = node.outputs[0]
        output.name, output.type, output.shape = name, stored.type, stored.shape
        initializers.append(stored)
        nodes.append(node)
    outputs = [node.outputs[0] for node in nodes]
    graph = ir.Graph(
        [],
        outputs,
        nodes=nodes,
        initializers=initializers,
        opset_imports={"": opset},
        name="initial_state",
    )
    return ir.Model(graph, ir_version=IR_VERSION, producer_name="pytensor-onnx")
