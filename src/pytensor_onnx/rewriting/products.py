"""Einstein sums and Kronecker products are opened into products of matrices and sums.

PyTensor opens most Einstein sums by itself. ONNX has an operator for the others, but a runtime may
sum integers in double there, or fail where a size is zero; Transpose and MatMul are also what it
comes down to.
"""

from pytensor.compile.mode import optdb
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.linalg.products import KroneckerProduct


@node_rewriter([Einsum, KroneckerProduct])
def inline_products(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the product by its inner graph; the result keeps its name."""
    results = inline_ofg_node(node)
    for old, new in zip(node.outputs, results, strict=True):
        if new.owner is not None and new.name is None:
            new.name = old.name
    return results


# After PyTensor's own rewrites of Einsum, which find a better order where they know the sizes.
optdb["specialize"].register(inline_products.__name__, inline_products, "onnx")
