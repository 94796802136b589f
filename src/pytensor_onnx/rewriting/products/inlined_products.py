"""Inline Einstein sums and Kronecker products, and fold products without elements.

PyTensor inlines most Einstein sums by itself. ONNX has an operator for the others, but a runtime
may sum integers in double there, or fail at a size of zero; Transpose and MatMul compute the same.
"""

from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import zeros
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot

from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rules import rewrites_nodes


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
