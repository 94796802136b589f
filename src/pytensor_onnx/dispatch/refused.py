"""Refuse Ops without a lowering, with advice on alternatives."""

import onnx_ir as ir
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify
from pytensor_onnx.graph.builder import Builder

REFUSED = (FromFunctionOp,)


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
