"""Sum products of matrices over a batch by one product, as gradients of weights are summed.

A layer multiplies each text or sequence of a batch by the same weights. PyTensor's gradient is a
product for each of them, which are summed afterwards: for 4 texts and weights of 256 x 4096, the
products take the memory of four gradients. One product of all rows needs none of it.
"""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum

from pytensor_onnx.ops.products import OuterProductSum
from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.engine.predicates import made_by, only_client
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Sum],
    family="products",
    purpose="speed",
    identity="sum(x.mT @ y, batch axes) = flat(x).T @ flat(y)",
    requires="the product has no other use",
    measured="benchmarks/NOTES.md",
)
def sum_batched_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the sum over a batch of products ``x.mT @ y`` by one product.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x, y = pt.tensor("x", shape=(None, None, 8)), pt.tensor("y", shape=(None, None, 16))
    >>> program = export_onnx([x, y], (x.mT @ y).sum(axis=0))
    >>> [node.op_type for node in program.model.graph]
    ['Flatten', 'Flatten', 'Gemm']
    """
    (products,) = node.inputs
    made, rank, dtype = products.owner, products.type.ndim, node.outputs[0].type.dtype
    if made is None or not isinstance(core_op(made.op), Dot) or not only_client(fgraph, products):
        return None
    if rank < 3 or node.op.axis != tuple(range(rank - 2)) or dtype not in ("float32", "float64"):
        return None
    transposed, y = made.inputs
    x = _transposed(transposed)
    if x is None or any(v.type.dtype != dtype for v in (x, y)):
        return None
    if any(1 in v.type.shape[: rank - 2] for v in (x, y)):
        return None
    result = OuterProductSum()(x, y)
    copy_stack_trace(node.outputs[0], result)
    return [result]


def _transposed(x: Variable) -> Variable | None:
    """Return the array whose last two axes a variable transposes."""
    node = made_by(x, DimShuffle)
    return node.inputs[0] if node is not None and node.op.is_matrix_transpose else None
