"""Lengths of loops: known ones, bounds, and checks."""

from collections.abc import Callable
from math import inf

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, AllocEmpty, ARange
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.loops import FirstRows, StepCount
from pytensor_onnx.rewriting.engine.predicates import (
    elementwise,
    integer_of,
    made_by,
    reversed_by,
    scalar_op_of,
    size_of,
)
from pytensor_onnx.rewriting.shape import keeps_integer
from pytensor_onnx.rules import rewrites_nodes


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


type Bounds = tuple[float, float]

_UNKNOWN: Bounds = (-inf, inf)


def bounds_of(size: Variable) -> Bounds:
    """Return the least and the largest value of an integer, as far as its graph tells.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.tensor.shape import Shape_i
    >>> n = Shape_i(0)(pt.vector("x"))
    >>> bounds_of(pt.minimum(n + 1, 1)), bounds_of(n - 1)
    ((1, 1), (-inf, inf))
    """
    size = unwrapped(size)
    if (number := integer_of(size)) is not None:
        return number, number
    if size_of(size):
        return 0, inf
    node = size.owner
    rule = None if node is None else _RULES.get(type(scalar_op_of(node.op)))
    if rule is None or size.type.dtype != "int64":
        return _UNKNOWN
    return rule(*map(bounds_of, node.inputs))


def _add(*terms: Bounds) -> Bounds:
    return sum(low for low, _ in terms), sum(high for _, high in terms)


def _smallest(*sizes: Bounds) -> Bounds:
    return min(low for low, _ in sizes), min(high for _, high in sizes)


def _largest(*sizes: Bounds) -> Bounds:
    return max(low for low, _ in sizes), max(high for _, high in sizes)


_RULES: dict[type, Callable[..., Bounds]] = {
    ps.Add: _add,
    ps.Minimum: _smallest,
    ps.Maximum: _largest,
}


# Check sequence lengths before operations move out of a loop.
#
# Outside of the loop, a sequence of one element would broadcast against the others.

_UP_TO = (slice(None, 0, None),)


@rewrites_nodes(
    [Scan],
    family="loops",
    purpose="correctness",
    identity="scan(f, n, x[:n]) = scan(f, n, x[:n]) where n <= len(x), else an error",
)
def check_lengths(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Check the number of steps, and the lengths of sequences that are cut to it.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, y, n = pt.vector("x"), pt.vector("y"), pt.iscalar("n")
    >>> z = pytensor.scan(
    ...     lambda a, b: a * b, [x, y], n_steps=n, name="products", return_updates=False
    ... )
    >>> pytensor.function([x, y, n], z, mode="ONNX")([1.0, 2.0], [3.0], 2)
    Traceback (most recent call last):
    ValueError: sequence 1 (y) of products ends before its steps do
    """
    op, loop, n_steps = node.op, node.op.name or "scan", unwrapped(node.inputs[0])
    count = node.inputs[0] if _is_length(n_steps) else _checked(fgraph, n_steps, loop)
    checked = {node.inputs[0]: count}
    for i, sequence in enumerate(op.outer_seqs(node.inputs)):
        whole = _sliced_sequence(sequence, n_steps)
        if whole is not None and not _is_long_enough(whole, n_steps):
            checked[sequence] = FirstRows(_description(i, whole.name), loop)(whole, count)
    inputs = [checked.get(x, x) for x in node.inputs]
    if count is not node.inputs[0]:
        inputs = [_with_length(x, node.inputs[0], count) for x in inputs]
    if inputs == node.inputs:
        return None
    outputs = op.make_node(*inputs).outputs
    # The gradient of the loop uses the same rows; other uses of the number keep the unchecked one.
    del checked[node.inputs[0]]
    return checked | dict(zip(node.outputs, outputs, strict=True))


def _checked(fgraph: FunctionGraph, n_steps: Variable, loop: str) -> Variable:
    """Return the checked number of steps, shared with other loops of the same number."""
    clients = [client for client, _ in fgraph.clients.get(n_steps, ())]
    shared = [client.outputs[0] for client in clients if isinstance(client.op, StepCount)]
    return shared[0] if shared else StepCount(loop)(n_steps)


def _with_length(buffer: Variable, n_steps: Variable, count: Variable) -> Variable:
    """Return a buffer that is allocated for the checked number of steps."""
    node = made_by(buffer, IncSubtensor)
    empty = made_by(node.inputs[0], AllocEmpty) if node else None
    if node is None or empty is None:
        return buffer
    size = empty.inputs[0].owner
    if size is None or n_steps not in size.inputs:
        return buffer
    length = size.op(*(count if x is n_steps else x for x in size.inputs))
    allocated = empty.op(length, *empty.inputs[1:])
    return node.op(allocated, *node.inputs[1:])


def _description(position: int, name: str | None) -> str:
    suffix = f" ({name.removesuffix('[0:]')})" if name else ""
    return f"sequence {position}{suffix}"


def _sliced_sequence(sequence: Variable, n_steps: Variable) -> Variable | None:
    """Return s if the sequence is ``s[:n_steps]``, otherwise None."""
    node = made_by(sequence, Subtensor)
    if node is None or node.op.idx_list != _UP_TO:
        return None
    whole, stop = node.inputs
    return whole if unwrapped(stop) is n_steps else None


def _is_long_enough(sequence: Variable, n_steps: Variable) -> bool:
    """Return whether the number of steps is known to be at most the length of a sequence."""
    static = sequence.type.shape[0]
    if (number := integer_of(n_steps)) is not None:
        return static is not None and number <= static
    if _selected_count(sequence) is n_steps:
        return True
    if elementwise(n_steps, ps.Minimum):
        return any(_is_long_enough(sequence, unwrapped(x)) for x in n_steps.owner.inputs)
    return _variable_of_length(n_steps) is sequence


def _selected_count(sequence: Variable) -> Variable | None:
    """Return the number of rows that a `FirstRows` selects, in any order; None for others."""
    while (whole := reversed_by(sequence.owner)) is not None:
        sequence = whole
    rows = made_by(sequence, FirstRows)
    return None if rows is None else unwrapped(rows.inputs[1])


def _is_length(n_steps: Variable) -> bool:
    """Return whether a number of steps is a constant, or the (smallest) length of sequences."""
    if elementwise(n_steps, ps.Minimum):
        return all(_is_length(unwrapped(x)) for x in n_steps.owner.inputs)
    return isinstance(n_steps, Constant) or _variable_of_length(n_steps) is not None


def _variable_of_length(size: Variable) -> Variable | None:
    """Return x if the size is ``x.shape[0]``, otherwise None."""
    array, axis = size_of(size) or (None, None)
    return array if axis == 0 else None


@rewrites_nodes(
    [StepCount, FirstRows],
    family="loops",
    purpose="size",
    identity="checked(checked(n)) = checked(n)",
    requires="another loop makes the check",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def drop_known_checks(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Drop checks that another loop already makes, as for a gradient."""
    if isinstance(node.op, FirstRows):
        rows, count = node.inputs
        is_known = node.outputs[0].type.is_super(rows.type)
        return [rows] if is_known and has_length(fgraph, rows, unwrapped(count)) else None
    n_steps = unwrapped(node.inputs[0])
    if _is_length(n_steps):
        return [pt.cast(n_steps, "int64")]
    if n_steps is node.inputs[0]:
        return None
    return [_checked(fgraph, n_steps, node.op.loop)]
