"""Products: Einstein sums and Kronecker products are opened, and those of nothing are constants.

PyTensor opens most Einstein sums by itself. ONNX has an operator for the others, but a runtime may
sum integers in double there, or fail where a size is zero; Transpose and MatMul are also what it
comes down to.
"""

from pytensor.compile.mode import optdb
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.basic import zeros
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot

from pytensor_onnx.rewriting.query import register_onnx


@node_rewriter([Einsum, KroneckerProduct])
def inline_products(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the product by its inner graph; the result keeps its name."""
    results = inline_ofg_node(node)
    for old, new in zip(node.outputs, results, strict=True):
        if new.owner is not None and new.name is None:
            new.name = old.name
    return results


@register_onnx
@node_rewriter([Dot, Blockwise])
def drop_empty_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a product that is known to have no elements, which ONNX Runtime fails to optimise."""
    shape = node.outputs[0].type.shape
    is_product = isinstance(getattr(node.op, "core_op", node.op), Dot)
    if not is_product or None in shape or 0 not in shape:
        return None
    return [zeros(shape, dtype=node.outputs[0].type.dtype)]


# After PyTensor's own rewrites of Einsum, which find a better order where they know the sizes.
optdb["specialize"].register(inline_products.__name__, inline_products, "onnx")
