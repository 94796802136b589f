"""Outputs of loops: last steps, accumulations and buffers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.scan.rewriting.trace import scan_reduce_nsteps, scan_reduce_trace_no_prealloc
from pytensor.tensor.basic import Alloc, AllocEmpty
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, inc_subtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops import loops, reductions
from pytensor_onnx.ops.loops import LinearRecurrence
from pytensor_onnx.ops.reductions import RunningExtreme
from pytensor_onnx.rewriting.engine.predicates import elementwise, integer_of, made_by, only_client
from pytensor_onnx.rewriting.loops.loop_lengths import bounds_of, is_sum, unwrapped
from pytensor_onnx.rules import part_of, rewrites_nodes


@rewrites_nodes(
    [Subtensor],
    name="reduce_steps",
    family="loops",
    purpose="correctness",
    identity="scan(f, n)[:k] = scan(f, k)",
    requires="slices with bounds within the steps, or constant ones, which are clipped to them",
    begins_at=("Subtensor", "Scan"),
    measured="docs/project/upstream.md#a-slice-of-steps-makes-too-many-or-a-negative-number",
)
def slice_within_steps(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Clip constant slices to the rows of a loop: ``rows[-9:9]`` of seven rows is ``rows``.

    PyTensor would have the loop store as many rows as a bound says: one row for ``rows[2:2]``, and
    uninitialised rows that no step computes.
    """
    rows, *inputs = node.inputs
    loop = made_by(rows, Scan)
    if loop is None:
        return None
    first, *rest = indices_from_subtensor(inputs, node.op.idx_list)
    bounds = _constant_bounds(first)
    if bounds is None:
        return None
    within = _within(bounds, _number_of_rows(loop, rows))
    if within == bounds:
        return None
    result = rows[(within, *rest)]
    copy_stack_trace(node.outputs[0], result)
    return [result]


def _constant_bounds(index: slice | Variable) -> slice | None:
    """Return an index as a slice of numbers, or None if it is no slice with constant bounds."""
    if not isinstance(index, slice):
        return None
    bounds = (index.start, index.stop, index.step)
    if not all(b is None or isinstance(b, Constant) for b in bounds):
        return None
    return slice(*map(integer_of, bounds))


def _number_of_rows(loop: Apply, rows: Variable) -> int | None:
    """Return the number of rows of an output of a loop, None if unknown."""
    op, n_steps = loop.op, integer_of(loop.inputs[0])
    if op.info.as_while or n_steps is None:
        return None
    return n_steps if rows in op.outer_nitsot_outs(loop.outputs) else rows.type.shape[0]


def _within(bounds: slice, length: int | None) -> slice:
    """Return an equivalent slice without bounds outside of the rows."""
    start, stop, step = bounds.start, bounds.stop, bounds.step
    if length is None:
        has_signs = None not in (start, stop) and (start < 0) == (stop < 0)
        is_empty = has_signs and (stop <= start if step is None or step > 0 else start <= stop)
        return slice(None, 0, None) if is_empty else bounds
    if not range(*bounds.indices(length)):
        return slice(None, 0, None)
    lowest, highest = -length, length - 1
    if step is not None and step < 0:
        start = None if start is not None and start >= highest else start
        return slice(start, None if stop is not None and stop < lowest else stop, step)
    start = None if start is not None and start <= lowest else start
    return slice(start, None if stop is not None and stop > highest else stop, step)


Replacements = dict[Variable | str, Variable | list[Apply]]


