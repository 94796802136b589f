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
from pytensor_onnx.rewriting.engine.predicates import (
    elementwise,
    integer_of,
    made_by,
    reversed_by,
    scalar_op_of,
    size_of,
)
from pytensor_onnx.rewriting.shape.integer_conversions import keeps_integer


def has_length(fgraph: FunctionGraph, sequence: Variable, n_steps: Variable) -> bool:
    """Return whether a sequence is known to have one element for each step."""
    if isinstance(n_steps, Constant):
        return sequence.type.shape[0] == integer_of(n_steps)
    if (counted := made_by(sequence, ARange)) is not None:
        start, stop, step = map(unwrapped, counted.inputs)
        return (integer_of(start), integer_of(step)) == (0, 1) and are_equal(stop, n_steps)
    cut = made_by(sequence, Subtensor)
    if cut is not None and _is_cut_to_shorter(cut, n_steps):
        return True
    return are_equal(unwrapped(fgraph.shape_feature.get_shape(sequence, 0)), n_steps)


def _is_cut_to_shorter(node: Apply, n_steps: Variable) -> bool:
    """Return whether a slice cuts an array to the length of another, if shorter, for all steps."""
    shorter = elementwise(n_steps, ps.Minimum)
    if shorter is None or node.op.idx_list != (slice(None, 0, None),):
        return False
    array, stop = node.inputs
    sizes = [made_by(unwrapped(size), Shape_i) for size in (*shorter.inputs, stop)]
    if len(sizes) != 3 or None in sizes:
        return False
    stops = [size for size in shorter.inputs if are_equal(unwrapped(size), unwrapped(stop))]
    own = [size.owner for size in map(unwrapped, shorter.inputs) if size not in stops]
    return len(stops) == 1 and own[0].op.i == 0 and own[0].inputs[0] is array


def are_equal(first: Variable, second: Variable) -> bool:
    """Return whether two sizes are one variable, or sizes of one variable along one axis."""
    if first is second:
        return True
    size = size_of(first)
    return size is not None and size == size_of(second)


def allocated_length(buffer: Variable) -> Variable | None:
    """Return the allocated length of a buffer, which may have been written to."""
    while (write := made_by(buffer, IncSubtensor)) is not None:
        buffer = write.inputs[0]
    if (allocated := made_by(buffer, AllocEmpty | Alloc)) is not None:
        return allocated.inputs[0 if isinstance(allocated.op, AllocEmpty) else 1]
    whole = reversed_by(buffer.owner)
    return None if whole is None else allocated_length(whole)


def is_sum(size: Variable, n_steps: Variable, more: int) -> bool:
    """Return whether a size is the number of steps plus a constant."""
    size = unwrapped(size)
    number, steps = integer_of(size), integer_of(n_steps)
    if number is not None and steps is not None:
        return number == steps + more
    node = size.owner
    if node is None or not isinstance(scalar_op_of(node.op), ps.Add) or len(node.inputs) != 2:
        return False
    pair = [unwrapped(x) for x in node.inputs]
    return any(integer_of(a) == more and are_equal(b, n_steps) for a, b in (pair, pair[::-1]))


def unwrapped(variable: Variable) -> Variable:
    """Strip checks and integer conversions that preserve the value."""
    while made_by(variable, StepCount) or keeps_integer(variable.owner):
        (variable,) = variable.owner.inputs
    return variable


def first_row(buffer: Variable) -> TensorVariable:
    """Return the first row of a buffer, without allocating the buffer if possible."""
    node = made_by(buffer, IncSubtensor)
    if node is None or not node.op.set_instead_of_inc:
        return buffer[:1]
    empty, rows = node.inputs[:2]
    is_whole = made_by(empty, AllocEmpty) is not None
    if not is_whole or rows.type.shape[:1] != (1,) or rows.type.ndim != buffer.type.ndim:
        return buffer[:1]
    pairs = zip(rows.type.broadcastable[1:], buffer.type.broadcastable[1:], strict=True)
    if not any(one and not other for one, other in pairs):
        return rows
    return pt.alloc(rows, 1, *empty.owner.inputs[1:])
