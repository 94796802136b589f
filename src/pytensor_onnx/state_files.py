"""The values that a model's state starts from, in a file of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.paths import check_file

IR_VERSION = 10


def write_state(path: str | os.PathLike, values: Mapping[str, np.ndarray], opset: int) -> Path:
    """Write arrays under their names.

    Parameters
    ----------
    path
        A file ending in ``.npz``, which NumPy reads, or in ``.onnx``: a model without inputs whose
        outputs are the arrays, which any ONNX runtime reads, in a browser too.
    values
        The arrays.
    opset
        Version of the standard operator set of an ``.onnx`` file.

    Raises
    ------
    ArgumentError, MissingFolderError
        If the name ends in neither, or the folder does not exist.
    """
    check_state_file(path)
    file = Path(path)
    if file.suffix == ".npz":
        np.savez(file, **dict(values))  # type: ignore[arg-type]
    else:
        ir.save(_model_of(values, opset), file)
    return file


def check_state_file(path: str | os.PathLike | None) -> None:
    """Raise unless a state could be written there, or no path is given."""
    check_file(path, "state_path")
    if path is not None and Path(path).suffix not in (".npz", ".onnx"):
        raise ArgumentError(
            f"the state goes to a file named *.npz or *.onnx, not {Path(path).name!r}"
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
