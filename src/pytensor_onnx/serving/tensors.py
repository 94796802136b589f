"""Tensors of a file as servers describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from pytensor_onnx import native
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.model_reading import stored_mapping
from pytensor_onnx_scoring.interface import BATCH_AXIS, FEATURE_NAMES

Dim = int | str | None

_DATATYPES = {
    ir.DataType.BOOL: "BOOL",
    ir.DataType.FLOAT16: "FP16",
    ir.DataType.FLOAT: "FP32",
    ir.DataType.DOUBLE: "FP64",
    ir.DataType.STRING: "BYTES",
    **{ir.DataType[f"INT{bits}"]: f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{ir.DataType[f"UINT{bits}"]: f"UINT{bits}" for bits in (8, 16, 32, 64)},
}
"""The datatypes of the Open Inference Protocol (KServe V2)."""


@dataclass(frozen=True)
class ServedTensor:
    """An input or output of a file.

    Attributes
    ----------
    name, datatype, shape
        Its name, its datatype in the Open Inference Protocol, and the sizes or names of its axes.
    labels
        Names of its columns, if the file has them.
    """

    name: str
    datatype: str
    shape: tuple[Dim, ...]
    labels: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[int]:
        """The sizes of the axes, −1 for any, as servers want them: of one element at least one."""
        return [dim if isinstance(dim, int) else -1 for dim in self.shape] or [1]


@dataclass(frozen=True)
class ServedModel:
    """The interface of a file.

    Attributes
    ----------
    inputs, outputs
        Its tensors; inputs with a default are left out, as servers give all inputs.
    rows
        Whether the first axis of each tensor has the rows.
    """

    inputs: tuple[ServedTensor, ...]
    outputs: tuple[ServedTensor, ...]
    rows: bool


def served_model(model: ir.Model) -> ServedModel:
    """Return the interface of a model.

    Raises
    ------
    PyTensorONNXError
        If a tensor has no rank, or a dtype that servers lack, or the model has regions.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.matrix("x", shape=(None, 3))
    >>> program = export_onnx([x], {"y": x.sum(axis=1)})
    >>> served_model(program.model).outputs
    (ServedTensor(name='y', datatype='FP64', shape=('x_dim0',), labels=()),)
    """
    native.refuse_regions(model)
    graph, metadata = model.graph, model.metadata_props
    stored = stored_mapping(metadata, FEATURE_NAMES)
    labels = {name: texts for name, texts in stored.items() if isinstance(texts, list)}
    values = [v for v in graph.inputs if v.name not in graph.initializers]
    inputs = tuple(_tensor(value, labels.get(str(value.name), ())) for value in values)
    outputs = tuple(_tensor(value, labels.get(str(value.name), ())) for value in graph.outputs)
    return ServedModel(inputs, outputs, _has_rows((*inputs, *outputs), metadata.get(BATCH_AXIS)))


def _tensor(value: ir.Value, labels: Sequence[str]) -> ServedTensor:
    is_tensor = isinstance(value.type, ir.TensorType)
    if not is_tensor or value.dtype not in _DATATYPES or value.shape is None:
        raise PyTensorONNXError(
            f"{value.name} has the type {value.type}, which servers cannot exchange: export the "
            "model with tensors of known rank, and cast outputs to another dtype"
        )
    dims = (dim if isinstance(dim, int) else dim.value for dim in value.shape)
    return ServedTensor(str(value.name), _DATATYPES[value.dtype], tuple(dims), tuple(labels))


def _has_rows(tensors: Sequence[ServedTensor], rows: str | None) -> bool:
    first = {tensor.shape[0] if tensor.shape else 1 for tensor in tensors}
    if rows:
        return first == {rows}
    return len(first) == 1 and not isinstance(first.pop(), int)
