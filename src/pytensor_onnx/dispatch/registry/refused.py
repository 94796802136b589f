"""Refuse Ops without a lowering, with advice on alternatives."""

import onnx_ir as ir
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply
from pytensor.tensor.optimize import ScipyWrapperOp

from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.functions.loops.optimize.search_options import Refused
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.site_pages import page

REFUSED = (FromFunctionOp, ScipyWrapperOp)


@onnx_funcify.register(FromFunctionOp)
def refuse_python_function(
    op: FromFunctionOp, node: Apply, build: Builder, *inputs: ir.Value
) -> Lowered:
    """Refuse a function of Python, which no ONNX runtime can call."""
    raise build.unsupported(
        "wrap_py calls a Python function, and ONNX runtimes run no Python",
        "write the function with PyTensor's operations, or as an Op with a lowering of its own "
        f"({page('how-to/add-an-op')}), or compute its result beforehand and give it as an input",
    )


@onnx_funcify.register(ScipyWrapperOp)
def refuse_optimizer(op: ScipyWrapperOp, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Refuse an optimizer without a loop; rewrites have replaced the other optimizers by loops."""
    from pytensor_onnx.functions.loops.optimize.optimizer_calls import search

    try:
        search(node)
    except Refused as refused:
        raise build.unsupported(refused.reason, refused.instead) from None
    raise AssertionError("an optimizer was left that a loop stands for")
