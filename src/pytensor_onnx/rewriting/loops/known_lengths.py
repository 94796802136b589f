"""Infer the lengths of sequences and buffers of loops from the graph."""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import basic as ps
from pytensor.tensor.basic import Alloc, AllocEmpty, ARange
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.loops.loop_check_ops import StepCount
from pytensor_onnx.rewriting.engine.predicates import is_integer
from pytensor_onnx.rewriting.shape.integer_conversions import keeps_integer


def has_length(fgraph: FunctionGraph, sequence: Variable, n_steps: Variable) -> bool:
    """Return whether a sequence is known to have one element for each step."""
    static = sequence.type.shape[0]
    if isinstance(n_steps, Constant):
        return static == int(n_steps.data)
    node = sequence.owner
    if node is not None and isinstance(node.op, ARange):
        start, stop, step = map(unwrapped, node.inputs)
        from_zero = is_integer(start, 0)
        by_one = is_integer(step, 1)
        return from_zero and by_one and are_equal(stop, n_steps)
    if node is not None and _is_cut_to_shorter(node, n_steps):
        return True
    return are_equal(unwrapped(fgraph.shape_feature.get_shape(sequence, 0)), n_steps)


def _is_cut_to_shorter(node: Apply, n_steps: Variable) -> bool:
    """Return whether a node cuts an array to the length of another, if shorter, for all steps."""
    shorter = n_steps.owner
    if not isinstance(node.op, Subtensor) or node.op.idx_list != (slice(None, 0, None),):
        return False
    if shorter is None or not isinstance(getattr(shorter.op, "scalar_op", None), ps.Minimum):
        return False
    array, stop = node.inputs
    sizes = [unwrapped(size).owner for size in (*shorter.inputs, stop)]
    if len(sizes) != 3 or any(size is None or not isinstance(size.op, Shape_i) for size in sizes):
        return False
    stops = [size for size in shorter.inputs if are_equal(unwrapped(size), unwrapped(stop))]
    own = [size.owner for size in map(unwrapped, shorter.inputs) if size not in stops]
    return len(stops) == 1 and own[0].op.i == 0 and own[0].inputs[0] is array


def are_equal(first: Variable, second: Variable) -> bool:
    """Return whether two sizes are one variable, or sizes of one variable along one axis."""
    if first is second:
        return True
    a, b = first.owner, second.owner
    same_size = a is not None and b is not None and isinstance(a.op, Shape_i) and a.op == b.op
    return same_size and a.inputs[0] is b.inputs[0]


def allocated_length(buffer: Variable) -> Variable | None:
    """Return the allocated length of a buffer, which may have been written to."""
    node = buffer.owner
    while node is not None and isinstance(node.op, IncSubtensor):
        node = node.inputs[0].owner
    if node is None:
        return None
    if isinstance(node.op, AllocEmpty):
        return node.inputs[0]
    if isinstance(node.op, Alloc):
        return node.inputs[1]
    if isinstance(node.op, Subtensor) and node.op.idx_list == (slice(None, None, 0),):
        return allocated_length(node.inputs[0]) if is_integer(node.inputs[1], -1) else None
    return None


def is_sum(size: Variable, n_steps: Variable, more: int) -> bool:
    """Return whether a size is the number of steps plus a constant."""
    size = unwrapped(size)
    if isinstance(size, Constant) and isinstance(n_steps, Constant):
        return int(size.data) == int(n_steps.data) + more
    node = size.owner
    if node is None or len(node.inputs) != 2:
        return False
    if not isinstance(getattr(node.op, "scalar_op", node.op), ps.Add):
        return False
    first, second = map(unwrapped, node.inputs)
    return any(
        is_integer(a, more) and are_equal(b, n_steps) for a, b in ((first, second), (second, first))
    )


def unwrapped(variable: Variable) -> Variable:
    """Strip checks and integer conversions that preserve the value."""
    while variable.owner is not None and (
        isinstance(variable.owner.op, StepCount) or keeps_integer(variable.owner)
    ):
        (variable,) = variable.owner.inputs
    return variable


def first_row(buffer: Variable) -> TensorVariable:
    """Return the first row of a buffer, without allocating the buffer if possible."""
    node = buffer.owner
    if node is None or not isinstance(node.op, IncSubtensor) or not node.op.set_instead_of_inc:
        return buffer[:1]
    empty, rows = node.inputs[:2]
    is_whole = empty.owner is not None and isinstance(empty.owner.op, AllocEmpty)
    if not is_whole or rows.type.shape[:1] != (1,) or rows.type.ndim != buffer.type.ndim:
        return buffer[:1]
    pairs = zip(rows.type.broadcastable[1:], buffer.type.broadcastable[1:], strict=True)
    if not any(one and not other for one, other in pairs):
        return rows
    return pt.alloc(rows, 1, *empty.owner.inputs[1:])
