"""Powers get a base of the result's dtype before PyTensor turns them into products."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.scalar.basic import Pow
from pytensor.tensor.basic import cast
from pytensor.tensor.elemwise import Elemwise


@node_rewriter([Elemwise])
def widen_base_of_power(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Cast the base of a power to the dtype of the result.

    PyTensor's own rewrites square the base as it is, which wraps around and rounds: a uint8 to the
    power of 2 is an int16, and to the power of 2.0 a float32.
    """
    base, exponent = node.inputs[0], node.inputs[-1]
    dtype = node.outputs[0].type.dtype
    if not isinstance(node.op.scalar_op, Pow) or base.type.dtype == dtype:
        return None
    return [node.op(cast(base, dtype), exponent)]


optdb.register("onnx_widen_powers", dfs_rewriter(widen_base_of_power), "onnx", position=-0.01)