@part_of(slice_within_steps.rule, [Scan])
def reduce_steps(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Reduce the number of steps to the used ones, as PyTensor does.

    Slices whose negative bounds may exceed the number of steps are left alone: PyTensor would
    compute a negative number of steps, or return other steps.
    """
    reads = [client for output in node.outputs for client, _ in fgraph.clients[output]]
    if not all(_is_within(client, node.inputs[0]) for client in reads):
        return None
    return scan_reduce_nsteps.transform(fgraph, node) or None


def _is_within(read: Apply, n_steps: Variable) -> bool:
    if not isinstance(read.op, Subtensor):
        return True
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    bounds = (first.start, first.stop) if isinstance(first, slice) else ()
    lowest = min((n for n in map(integer_of, bounds) if n is not None), default=0)
    return lowest >= 0 or -lowest <= (integer_of(n_steps) or 0)


@rewrites_nodes(
    [Scan],
    family="loops",
    purpose="speed",
    identity="scan(f, n)[-1] = last state of scan(f, n)",
    requires="only the last steps are used",
    ensures="buffers have the rows of these steps",
    begins_at=("Scan", "Subtensor"),
    measured="docs/project/upstream.md#steps-of-a-loop-with-a-condition-are-counted-from-its-end",
)
def reduce_trace(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Reduce the trace of a loop to its last used steps, as PyTensor does.

    With a loop that a condition may end, PyTensor counts other steps from the maximum number of
    steps; there only a trace of the last step is reduced. A slice from the end to a position
    counted from the beginning needs all steps: it is empty for most lengths.
    """
    info = node.op.info
    initial = [
        *[0] * info.n_mit_mot,
        *(-min(taps) for taps in info.mit_sot_in_slices),
        *[1] * info.n_sit_sot,
        *[0] * info.n_nit_sot,
    ]
    if info.as_while and not all(
        _is_last_or_whole(fgraph, client, before)
        for output, before in zip(node.outputs, initial, strict=False)
        for client, _ in fgraph.clients[output]
        if isinstance(client.op, Subtensor)
    ):
        return None
    clients = (client for output in node.outputs for client, _ in fgraph.clients[output])
    if any(isinstance(client.op, Subtensor) and _mixes_ends(client) for client in clients):
        return None
    return scan_reduce_trace_no_prealloc.transform(fgraph, node) or None


@part_of(reduce_trace.rule, [Subtensor])
def shorten_buffer(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Allocate only the first rows of a buffer whose other rows are cut off.

    PyTensor does so where the first value of a state has the shape of a row; a value that is
    broadcast to it, such as zeros like another array, leaves the buffer of all steps.
    """
    stop = _rows_from_start(node.op.idx_list, node.inputs[1:])
    steps = [c.inputs[0] for c, _ in fgraph.clients[node.outputs[0]] if isinstance(c.op, Scan)]
    result = None if stop is None else _first_rows(node.inputs[0], stop, steps)
    if result is None:
        return None
    copy_stack_trace(node.outputs[0], result)
    return [node.outputs[0].type.filter_variable(result, allow_convert=True)]


def _first_rows(buffer: Variable, stop: int, steps: Sequence[Variable]) -> Variable | None:
    """Return the first rows of a buffer, allocated alone; None if it is not allocated here.

    Parameters
    ----------
    steps
        Numbers of steps of the loops that take the rows.
    """
    if (repeated := made_by(buffer, Alloc)) is not None:
        value, length, *sizes = repeated.inputs
        is_repeated = value.type.ndim < buffer.type.ndim or value.type.broadcastable[0]
        return (
            pt.alloc(value, stop, *sizes) if is_repeated and _is_long(length, stop, steps) else None
        )
    write = made_by(buffer, IncSubtensor)
    if write is None or not write.op.set_instead_of_inc:
        return None
    whole, value, *indices = write.inputs
    first, empty = _rows_from_start(write.op.idx_list, indices), made_by(whole, AllocEmpty)
    if first is None or first > stop or empty is None:
        return None
    length, *sizes = empty.inputs
    if first == stop and _is_long(length, stop, steps):
        return pt.alloc(pt.cast(value, buffer.type.dtype), stop, *sizes)
    rows = stop if _is_long(length, stop, steps) else pt.minimum(length, stop)
    return AllocEmpty(buffer.type.dtype)(rows, *sizes)[:first].set(value)


def _is_long(length: Variable, rows: int, steps: Sequence[Variable]) -> bool:
    """Return whether a length, such as the number of steps, is known to be at least `rows`."""
    return bounds_of(length)[0] >= rows or any(is_sum(length, unwrapped(n), rows) for n in steps)


def _rows_from_start(idx_list: Sequence[Any], inputs: Sequence[Variable]) -> int | None:
    """Return the number of rows that an index selects from the start, None if unknown."""
    if len(idx_list) != 1:
        return None
    (first,) = indices_from_subtensor(inputs, idx_list)
    bounds = _constant_bounds(first)
    if bounds is None or bounds.start not in (None, 0) or bounds.step not in (None, 1):
        return None
    return bounds.stop if bounds.stop is not None and bounds.stop > 0 else None


def _mixes_ends(read: Apply) -> bool:
    """Return whether a slice counts one bound from the end and the other from the start."""
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    if not isinstance(first, slice) or first.start is None or first.stop is None:
        return False
    from_end = [(integer_of(bound) or 0) < 0 for bound in (first.start, first.stop)]
    return from_end[0] != from_end[1]


def _is_last_or_whole(fgraph: FunctionGraph, read: Apply, initial: int) -> bool:
    """Return whether an index selects the last row, or all rows after the initial ones."""
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    if not isinstance(first, slice):
        return integer_of(first) == -1
    start = 0 if first.start is None else integer_of(first.start)
    if start != initial or first.stop is not None or first.step is not None:
        return False
    client = only_client(fgraph, read.outputs[0])
    return client is None or not isinstance(client.op, Subtensor)


_REDUCTIONS = {ps.Add: pt.sum, ps.Mul: pt.prod, ps.Maximum: pt.max, ps.Minimum: pt.min}
_CUMULATIVE = {ps.Add: "add", ps.Mul: "mul"}
_COMBINATIONS = {ps.Add: pt.add, ps.Mul: pt.mul, ps.Maximum: pt.maximum, ps.Minimum: pt.minimum}


@dataclass(frozen=True)
class Accumulation:
    """Scalar operation that updates a state in each step.

    Attributes
    ----------
    kind
        Scalar operation.
    terms
        Its other operands, variables of the inner graph.
    """

    kind: type[ps.ScalarOp]
    terms: Sequence[Variable]

    @property
    def has_operator(self) -> bool:
        """Whether one cumulative operation gives all values of the state, for any row size."""
        return self.kind in _CUMULATIVE

    def operands(self) -> list[Variable]:
        """Return the terms of a step, combined by the operation."""
        return [self.terms[0] if len(self.terms) == 1 else _COMBINATIONS[self.kind](*self.terms)]

    @property
    def is_sum(self) -> bool:
        """Whether terms are added to the state."""
        return self.kind is ps.Add

    def has_short_form(self, row: Variable) -> bool:
        """Return whether the values of the state are computed without a loop."""
        return self.has_operator or is_short(row, reductions.LARGEST_ROW)

    def cumulated(self, rows: TensorVariable) -> TensorVariable:
        """Return all values of the state from its initial value and the terms of all steps."""
        if self.kind in _CUMULATIVE:
            return CumOp(axis=0, mode=_CUMULATIVE[self.kind])(rows)
        return RunningExtreme("max" if self.kind is ps.Maximum else "min")(rows)

    def reduced(self, rows: TensorVariable) -> TensorVariable:
        """Return the last value of the state, with a leading axis of size one."""
        return pt.cast(_REDUCTIONS[self.kind](rows, axis=0, keepdims=True), rows.type.dtype)


@dataclass(frozen=True)
class Recurrence:
    """Product with a factor and sum with a term that update a state in each step.

    Attributes
    ----------
    terms
        Terms of the sum, variables of the inner graph.
    factors
        Factors of the state.
    """

    terms: Sequence[Variable]
    factors: Sequence[Variable]

    def operands(self) -> list[Variable]:
        """Return the term and the factor of a step."""
        return [
            many[0] if len(many) == 1 else combine(*many)
            for many, combine in ((self.terms, pt.add), (self.factors, pt.mul))
        ]

    def has_short_form(self, row: Variable) -> bool:
        """Return whether the values of the state are computed without a loop."""
        is_float = row.type.dtype in ("float32", "float64")
        return is_float and is_short(row, loops.LARGEST_ROW)

    def cumulated(self, rows: TensorVariable, factors: TensorVariable) -> TensorVariable:
        """Return all values of the state from its initial value and the operands of all steps."""
        return LinearRecurrence()(rows, factors)

    def reduced(self, rows: TensorVariable, factors: TensorVariable) -> TensorVariable:
        """Return the last value of the state, with a leading axis of size one."""
        return self.cumulated(rows, factors)[-1:]


def is_short(row: Variable, largest: int) -> bool:
    """Return whether a row is known to have a number of elements or fewer."""
    sizes = row.type.shape
    return None not in sizes and int(np.prod(sizes)) <= largest


def update_of(inner: Variable, update: Variable) -> Accumulation | Recurrence | None:
    """Return the accumulation or recurrence that updates a state, None for other updates."""
    return accumulation_of(inner, update) or recurrence_of(inner, update)


def recurrence_of(inner: Variable, update: Variable) -> Recurrence | None:
    """Return the linear recurrence that updates a state: one sum of terms and one product."""
    added = _operands_beside(inner, update, ps.Add)
    if added is None:
        return None
    product, terms = added
    multiplied = _operands_beside(inner, product, ps.Mul)
    if multiplied is None or multiplied[0] is not inner:
        return None
    return Recurrence(terms, multiplied[1])


def _operands_beside(
    inner: Variable, value: Variable, kind: type[ps.ScalarOp]
) -> tuple[Variable, list[Variable]] | None:
    """Return the operand of a sum or product that depends on a state, and the other operands."""
    node = elementwise(value)
    if node is None or value.type.dtype != inner.type.dtype:
        return None
    operands = _widened(node.inputs, inner.type.dtype)
    if operands is None:
        return None
    operation = type(node.op.scalar_op)
    if operation is ps.Sub and kind is ps.Add:
        operation, operands[1] = ps.Add, pt.neg(operands[1])
    dependent = [x for x in operands if inner in ancestors([x])]
    if operation is not kind or len(dependent) != 1:
        return None
    return dependent[0], [x for x in operands if x is not dependent[0]]


def _widened(operands: Sequence[Variable], dtype: str) -> list[Variable] | None:
    """Cast operands to the dtype of their result, or return None if the dtype loses a value.

    Terms of a narrower dtype, negated or combined in it, would wrap around or round.
    """
    if not all(np.can_cast(x.type.dtype, dtype) for x in operands):
        return None
    return [pt.cast(x, dtype) for x in operands]


def accumulation_of(inner: Variable, update: Variable) -> Accumulation | None:
    """Return the accumulation that updates a state, None if the update is no accumulation.

    Parameters
    ----------
    inner, update
        The state before and after a step, variables of the inner graph.
    """
    dtype = inner.type.dtype
    kind: type[ps.ScalarOp] | None = None
    terms: list[Variable] = []
    reached = update
    while reached is not inner:
        node = elementwise(reached)
        # Each step rounds, or wraps around, in the dtype of the state.
        if node is None or reached.type.dtype != dtype:
            return None
        operands = _widened(node.inputs, dtype)
        if operands is None:
            return None
        dependent = [x for x in operands if inner in ancestors([x])]
        if len(dependent) != 1:
            return None
        (reached,) = dependent
        operation = type(node.op.scalar_op)
        if operation is ps.Sub and operands[0] is reached and not dtype.startswith("uint"):
            operation, operands[1] = ps.Add, pt.neg(operands[1])
        if operation not in _REDUCTIONS or kind not in (None, operation) or dtype == "bool":
            return None
        kind = operation
        operands.remove(reached)
        terms += operands
    return Accumulation(kind, terms) if kind is not None else None


def swapped(x: TensorVariable) -> TensorVariable:
    """Return an array with its first two axes swapped.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> swapped(swapped(x)) is x
    True
    """
    order = [1, 0, *range(2, x.type.ndim)]
    node = made_by(x, DimShuffle)
    if node is not None and list(node.op.new_order) == order:
        return node.inputs[0]
    return x.dimshuffle(order)


def buffer_of_rows(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array of steps, repeated for each row along a new second axis.

    Of a buffer, only the steps that are set are repeated.
    """
    op = x.owner.op if x.owner is not None else None
    if isinstance(op, AllocEmpty):
        length, *sizes = x.owner.inputs
        return AllocEmpty(op.dtype)(length, size, *sizes)
    if isinstance(op, Subtensor) and _is_slice_of_steps(op):
        return buffer_of_rows(x.owner.inputs[0], size)[_indices(op, x.owner.inputs[1:])]
    if isinstance(op, IncSubtensor):
        return swapped(written_rows(x.owner, x.owner.inputs, [False] * 2, size))
    return pt.alloc(pt.expand_dims(x, 1), x.shape[0], size, *x.shape[1:])


def written_rows(
    node: Apply, inputs: Sequence[Variable], is_row: Sequence[bool], size: Variable
) -> TensorVariable:
    """Return the values that a node writes for each row, along a new leading axis.

    Parameters
    ----------
    node
        Node of an `IncSubtensor`.
    inputs
        Its inputs; the array and the value may have a leading axis of rows.
    is_row
        Whether they have.
    size
        Number of rows.
    """
    op: IncSubtensor = node.op
    array, value, *others = inputs
    if not is_row[0]:
        array = swapped(buffer_of_rows(array, size))
    core = node.inputs[0][_indices(op, node.inputs[2:])]
    missing = core.type.ndim - node.inputs[1].type.ndim
    value = pt.expand_dims(value, tuple(range(is_row[1], is_row[1] + missing)))
    indices = _indices(op, others)
    if _is_slice_of_steps(op):
        value = swapped(value) if is_row[1] else pt.expand_dims(value, 1)
        target = swapped(array)[indices]
    else:
        target = array[(slice(None), *indices)]
    written = inc_subtensor(target, value, set_instead_of_inc=op.set_instead_of_inc)
    return swapped(written) if _is_slice_of_steps(op) else written


def _is_slice_of_steps(op: Subtensor | IncSubtensor) -> bool:
    return len(op.idx_list) == 1 and isinstance(op.idx_list[0], slice)


def _indices(op: Subtensor | IncSubtensor, inputs: Sequence[Variable]) -> tuple:
    return tuple(indices_from_subtensor(inputs, op.idx_list))
