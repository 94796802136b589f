"""Loops that need not be loops: maps become batched graphs, accumulations cumulative operations.

PyTensor moves out of a loop what does not depend on the steps before, as far as it is elementwise.
What is left of a sum of terms is a Scan that adds; of a function applied to every row, a Scan
without a state. Both are computed for all steps at once here, unless that would take a loop again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace, vectorize_graph
from pytensor.graph.rewriting.basic import copy_stack_trace, dfs_rewriter, node_rewriter
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    ScalarFromTensor,
    TensorFromScalar,
    cast,
)
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.batches import takes_a_loop
from pytensor_onnx.rewriting.running_extremes import RunningExtreme, has_short_form

_REDUCTIONS = {ps.Add: pt.sum, ps.Mul: pt.prod, ps.Maximum: pt.max, ps.Minimum: pt.min}
_CUMULATIVE = {ps.Add: "add", ps.Mul: "mul"}


@node_rewriter([Scan])
def batch_scan(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Compute all steps at once where none needs more of those before than an accumulation.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> total = pytensor.scan(
    ...     lambda e, y: y + pt.exp(e), [x], [pt.zeros(())], return_updates=False
    ... )
    >>> f = pytensor.function([x], total, mode="ONNX")
    >>> any(isinstance(node.op, Scan) for node in f.maker.fgraph.toposort())
    False
    """
    loop = _Loop.of(fgraph, node)
    if loop is None:
        return None
    batched = loop.batched()
    if batched is None:
        return None
    for old, new in batched.items():
        copy_stack_trace(old, new)
    return batched


@dataclass
class _State:
    """A value that a step takes over from the one before.

    Attributes
    ----------
    inner, update
        The value before and after a step, variables of the inner graph.
    initial
        The first value, with an axis of size one before its own.
    output
        The output of the Scan that holds the values.
    keeps_last
        Whether that output holds nothing but the last one.
    """

    inner: Variable
    update: Variable
    initial: TensorVariable
    output: Variable
    keeps_last: bool = False


