"""Products with diagonal and selecting matrices become scalings and indexing, in two passes.

PyTensor has these rewrites run again and again among all others of the canonical form. What they
know of each matrix is then forgotten with every change before it, which takes a time that is
quadratic in the size of a network. One pass before and one after find as much in linear time.
"""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.rewriting.basic import dfs_rewriter
from pytensor.tensor.rewriting.linalg.products import selection_dot_to_indexing
from pytensor.tensor.rewriting.math import dot_diag_to_elemwise

from pytensor_onnx.rewriting.guarded_arithmetic import may_fit
from pytensor_onnx.rewriting.guards import guarded

BEFORE_CANONICAL_FORM, AFTER_CANONICAL_FORM = 0.06, 1.2


def may_be_opened(node: Apply) -> bool:
    """Return whether operands fit and have elements: PyTensor looks for the ones of a selection."""
    return may_fit(node) and not any(0 in x.type.shape for x in node.inputs)


REWRITES = [
    guarded(rewrite, may_be_opened) for rewrite in (dot_diag_to_elemwise, selection_dot_to_indexing)
]

for position in (BEFORE_CANONICAL_FORM, AFTER_CANONICAL_FORM):
    optdb.register(
        f"onnx_structured_products_{position}",
        dfs_rewriter(*REWRITES),
        "onnx",
        position=position,
    )
