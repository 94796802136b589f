"""PyTensor as a backend of ONNX: `onnx.backend.base`, for tools that run files by any backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from pytensor_onnx.errors import InputError, PyTensorONNXError
from pytensor_onnx.importing.registry.imported_graph import ImportedGraph, from_onnx
from pytensor_onnx.importing.registry.narrow_types import NARROW, wide_array

__all__ = [
    "PyTensorBackend",
    "PyTensorBackendRep",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


class PyTensorBackendRep(BackendRep):
    """A model that is ready to run.

    The model is imported and compiled at the first run, and again for other values of the inputs
    that the import must know, such as axes, sequences and optional values.

    Attributes
    ----------
    model, mode
        As in `PyTensorBackend.prepare`.
    names
        Names of the inputs in order.
    known
        Names of the inputs whose values are constants of the graph. A run adds the inputs
        whose values the import needs.
    """

    def __init__(self, model: onnx.ModelProto, mode: Any = None, known: Sequence[str] = ()) -> None:
        self.model = model
        self.mode = mode
        made = {value.name for value in model.graph.initializer}
        self.names = [v.name for v in model.graph.input if v.name not in made]
        self.known = list(known)
        self._graphs: dict[Any, Any] = {}

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Return the outputs: arrays, lists of arrays for sequences, None for missing values.

        Parameters
        ----------
        inputs
            Arrays by name, or in the order of the model; a single array for a model of one input.

        Raises
        ------
        InputError
            If there are more inputs than the model has.
        UnsupportedOpError
            If PyTensor has no form of a part of the model.
        """
        arrays = self._by_name(inputs)
        graph, function = self.compiled(arrays)
        with np.errstate(all="ignore"):
            results = iter(function(*(_wide(arrays[str(v.name)]) for v in graph.inputs)))
        return tuple(
            _declared(value, [next(results) for _ in found])
            if isinstance(found, list)
            else None
            if found is None
            else _declared(value, next(results))
            for value, found in zip(self.model.graph.output, graph.outputs, strict=True)
        )

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
        if len(given) > len(self.names):
            raise InputError(f"the model has {len(self.names)} inputs; got {len(given)}")
        return dict(zip(self.names, given, strict=False))

    def compiled(self, arrays: Mapping[str, Any]) -> tuple[ImportedGraph, Any]:
        """Return the graph and the compiled function for inputs, some of whose values it needs.

        Parameters
        ----------
        arrays
            The inputs by name.

        Raises
        ------
        UnsupportedOpError
            If PyTensor has no form of a part of the model.
        """
        while True:
            given = {name: arrays.get(name) for name in self.known}
            key = repr([(name, _key(value)) for name, value in given.items()])
            if key in self._graphs:
                return self._graphs[key]
            try:
                graph = from_onnx(self.model, inputs=given)
            except PyTensorONNXError as error:
                wanted = [n for n in self.names if n not in given and f"{n!r}: " in str(error)]
                if not wanted:
                    raise
                self.known += wanted
                continue
            outputs = [v for v in graph.outputs if v is not None]
            flat = [v for found in outputs for v in (found if isinstance(found, list) else [found])]
            function = pytensor.function(
                graph.inputs, flat, mode=self.mode, on_unused_input="ignore"
            )
            self._graphs[key] = graph, function
            return graph, function


def _key(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_key(item) for item in value]
    return None if value is None else (value.dtype.name, value.shape, value.tobytes())


def _wide(array: Any) -> np.ndarray:
    return wide_array(np.asarray(array))


def _declared(value: onnx.ValueInfoProto, found: Any) -> Any:
    """Return an output in the dtype of the file, where PyTensor has a wider one."""
    if isinstance(found, list) or value.type.HasField("sequence_type"):
        return list(found)
    dtype = ir.DataType(value.type.tensor_type.elem_type)
    return found.astype(NARROW[dtype]) if dtype in NARROW else found


class PyTensorBackend(Backend):
    """PyTensor as a backend of ONNX, with the functions of `onnx.backend.base.Backend`.

    Examples
    --------
    >>> import numpy as np, onnx
    >>> text = "m (float[n] x) => (float[n] y) { y = Neg(x) }"
    >>> model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    >>> PyTensorBackend.run_model(model, [np.float32([1, 2])])
    (array([-1., -2.], dtype=float32),)
    """

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto,
        device: str = "CPU",
        *,
        mode: Any = None,
        known: Sequence[str] = (),
        **_: Any,
    ) -> PyTensorBackendRep:
        """Return a model that is ready to run.

        Parameters
        ----------
        model
            The model.
        device
            Must be the processor.
        mode
            Mode of PyTensor, its default mode unless given.
        known
            Names of further inputs whose values are constants of the compiled graph. Mode JAX needs
            the inputs that give sizes.
        """
        return PyTensorBackendRep(model, mode, known)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Return the outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        *,
        opset_version: int | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Return the results of one node.

        Parameters
        ----------
        node, inputs, device
            The node, and the arrays of its operands.
        outputs_info
            Not needed.
        opset_version
            Version of the operators, that of the installed onnx unless given.
        kwargs
            As in `prepare`.
        """
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = dict(zip(names, inputs, strict=False))
        infos = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype), np.shape(a)
            )
            for name, a in arrays.items()
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        version = opset_version or onnx.defs.onnx_opset_version()
        opsets = [onnx.helper.make_opsetid("", version)]
        if node.domain:
            opsets.append(onnx.helper.make_opsetid(node.domain, 1))
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        return cls.run_model(onnx.helper.make_model(graph, opset_imports=opsets), arrays, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether the device is the processor."""
        return Device(device).type == DeviceType.CPU


prepare = PyTensorBackend.prepare
run_model = PyTensorBackend.run_model
run_node = PyTensorBackend.run_node
supports_device = PyTensorBackend.supports_device