class _Loop:
    """A Scan whose states are found, and whose sequences are as long as there are steps."""

    def __init__(self, node: Apply, n_steps: Variable, outputs: list[Variable]) -> None:
        self.node, self.op, self.n_steps = node, node.op, n_steps
        self.outputs = outputs
        self.states: list[_State] = []
        self.elements: dict[Variable, Variable] = {}
        self.constants: dict[Variable, Variable] = {}

    @classmethod
    def of(cls, fgraph: FunctionGraph, node: Apply) -> "_Loop | None":
        """Return the loop that a Scan is, None if it is of a form that is left alone."""
        op, info = node.op, node.op.info
        n_steps = unwrapped(node.inputs[0])
        if info.as_while or info.n_untraced_sit_sot or info.n_mit_sot:
            return None
        sequences = op.outer_seqs(node.inputs)
        if not (isinstance(n_steps, Constant) or sequences or info.n_mit_mot):
            return None
        if not all(has_length(fgraph, x, n_steps) for x in sequences):
            return None
        inner = op.fgraph.unfreeze()
        loop = cls(node, n_steps, inner.outputs)
        loop.elements = dict(zip(op.inner_seqs(inner.inputs), sequences, strict=True))
        loop.constants = dict(
            zip(op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True)
        )
        found = [*loop._gradients(inner.inputs), *loop._recurrences(inner.inputs)]
        loop.states = [state for state in found if state is not None]
        return loop if len(loop.states) == len(found) else None

    def _gradients(self, inner: Sequence[Variable]) -> Iterator[_State | None]:
        """Yield states that are kept in a buffer which holds what is added to them as well."""
        op, info = self.op, self.op.info
        groups = zip(
            op.outer_mitmot(self.node.inputs),
            op.inner_mitmot_grouped(inner),
            op.inner_mitmot_outs_grouped(self.outputs),
            info.normalized_mit_mot_in_slices,
            info.normalized_mit_mot_out_slices,
            op.outer_mitmot_outs(self.node.outputs),
            strict=True,
        )
        for buffer, reads, writes, taps, places, output in groups:
            if set(taps) != {0, 1} or tuple(places) != (1,) or not self._is_one_longer(buffer):
                yield None
                continue
            read = dict(zip(taps, reads, strict=True))
            self.elements[read[1]] = buffer[1:]
            yield _State(read[0], writes[0], buffer[:1], output)

    def _is_one_longer(self, buffer: Variable) -> bool:
        """Return whether a buffer has one row more than there are steps."""
        length = _allocated_length(buffer)
        return length is not None and _is_sum(length, self.n_steps, 1)

    def _recurrences(self, inner: Sequence[Variable]) -> Iterator[_State | None]:
        op = self.op
        for buffer, before, after, output in zip(
            op.outer_sitsot(self.node.inputs),
            op.inner_sitsot(inner),
            op.inner_sitsot_outs(self.outputs),
            op.outer_sitsot_outs(self.node.outputs),
            strict=True,
        ):
            if buffer.type.shape[0] == 1:
                yield _State(before, after, buffer, output, keeps_last=True)
            elif self._is_one_longer(buffer):
                yield _State(before, after, _first_row(buffer), output)
            else:
                yield None

    def batched(self) -> dict[Variable, Variable] | None:
        """Return the new outputs of the Scan, None where a loop would be needed for them."""
        waiting = list(self.states)
        results: dict[Variable, Variable] = {}
        while waiting:
            state = next((s for s in waiting if self._is_known(s, waiting)), None)
            if state is None:
                return None
            rows = self._accumulated(state)
            if rows is None:
                return None
            waiting.remove(state)
            self.elements[state.inner] = rows[:-1]
            results[state.output] = rows[-1:] if state.keeps_last and self._is_read(state) else rows
        maps = self._maps()
        if maps is None:
            return None
        results.update(maps)
        return {
            old: old.type.filter_variable(new, allow_convert=True) for old, new in results.items()
        }

    def _is_read(self, state: _State) -> bool:
        """Return whether anything but the state itself depends on its values before each step."""
        others = [x for x in self.outputs if x is not state.update]
        return state.inner in ancestors(others)

    def _maps(self) -> dict[Variable, TensorVariable] | None:
        """Return the outputs that no later step takes over, no more steps of each than are kept."""
        groups: dict[Variable | None, list[tuple[Variable, Variable]]] = {}
        for output, computed, size in zip(
            self.op.outer_nitsot_outs(self.node.outputs),
            self.op.inner_nitsot_outs(self.outputs),
            self.op.outer_nitsot(self.node.inputs),
            strict=True,
        ):
            groups.setdefault(self._rows_kept(size), []).append((output, computed))
        results: dict[Variable, TensorVariable] = {}
        for kept, pairs in groups.items():
            mapped = self._mapped([computed for _, computed in pairs], kept)
            if mapped is None:
                return None
            results.update(zip((output for output, _ in pairs), mapped, strict=True))
        return results

    def _rows_kept(self, size: Variable) -> Variable | None:
        """Return the number of rows that an output keeps, None where those are all."""
        is_all = unwrapped(size) is self.n_steps or _are_equal(unwrapped(size), self.n_steps)
        return None if is_all else size

    def _is_known(self, state: _State, waiting: Sequence[_State]) -> bool:
        """Return whether what a state is updated with depends on no state that is yet unknown."""
        parts = _accumulation(state)
        unknown = {s.inner for s in waiting}
        return parts is not None and not unknown.intersection(ancestors(parts[1]))

    def _accumulated(self, state: _State) -> TensorVariable | None:
        """Return the initial value and all that follow, or the last where no other is kept."""
        parts = _accumulation(state)
        assert parts is not None
        kind, terms = parts
        is_reduced = state.keeps_last and not self._is_read(state)
        if not is_reduced and kind not in _CUMULATIVE and not has_short_form(state.inner):
            return None
        mapped = self._mapped([_combined(kind, terms)])
        if mapped is None:
            return None
        (rows,) = mapped
        dtype = state.initial.type.dtype
        rows = self._with_shape_of(state.initial, cast(rows, dtype))
        whole = pt.concatenate([state.initial, rows], axis=0)
        if not is_reduced:
            return _cumulated(kind, whole)
        return cast(_REDUCTIONS[kind](whole, axis=0, keepdims=True), dtype)

    def _with_shape_of(self, initial: TensorVariable, rows: TensorVariable) -> TensorVariable:
        """Return rows that broadcast against a state, with the shape of the state."""
        pairs = zip(rows.type.broadcastable[1:], initial.type.broadcastable[1:], strict=True)
        if not any(one and not other for one, other in pairs):
            return rows
        return pt.broadcast_to(rows, (rows.shape[0], *initial.shape[1:]))

    def _mapped(
        self, variables: Sequence[Variable], kept: Variable | None = None
    ) -> list[TensorVariable] | None:
        """Return variables of the inner graph in all steps or the last, None if it takes a loop."""
        last = slice(None) if kept is None else slice(-kept, None)
        elements = self.elements
        if kept is not None:
            elements = {inner: rows[last] for inner, rows in elements.items()}
        try:
            results = vectorize_graph(list(variables), elements)
        except (NotImplementedError, TypeError, ValueError):
            return None
        results = graph_replace(results, self.constants, strict=False)
        known = {*elements.values(), *self.constants.values()}
        if any(takes_a_loop(node) for node in toposort(results, blockers=known)):
            return None
        return [
            result
            if result.type.ndim > variable.type.ndim
            else pt.broadcast_to(result, (self.node.inputs[0], *result.shape))[last]
            for result, variable in zip(results, variables, strict=True)
        ]


