"""Choose the size to which several sizes broadcast pair by pair.

PyTensor takes the largest element of a vector of the sizes, without ones. A choice between two
sizes that are known to be equal is dropped. The number of elements that several vectors select, as
the scores of the labels in a loss, is read from these.
"""

from collections.abc import Iterator
from functools import cache, reduce

from pytensor.graph.basic import Apply, Variable, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import apply_ancestors
from pytensor.raise_op import Assert
from pytensor.scalar.basic import Abs, Switch
from pytensor.tensor.basic import MakeVector, switch
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import broadcast_shape
from pytensor.tensor.math import Max, eq, or_
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor
from pytensor.tensor.type import lscalar

from pytensor_onnx.rewriting.engine.predicates import elementwise, made_by
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Assert],
    family="shape",
    purpose="size",
    identity="max of (a, b, c) without ones = where(a != 1, a, where(b != 1, b, c))",
    requires="PyTensor's check of broadcast sizes",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def choose_sizes_in_pairs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the broadcast size of several sizes by choices between two."""
    sizes = _broadcast_sizes(node.inputs[0]) if node.op == _broadcast_assert() else None
    if sizes is None:
        return None
    if (selected := _size_of_selected(fgraph, node, sizes)) is not None:
        return [selected]
    conditions = []

    def chosen(first: Variable, second: Variable) -> Variable:
        conditions.append(or_(or_(eq(first, 1), eq(second, 1)), eq(first, second)))
        return switch(eq(first, 1), second, first)

    result = node.op(reduce(chosen, sizes), *conditions)
    copy_stack_trace(node.outputs[0], result)
    return [result]


@cache
def _broadcast_assert() -> Assert:
    """Return the Op that asserts in PyTensor that sizes broadcast."""
    shapes = [(lscalar(),), (lscalar(),)]
    (size,) = broadcast_shape(*shapes, arrays_are_shapes=True, allow_runtime_broadcast=True)
    return size.owner.op


def _size_of_selected(fgraph: FunctionGraph, node: Apply, sizes: list[Variable]) -> Variable | None:
    """Return the size of an array that index arrays of these sizes select, None if there is none.

    The selection fails where the sizes do not broadcast.
    """
    read = [node for size in sizes if (node := made_by(size, Shape_i))]
    if not read or not hasattr(fgraph, "shape_feature"):
        return None
    for user in _users(fgraph, read[-1].inputs[0]):
        for axis, lengths in enumerate(_index_lengths(fgraph, user)):
            is_equal = len(lengths) == len(sizes) and equal_computations(lengths, sizes)
            # An array that has the size in its own computation cannot tell it.
            if is_equal and node not in apply_ancestors(user.inputs):
                return Shape_i(axis)(user.outputs[0])
    return None


def _index_lengths(fgraph: FunctionGraph, node: Apply) -> list[list[Variable]]:
    """Return for each axis of the selected elements the sizes of the index arrays, without ones."""
    indices = node.inputs[1:]
    if not isinstance(node.op, AdvancedSubtensor) or node.op.idx_list != (*range(len(indices)),):
        return []
    if any(index.type.dtype == "bool" for index in indices):
        return []
    rank = max(index.type.ndim for index in indices)
    lengths: list[list[Variable]] = [[] for _ in range(rank)]
    for index in indices:
        for i, is_one in enumerate(index.type.broadcastable):
            if not is_one:
                lengths[rank - index.type.ndim + i].append(fgraph.shape_feature.get_shape(index, i))
    return lengths


def _users(fgraph: FunctionGraph, variable: Variable) -> Iterator[Apply]:
    """Yield the nodes that read an array, or the array with other axes."""
    for user, _ in fgraph.clients[variable]:
        yield user
        if isinstance(user.op, DimShuffle):
            yield from (node for node, _ in fgraph.clients[user.outputs[0]])


def _broadcast_sizes(largest: Variable) -> list[Variable] | None:
    """Return the sizes whose largest, without ones, a variable is; None for other variables."""
    magnitude = elementwise(largest, Abs)
    marked = made_by(magnitude.inputs[0], Max) if magnitude else None
    choice = elementwise(marked.inputs[0], Switch) if marked else None
    made = made_by(choice.inputs[2], MakeVector) if choice else None
    return list(made.inputs) if made else None
