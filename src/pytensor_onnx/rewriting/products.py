"""Rewrites of products."""

from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.basic import zeros
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot, Sum

from pytensor_onnx.ops.products import OuterProductSum
from pytensor_onnx.rewriting.engine.predicates import made_by, only_client
from pytensor_onnx.rewriting.engine.walkers import core_op
from pytensor_onnx.rules import rewrites_nodes

# Inline Einstein sums and Kronecker products, and fold products without elements.
#
# PyTensor inlines most Einstein sums by itself. ONNX has an operator for the others, but a runtime
# may sum integers in double there, or fail at a size of zero; Transpose and MatMul compute the
# same.


@rewrites_nodes(
    [Einsum, KroneckerProduct],
    family="products",
    purpose="conversion",
    identity="einsum(x, y) and kron(x, y) = their inner graphs",
    ensures="Transpose and MatMul only, exact for integers",
)
def inline_products(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the product by its inner graph; the result keeps its name."""
    results = inline_ofg_node(node)
    for old, new in zip(node.outputs, results, strict=True):
        if new.owner is not None and new.name is None:
            new.name = old.name
    return results


@rewrites_nodes(
    [Dot, Blockwise],
    family="products",
    purpose="correctness",
    identity="A @ B = empty",
    requires="a static size of zero, at which ONNX Runtime's optimizer fails",
)
def drop_empty_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a product that has no elements, at which ONNX Runtime's optimizer fails."""
    shape = node.outputs[0].type.shape
    is_product = isinstance(core_op(node.op), Dot)
    if not is_product or None in shape or 0 not in shape:
        return None
    return [zeros(shape, dtype=node.outputs[0].type.dtype)]


# Sum products of matrices over a batch by one product, as gradients of weights are summed.
#
# A layer multiplies each text or sequence of a batch by the same weights. PyTensor's gradient is a
# product for each of them, which are summed afterwards: for 4 texts and weights of 256 x 4096, the
# products take the memory of four gradients. One product of all rows needs none of it.


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
