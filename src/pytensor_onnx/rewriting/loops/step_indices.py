"""Mark indices that differ between the steps of a loop, before the loop becomes a batched graph.

An error of such an index then names the loop. PyTensor would replace an index that counts the
elements of another array by a slice; but a slice ends where its array does, and does not fail.
"""

from collections.abc import Mapping

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import ARange, scalar_from_tensor, tensor_from_scalar
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    IncSubtensor,
    unflatten_index_variables,
)
from pytensor.tensor.type import TensorType, integer_dtypes

from pytensor_onnx.ops.loops.loop_check_ops import INDEXING, StepIndex
from pytensor_onnx.rewriting.engine.predicates import integer_of, made_by
from pytensor_onnx.rewriting.loops.known_lengths import are_equal, unwrapped

_WRITING = (IncSubtensor, AdvancedIncSubtensor)


def mark_indices(
    fgraph: FunctionGraph,
    inner: FunctionGraph,
    elements: Mapping[Variable, Variable],
    constants: Mapping[Variable, Variable],
    loop: str,
) -> None:
    """Mark the indices of the inner graph of a loop that depend on its sequences.

    Parameters
    ----------
    fgraph
        The graph around the loop, with its shape inference.
    inner
        The inner graph, which is changed.
    elements, constants
        The outer sequences and outer variables by the inner variable of each.
    loop
        Name of the loop.
    """
    for node in inner.toposort():
        if not isinstance(node.op, INDEXING):
            continue
        array, *inputs = node.inputs[:1] + node.inputs[1 + isinstance(node.op, _WRITING) :]
        entries = unflatten_index_variables(inputs, node.op.idx_list)
        for axis, entry in enumerate(entries):
            if isinstance(entry, slice) or entry.type.dtype not in integer_dtypes:
                continue
            if set(elements).isdisjoint(ancestors([entry])):
                continue
            whole = constants.get(array)
            sequence = elements.get(unwrapped(entry))
            if whole is None or sequence is None or not _counts(fgraph, sequence, whole, axis):
                _mark(inner, node, entry, loop)


def _mark(inner: FunctionGraph, node: Apply, entry: Variable, loop: str) -> None:
    if isinstance(entry.type, TensorType):
        marked = StepIndex(loop)(entry)
    else:
        marked = scalar_from_tensor(StepIndex(loop)(tensor_from_scalar(entry)))
    for position, variable in enumerate(node.inputs):
        if variable is entry and position:
            inner.change_node_input(node, position, marked)


def _counts(fgraph: FunctionGraph, sequence: Variable, array: Variable, axis: int) -> bool:
    """Return whether a sequence enumerates the positions along an axis of an array."""
    node = made_by(sequence, ARange)
    if node is None:
        return False
    start, stop, step = map(unwrapped, node.inputs)
    size = unwrapped(fgraph.shape_feature.get_shape(array, axis))
    return (integer_of(start), integer_of(step)) == (0, 1) and are_equal(stop, size)
