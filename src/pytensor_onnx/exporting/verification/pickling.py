"""Pickle conversions and their graphs."""

from __future__ import annotations

import io
import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from pytensor.compile.builders import OpFromGraph
from pytensor.scan.op import Scan

from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.graph.weights import is_large, put_weights_back, without_weights

_OF_LOOPS: dict[str, Any] = {"_fn": None}
_OF_FUNCTIONS: dict[str, Any] = {"_lop_op_cache": {}, "_rop_op_cache": None}
"""Attributes of Ops that PyTensor makes again, with their values before."""


def dump_conversion(conversion: Conversion) -> bytes:
    """Return the pickle of a conversion, with the model as bytes, for `load_conversion`.

    Large weights stand beside the model, as bytes of protobuf end at 2 GB.
    """
    model, weights = conversion.model, dict[str, np.ndarray]()
    if is_large(model):
        model, weights = without_weights(model)
    return dump_graphs(
        {
            **{field.name: getattr(conversion, field.name) for field in fields(conversion)},
            "model": ir.to_proto(model).SerializeToString(),
            "weights": weights,
            "inputs": [value.name for value in conversion.model.graph.inputs],
            "values": {variable: value.name for variable, value in conversion.values.items()},
        }
    )


def load_conversion(data: bytes) -> Conversion:
    """Return a conversion of the bytes of `dump_conversion`."""
    given = pickle.loads(data)
    model = ir.from_proto(onnx.ModelProto.FromString(given["model"]))
    if weights := given.pop("weights"):
        put_weights_back(model, weights, given["inputs"])
    del given["inputs"]
    named = values_by_name(model)
    values = {v: named[name] for v, name in given["values"].items() if name in named}
    return Conversion(**{**given, "model": model, "values": values})


def values_by_name(model: ir.Model) -> dict[str | None, ir.Value]:
    """Return the values of the main graph by their names."""
    graph = model.graph
    named = {value.name: value for value in (*graph.inputs, *graph.initializers.values())}
    named.update((value.name, value) for node in graph for value in node.outputs)
    return named


def dump_graphs(graphs: Any) -> bytes:
    """Return the pickle of graphs, for `pickle.loads`."""
    buffer = io.BytesIO()
    _GraphPickler(buffer).dump(graphs)
    return buffer.getvalue()


class _GraphPickler(pickle.Pickler):
    """Pickler of graphs without compiled functions and gradients, which cannot be pickled."""

    def reducer_override(self, value: Any) -> Any:
        """Rebuild a loop or function from its arguments; leave other values to `pickle`."""
        if isinstance(value, Scan):
            dropped = _OF_LOOPS
        elif isinstance(value, OpFromGraph):
            dropped = _OF_FUNCTIONS
        else:
            return NotImplemented
        make, arguments, state, *_ = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return make, arguments, {**state, **{k: v for k, v in dropped.items() if k in state}}
