"""Lower conversions of encoded values: the value in the model is the list of its tensors."""

from collections.abc import Sequence

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.encoded import Decode, Encode

Tensors = ir.Value | Sequence[ir.Value]


@onnx_funcify.register(Decode)
def lower_decode(op: Decode, node: Apply, build: Builder, *tensors: ir.Value) -> list[Tensors]:
    """Return the tensors as one value, which an Op without a rewrite takes."""
    return [tensors if len(tensors) > 1 else tensors[0]]


@onnx_funcify.register(Encode)
def lower_encode(op: Encode, node: Apply, build: Builder, value: Tensors) -> Sequence[ir.Value]:
    """Return the tensors that encode the value."""
    return [value] if isinstance(value, ir.Value) else value
