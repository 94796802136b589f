"""Weights of a model: their size, their files, and models that are too large for one message."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError

LARGEST_MESSAGE = 2**31 - 2**20
"""Bytes of weights up to which a model is one message of protobuf, which ends at 2 GB."""

_SMALL = 2**10
"""Elements of weights that stay in a model, as its shapes may depend on them."""


def weight_bytes(model: ir.Model) -> int:
    """Return the size of the constants of a model, in bytes."""
    return sum(
        value.const_value.nbytes
        for value in model.graph.initializers.values()
        if value.const_value is not None
    )


def is_large(model: ir.Model) -> bool:
    """Return whether the weights of a model do not fit into one message with it."""
    return weight_bytes(model) > LARGEST_MESSAGE


def without_weights(model: ir.Model) -> tuple[ir.Model, dict[str, np.ndarray]]:
    """Return a copy of a model whose large weights are inputs, and their values.

    A runtime reads such inputs where they are, and its model is one message.

    Examples
    --------
    >>> w = ir.val("w", dtype=ir.DataType.FLOAT, shape=(2000,))
    >>> w.const_value = ir.tensor(np.ones(2000, "float32"))
    >>> graph = ir.Graph([], [w], nodes=[], initializers=[w], opset_imports={"": 21})
    >>> model, weights = without_weights(ir.Model(graph, ir_version=10))
    >>> [value.name for value in model.graph.inputs], weights["w"].shape
    (['w'], (2000,))
    """
    copy = model.clone()
    inputs, weights = copy.graph.inputs, {}
    for name, value in list(copy.graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.size <= _SMALL:
            continue
        weights[name] = tensor.numpy()
        is_input = value.is_graph_input()
        del copy.graph.initializers[name]
        value.const_value = None
        if not is_input:
            inputs.append(value)
    return copy, weights


def put_weights_back(
    model: ir.Model, weights: Mapping[str, np.ndarray], inputs: Sequence[str | None]
) -> None:
    """Store the weights of `without_weights` in its model again, which keeps the given inputs.

    Examples
    --------
    >>> w = ir.val("w", dtype=ir.DataType.FLOAT, shape=(2,))
    >>> model = ir.Model(ir.Graph([w], [w], nodes=[], opset_imports={"": 21}), ir_version=10)
    >>> put_weights_back(model, {"w": np.ones(2, "float32")}, inputs=[])
    >>> list(model.graph.initializers), len(model.graph.inputs)
    (['w'], 0)
    """
    values = list(model.graph.inputs)
    model.graph.inputs[:] = [value for value in values if value.name in inputs]
    for value in values:
        name = str(value.name)
        if name in weights:
            value.const_value = ir.tensor(weights[name], name=name)
            model.graph.register_initializer(value)


def weight_files(model: ir.Model, file: Path) -> list[Path]:
    """Return the files of the weights of a model that are not in its own file.

    Parameters
    ----------
    model, file
        The model, and the file that it was read from.

    Raises
    ------
    PyTensorONNXError
        If there is no such file, or a pointer of Git LFS stands for it.

    Examples
    --------
    >>> weight_files(ir.Model(ir.Graph([], [], nodes=[]), ir_version=10), Path("model.onnx"))
    []
    """
    from pytensor_onnx_scoring.file_kinds import is_pointer

    constants = [value.const_value for value in model.graph.initializers.values()]
    files = sorted({Path(c.path) for c in constants if isinstance(c, ir.ExternalTensor)})
    for path in files:
        if not path.is_file():
            raise PyTensorONNXError(f"{file} has weights in {path}, and there is no such file")
        if is_pointer(path):
            raise PyTensorONNXError(
                f"{file} has weights in {path}, which is a pointer of Git LFS: git lfs pull "
                "downloads the file"
            )
    return files
