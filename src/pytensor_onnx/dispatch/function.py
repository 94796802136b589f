"""Calls of model-local functions that are defined by PyTensor expressions."""

from collections.abc import Callable, Sequence

import onnx_ir as ir
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import convert_inner
from pytensor_onnx.functions.registry import DEFINITIONS, Definition


def call_definition(
    op_type: type[Op], definition: Definition, onnx: Builder, inputs: Sequence[ir.Value]
) -> ir.Value:
    """Call the function that a PyTensor expression defines, once for each dtype.

    Parameters
    ----------
    op_type
        The Op that is defined; the function has its name.
    definition
        Elementwise expression over 0-d tensors.
    onnx
        Builder that receives the call.
    inputs
        Arguments, float32 or float64; float16 is computed in float32.
    """
    if inputs[0].dtype == ir.DataType.FLOAT16:
        wide = [onnx.cast(x, "float32") for x in inputs]
        return onnx.cast(call_definition(op_type, definition, onnx, wide), "float16")

    def body(inner: Builder, *arguments: ir.Value) -> ir.Value:
        return convert_inner(expression(definition, arguments), inner, arguments)[0]

    return onnx.call(op_type.__name__, body, *inputs, source=definition)


def expression(definition: Definition, arguments: Sequence[ir.Value]) -> FunctionGraph:
    """Return the graph of a definition for arguments of these dtypes, as it is written."""
    symbols = [tensor(dtype=str(x.dtype.numpy()), shape=()) for x in arguments if x.dtype]
    return FunctionGraph(symbols, [definition(*symbols)], clone=False)


def decompositions() -> dict[str, Callable[..., ir.Value]]:
    """Return, for the operators of ONNX that a definition exists for, what calls the definition."""
    from pytensor_onnx.dispatch.scalar import OPERATORS

    def call(op_type: type[Op]) -> Callable[..., ir.Value]:
        return lambda onnx, *inputs: call_definition(op_type, DEFINITIONS[op_type], onnx, inputs)

    return {
        operator: call(op_type) for op_type, operator in OPERATORS.items() if op_type in DEFINITIONS
    }
