"""Replace products with diagonal and selection matrices by scalings and indexing, in two passes.

PyTensor runs these rewrites repeatedly among all others of the canonical form. Its knowledge of
each matrix is invalidated by every earlier change, which takes a time that is quadratic in the size
of a network. One pass before and one after find as much in linear time.
"""

from pytensor.graph.basic import Apply
from pytensor.tensor.rewriting.linalg.products import selection_dot_to_indexing
from pytensor.tensor.rewriting.math import dot_diag_to_elemwise

from pytensor_onnx.rewriting.guards.arithmetic import may_fit
from pytensor_onnx.rewriting.guards.guarded import guarded


def fits_and_has_elements(node: Apply) -> bool:
    """Return whether operands fit and have elements: PyTensor searches a selection for its ones."""
    return may_fit(node) and not any(0 in x.type.shape for x in node.inputs)


multiply_by_structure = [
    guarded(rewrite, fits_and_has_elements)
    for rewrite in (dot_diag_to_elemwise, selection_dot_to_indexing)
]
