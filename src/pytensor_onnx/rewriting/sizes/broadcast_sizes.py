"""Choose the size to which several sizes broadcast pair by pair.

PyTensor takes the largest element of a vector of the sizes, without ones. A choice between two
sizes that are known to be equal is dropped.
"""

from functools import reduce

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.raise_op import Assert
from pytensor.scalar.basic import Abs, Switch
from pytensor.tensor.basic import MakeVector, switch
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.extra_ops import broadcast_shape
from pytensor.tensor.math import Max, eq, or_
from pytensor.tensor.type import lscalar


def _broadcast_assert() -> Assert:
    """Return the Op that asserts in PyTensor that sizes broadcast."""
    shapes = [(lscalar(),), (lscalar(),)]
    (size,) = broadcast_shape(*shapes, arrays_are_shapes=True, allow_runtime_broadcast=True)
    return size.owner.op


_BROADCAST_ASSERT = _broadcast_assert()


@node_rewriter([Assert])
def choose_sizes_in_pairs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the broadcast size of several sizes by choices between two."""
    sizes = _broadcast_sizes(node.inputs[0]) if node.op == _BROADCAST_ASSERT else None
    if sizes is None:
        return None
    conditions = []

    def chosen(first: Variable, second: Variable) -> Variable:
        conditions.append(or_(or_(eq(first, 1), eq(second, 1)), eq(first, second)))
        return switch(eq(first, 1), second, first)

    result = node.op(reduce(chosen, sizes), *conditions)
    copy_stack_trace(node.outputs[0], result)
    return [result]


def _broadcast_sizes(largest: Variable) -> list[Variable] | None:
    """Return the sizes whose largest, without ones, a variable is; None for other variables."""
    maximum = _operands(largest, Elemwise, Abs)
    marked = _operands(maximum[0], Max) if maximum else None
    choice = _operands(marked[0], Elemwise, Switch) if marked else None
    made = choice[2].owner if choice else None
    if made is None or not isinstance(made.op, MakeVector):
        return None
    return list(made.inputs)


def _operands(
    variable: Variable, op_class: type, scalar_class: type | None = None
) -> list[Variable] | None:
    node = variable.owner
    if node is None or not isinstance(node.op, op_class):
        return None
    if scalar_class and not isinstance(getattr(node.op, "scalar_op", None), scalar_class):
        return None
    return list(node.inputs)