def _accumulation(state: _State) -> tuple[type[ps.ScalarOp], list[Variable]] | None:
    """Return by what operation a state goes on, and what it meets there; None for another form."""
    dtype = state.inner.type.dtype
    kind: type[ps.ScalarOp] | None = None
    terms: list[Variable] = []
    reached = state.update
    while reached is not state.inner:
        node = reached.owner
        # The steps round, and wrap around, in the dtype of the state.
        if node is None or not isinstance(node.op, Elemwise) or reached.type.dtype != dtype:
            return None
        operands = list(node.inputs)
        dependent = [x for x in operands if state.inner in ancestors([x])]
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
    is_exact = all(np.can_cast(x.type.dtype, dtype) for x in terms)
    return (kind, terms) if kind is not None and is_exact else None


def _combined(kind: type[ps.ScalarOp], terms: Sequence[Variable]) -> Variable:
    if len(terms) == 1:
        return terms[0]
    return {ps.Add: pt.add, ps.Mul: pt.mul, ps.Maximum: pt.maximum, ps.Minimum: pt.minimum}[kind](
        *terms
    )


def _cumulated(kind: type[ps.ScalarOp], rows: TensorVariable) -> TensorVariable:
    if kind in _CUMULATIVE:
        return CumOp(axis=0, mode=_CUMULATIVE[kind])(rows)
    return RunningExtreme("max" if kind is ps.Maximum else "min")(rows)


def _first_row(buffer: Variable) -> TensorVariable:
    """Return the first row of a buffer, which need not be allocated for it."""
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


def has_length(fgraph: FunctionGraph, sequence: Variable, n_steps: Variable) -> bool:
    """Return whether a sequence is known to have as many elements as there are steps."""
    static = sequence.type.shape[0]
    if isinstance(n_steps, Constant):
        return static == int(n_steps.data)
    node = sequence.owner
    if node is not None and isinstance(node.op, ARange):
        start, stop, step = map(unwrapped, node.inputs)
        from_zero = isinstance(start, Constant) and int(start.data) == 0
        by_one = isinstance(step, Constant) and int(step.data) == 1
        return from_zero and by_one and _are_equal(stop, n_steps)
    return _are_equal(unwrapped(fgraph.shape_feature.get_shape(sequence, 0)), n_steps)


def _are_equal(first: Variable, second: Variable) -> bool:
    if first is second:
        return True
    a, b = first.owner, second.owner
    same_size = a is not None and b is not None and isinstance(a.op, Shape_i) and a.op == b.op
    return same_size and a.inputs[0] is b.inputs[0]


def _allocated_length(buffer: Variable) -> Variable | None:
    """Return the length of a buffer that was allocated, and perhaps written to."""
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
        step = node.inputs[1]
        is_reversed = isinstance(step, Constant) and int(step.data) == -1
        return _allocated_length(node.inputs[0]) if is_reversed else None
    return None


def _is_sum(size: Variable, n_steps: Variable, more: int) -> bool:
    """Return whether a size is the number of steps and some more."""
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
        isinstance(a, Constant) and int(a.data) == more and _are_equal(b, n_steps)
        for a, b in ((first, second), (second, first))
    )


def unwrapped(variable: Variable) -> Variable:
    """Return what stands behind conversions between tensors and scalars."""
    while variable.owner is not None and isinstance(
        variable.owner.op, TensorFromScalar | ScalarFromTensor
    ):
        (variable,) = variable.owner.inputs
    return variable


# After PyTensor has moved out what it can, and has found out how much of each output is wanted.
optdb.register(
    "onnx_batch_scans", dfs_rewriter(batch_scan, ignore_newtrees=True), "onnx", position=1.63
)
