"""Sum rows of zeros in which numbers were written by summing the numbers alone.

The gradient of a cross-entropy writes one number into each row, at the label, and adds the row up
for the gradient of the softmax. A row has as many elements as a language has words.
"""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.tensor.basic import get_underlying_scalar_constant_value, zeros
from pytensor.tensor.extra_ops import broadcast_arrays
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    inc_subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.type import integer_dtypes

SHORTEST = 256
"""Elements of a row from which on their sum takes longer than the operators on the numbers."""


@node_rewriter([Sum])
def sum_written_rows(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the sums of rows of zeros with added numbers by the sums of the numbers.

    The array must have other uses, which check that the numbers are within the rows.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x, labels = pt.tensor("x", shape=(None, 1000)), pt.lvector("labels")
    >>> loss = -pt.special.log_softmax(x, axis=1)[pt.arange(labels.size), labels].sum()
    >>> program = export_onnx([x, labels], pt.grad(loss, x))
    >>> "ReduceSum" in [node.op_type for node in program.model.graph]
    False
    """
    (rows,) = node.inputs
    written, is_reshaped = _as_matrix(rows)
    numbers = _numbers_in_zeros(written)
    if node.op.axis != (rows.type.ndim - 1,) or numbers is None:
        return None
    users = {user for v in (written, rows) for user, _ in fgraph.clients[v]}
    if not users - {node, rows.owner}:
        return None
    added, positions = numbers
    total = inc_subtensor(zeros(written.shape[:1], dtype=added.type.dtype)[positions], added)
    if is_reshaped:
        total = total.reshape(rows.owner.inputs[1][:-1], ndim=rows.type.ndim - 1)
    total = total.astype(node.outputs[0].type.dtype)
    copy_stack_trace(node.outputs[0], total)
    return [total]


def _as_matrix(rows: Variable) -> tuple[Variable, bool]:
    """Return the matrix with the rows of an array, and whether a reshape lies between them."""
    node = rows.owner
    if node is None or not isinstance(node.op, Reshape):
        return rows, False
    matrix = node.inputs[0]
    is_of_rows = matrix.type.ndim == 2 and matrix.type.shape[-1] == rows.type.shape[-1]
    return (matrix, True) if is_of_rows and rows.type.shape[-1] is not None else (rows, False)


def _numbers_in_zeros(matrix: Variable) -> tuple[Variable, Variable] | None:
    """Return the numbers added to a matrix of zeros with long rows, and their rows."""
    node, width = matrix.owner, matrix.type.shape[-1] if matrix.type.ndim == 2 else None
    if node is None or not isinstance(node.op, AdvancedIncSubtensor) or (width or 0) < SHORTEST:
        return None
    base, added, *arrays = node.inputs
    indices = indices_from_subtensor(arrays, node.op.idx_list)
    zero = get_underlying_scalar_constant_value(base, elemwise=False, raise_not_constant=False)
    adds_all = not (node.op.set_instead_of_inc or node.op.ignore_duplicates)
    if not adds_all or zero != 0 or len(indices) != 2:
        return None
    if not all(
        isinstance(i, Variable) and i.type.ndim == 1 and i.type.dtype in integer_dtypes
        for i in indices
    ):
        return None
    rows, _ = broadcast_arrays(*indices)
    return added, rows
