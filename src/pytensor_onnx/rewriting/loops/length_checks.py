"""Check sequence lengths before operations move out of a loop.

Outside of the loop, a sequence of one element would broadcast against the others.
"""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from pytensor_onnx.ops.loops.loop_check_ops import FirstRows, StepCount
from pytensor_onnx.rewriting.engine.predicates import (
    elementwise,
    integer_of,
    made_by,
    reversed_by,
    size_of,
)
from pytensor_onnx.rewriting.loops.known_lengths import has_length, unwrapped
from pytensor_onnx.rules import rewrites_nodes

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
