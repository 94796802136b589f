"""Replace products with selection matrices by indexing, where the inner sizes are equal."""

import numpy as np
import pytensor.tensor as pt
from pytensor.assumptions.core import PERMUTATION, check_assumption
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Eye
from pytensor.tensor.rewriting.linalg.products import selection_dot_to_indexing
from pytensor.tensor.rewriting.linalg.utils import strip_left_expand_dims_and_transpose
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.predicates import made_by

_EQUAL_SIZES = CheckAndRaise(ValueError, "the sizes of a product with a selection matrix differ")


@node_rewriter(selection_dot_to_indexing.tracks())
def index_by_selection(fgraph: FunctionGraph, node: Apply) -> list[TensorVariable] | None:
    """Index by the selection, and by a permutation on the left too.

    PyTensor writes the rows of the other matrix into zeros for a selection on the left, and checks
    no size.

    Examples
    --------
    >>> x = pt.matrix("x", shape=(2, None))
    >>> node = (pt.constant([[0.0, 1.0], [1.0, 0.0]]) @ x).owner
    >>> fgraph = FunctionGraph([x], node.outputs, clone=False)
    >>> [result] = index_by_selection.transform(fgraph, node)
    >>> result.owner.op
    AdvancedSubtensor{idx_list}
    """
    a, b = node.inputs
    result = _permuted(fgraph, a, b, -2)
    if result is None:
        result = _permuted(fgraph, b, a, -1)
    if result is None:
        found = selection_dot_to_indexing.transform(fgraph, node)
        if not found:
            return None
        [result] = found
        if None in (a.type.shape[-1], b.type.shape[-2]):
            result = _EQUAL_SIZES(result, pt.eq(a.shape[-1], b.shape[-2]))
    [out] = node.outputs
    copy_stack_trace(out, result)
    return [out.type.filter_variable(result.astype(out.type.dtype), allow_convert=True)]


def _permuted(
    fgraph: FunctionGraph, matrix: TensorVariable, other: TensorVariable, axis: int
) -> TensorVariable | None:
    """Return the other matrix permuted along an axis, or None if `matrix` is no permutation."""
    core, is_transposed = strip_left_expand_dims_and_transpose(matrix)
    if core.type.ndim != 2 or not check_assumption(fgraph, core, PERMUTATION):
        return None
    sizes: list = [None] * other.type.ndim
    sizes[axis] = core.shape[0]
    other = pt.specify_shape(other, sizes)
    if _is_identity(core):
        return other
    # A row of the product is the row of the other matrix at the one of a row of the permutation.
    order = pt.argmax(core, axis=-1 if (axis == -2) != is_transposed else -2)
    return other[..., order, :] if axis == -2 else other[..., order]


def _is_identity(matrix: TensorVariable) -> bool:
    if isinstance(matrix, Constant):
        return np.array_equal(matrix.data, np.eye(len(matrix.data)))
    return made_by(matrix, Eye) is not None
