"""Refuse Ops without a lowering, with advice on alternatives."""

import onnx_ir as ir
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d

from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify
from pytensor_onnx.graph.builder import Builder

REFUSED = (FromFunctionOp, Convolve1d, Convolve2d)


@onnx_funcify.register(FromFunctionOp)
def refuse_python_function(
    op: FromFunctionOp, node: Apply, onnx: Builder, *inputs: ir.Value
) -> Lowered:
    """Refuse a function of Python, which no ONNX runtime can call."""
    raise onnx.unsupported(
        "wrap_py calls a Python function, and ONNX runtimes run no Python",
        "write the function with PyTensor's operations, or as an Op with a lowering of its own "
        "(docs/add-an-op.md), or compute its result beforehand and give it as an input",
    )


@onnx_funcify.register(Convolve1d)
@onnx_funcify.register(Convolve2d)
def refuse_convolution(
    op: Convolve1d | Convolve2d, node: Apply, onnx: Builder, *inputs: ir.Value
) -> Lowered:
    """Refuse convolutions of single signals, and point to those of `nn`."""
    if isinstance(op, Convolve1d):
        call = 'nn.conv1d(x[None, None], y[None, None], border_mode="full")[0, 0]'
    else:
        call = 'nn.conv2d(x[None, None], y[None, None], border_mode="full")[0, 0]'
    raise onnx.unsupported(
        f"no lowering is registered for {type(op).__name__}",
        f"use the convolutions of pytensor_onnx.nn, which batch: {call}",
    )
