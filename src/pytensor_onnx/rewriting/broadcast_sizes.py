"""The size that two or more sizes broadcast to is chosen pair by pair.

PyTensor makes a vector of the sizes, and takes its largest element after a detour that leaves ones
out. Where two sizes are known to be equal, nothing is left of a choice between them.
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

from pytensor_onnx.rewriting.query import register_onnx


def _broadcast_assert() -> Assert:
    """Return the Op by which PyTensor asserts that sizes broadcast."""
    shapes = [(lscalar(),), (lscalar(),)]
    (size,) = broadcast_shape(*shapes, arrays_are_shapes=True, allow_runtime_broadcast=True)
    return size.owner.op


_BROADCAST_ASSERT = _broadcast_assert()


@register_onnx
@node_rewriter([Assert])
def choose_sizes_in_pairs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the size that sizes broadcast to by choices between two."""
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
    """Return the sizes of which a variable is the largest after ones were made negative."""
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
