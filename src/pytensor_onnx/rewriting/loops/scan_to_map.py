"""Replace loops by batched graphs (maps) and cumulative operations (accumulations).

PyTensor moves elementwise operations that do not depend on earlier steps out of a loop. A sum of
terms remains as a Scan that adds, and a function applied to every row as a Scan without a state.
Here, both are computed for all steps at once, unless that requires another loop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace, vectorize_graph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scan.op import Scan
from pytensor.tensor.basic import cast
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.blockwise_to_batch import takes_a_loop
from pytensor_onnx.rewriting.loops.accumulations import Accumulation, update_of
from pytensor_onnx.rewriting.loops.held_steps import are_held, depends_on, factors_of_sum
from pytensor_onnx.rewriting.loops.known_lengths import (
    allocated_length,
    are_equal,
    first_row,
    has_length,
    is_sum,
    unwrapped,
)
from pytensor_onnx.rewriting.loops.step_indices import mark_indices
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Scan],
    family="loops",
    purpose="speed",
    identity="scan(x ↦ f(x)) = f(X), scan(s ↦ s + x) = cumsum(X)",
    requires="steps depend on earlier ones by accumulations only",
    measured="benchmarks/NOTES.md, Loops: Batches",
)
def batch_scan(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Compute all steps at once if they depend on earlier steps only by accumulations.

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
    """Loop-carried state of a Scan.

    Attributes
    ----------
    inner, update
        The value before and after a step, variables of the inner graph.
    initial
        The first value, with a leading axis of size one.
    output
        The output of the Scan that holds the values.
    keeps_last
        Whether that output holds only the last value.
    """

    inner: Variable
    update: Variable
    initial: TensorVariable
    output: Variable
    keeps_last: bool = False


class _Loop:
    """Scan with known states, whose sequences have as many elements as it has steps."""

    def __init__(self, node: Apply, n_steps: Variable, outputs: list[Variable]) -> None:
        self.node, self.op, self.n_steps = node, node.op, n_steps
        self.outputs = outputs
        self.states: list[_State] = []
        self.elements: dict[Variable, Variable] = {}
        self.constants: dict[Variable, Variable] = {}

    @classmethod
    def of(cls, fgraph: FunctionGraph, node: Apply) -> "_Loop | None":
        """Return the loop of a Scan, None for unsupported forms."""
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
        loop = cls(node, n_steps, [])
        loop.elements = dict(zip(op.inner_seqs(inner.inputs), sequences, strict=True))
        loop.constants = dict(
            zip(op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True)
        )
        mark_indices(fgraph, inner, loop.elements, loop.constants, op.name or "scan")
        loop.outputs = inner.outputs
        found = [*loop._gradients(inner.inputs), *loop._recurrences(inner.inputs)]
        loop.states = [state for state in found if state is not None]
        return loop if len(loop.states) == len(found) else None

    def _gradients(self, inner: Sequence[Variable]) -> Iterator[_State | None]:
        """Yield the states of gradients, kept in a buffer that also holds their terms."""
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
        """Return whether a buffer has one row more than the loop has steps."""
        length = allocated_length(buffer)
        return length is not None and is_sum(length, self.n_steps, 1)

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
                yield _State(before, after, first_row(buffer), output)
            else:
                yield None

    def batched(self) -> dict[Variable, Variable] | None:
        """Return the new outputs of the Scan, None if they require a loop."""
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
            results[state.output] = rows[-1:] if state.keeps_last and self._is_used(state) else rows
        maps = self._maps()
        if maps is None:
            return None
        results.update(maps)
        return {
            old: old.type.filter_variable(new, allow_convert=True) for old, new in results.items()
        }

    def _is_used(self, state: _State) -> bool:
        """Return whether other outputs depend on the values of a state before each step."""
        own = next(i for i, x in enumerate(self.outputs) if x is state.update)
        # An output may be the update of the state itself.
        others = [x for i, x in enumerate(self.outputs) if i != own]
        return state.inner in ancestors(others)

    def _maps(self) -> dict[Variable, TensorVariable] | None:
        """Return the outputs without recurrence, each for the steps that it keeps."""
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
        """Return the number of rows that an output keeps, None for all."""
        is_all = unwrapped(size) is self.n_steps or are_equal(unwrapped(size), self.n_steps)
        return None if is_all else size

    def _is_known(self, state: _State, waiting: Sequence[_State]) -> bool:
        """Return whether the update of a state depends on no state that is yet unknown."""
        found = update_of(state.inner, state.update)
        unknown = {s.inner for s in waiting}
        return found is not None and unknown.isdisjoint(ancestors(found.operands()))

    def _accumulated(self, state: _State) -> TensorVariable | None:
        """Return the initial value and all later values, or the last value if only that is kept."""
        found = update_of(state.inner, state.update)
        assert found is not None
        is_reduced = state.keeps_last and not self._is_used(state)
        if is_reduced and isinstance(found, Accumulation):
            if found.is_sum:
                return self._summed(state, found)
        elif not found.has_short_form(state.inner):
            return None
        operands = found.operands()
        # Rows that are not read later should not be held for all steps.
        rows = operands if is_reduced else [*operands, state.inner]
        if state.keeps_last and not are_held(rows, self.elements):
            return None
        batched = self._batched(operands)
        if batched is None:
            return None
        dtype, initial = state.initial.type.dtype, state.initial
        pairs = list(zip(batched, operands, strict=True))
        # A factor that all steps share keeps one row.
        shared = [x if _is_batched(x, one) else x[None] for x, one in pairs[1:]]
        mapped = [self._repeated(*pairs[0]), *shared]
        rows, *factors = (self._with_shape_of(initial, cast(x, dtype)) for x in mapped)
        whole = pt.concatenate([initial, rows], axis=0)
        return (found.reduced if is_reduced else found.cumulated)(whole, *factors)

    def _summed(self, state: _State, sum_: Accumulation) -> TensorVariable | None:
        """Return the last value of a sum; a shared term is multiplied by the number of steps."""
        changing = [x for x in sum_.terms if depends_on(x, self.elements)]
        held = [factor for term in changing for factor in factors_of_sum(term)]
        if not are_held(held, self.elements):
            return None
        batched = self._batched(sum_.terms)
        if batched is None:
            return None
        dtype, total = state.initial.type.dtype, state.initial
        for rows, term in zip(batched, sum_.terms, strict=True):
            if _is_batched(rows, term):
                total = total + cast(rows.sum(axis=0), dtype)
            else:
                # No step adds a zero, also to an infinity.
                n = cast(self.node.inputs[0], dtype)
                total = total + pt.switch(n > 0, n * rows, pt.zeros((), dtype))
        return total

    def _with_shape_of(self, initial: TensorVariable, rows: TensorVariable) -> TensorVariable:
        """Broadcast rows to the shape of a state."""
        pairs = zip(rows.type.broadcastable[1:], initial.type.broadcastable[1:], strict=True)
        if not any(one and not other for one, other in pairs):
            return rows
        return pt.broadcast_to(rows, (rows.shape[0], *initial.shape[1:]))

    def _mapped(
        self, variables: Sequence[Variable], kept: Variable | None = None
    ) -> list[TensorVariable] | None:
        """Return inner variables for all steps, or the last ones; None if this requires a loop."""
        results = self._batched(variables, kept)
        if results is None:
            return None
        pairs = zip(results, variables, strict=True)
        return [self._repeated(result, one, kept) for result, one in pairs]

    def _repeated(
        self, batched: TensorVariable, variable: Variable, kept: Variable | None = None
    ) -> TensorVariable:
        """Return a row for each step; a row that all steps share is repeated."""
        if _is_batched(batched, variable):
            return batched
        last = slice(None) if kept is None else slice(-kept, None)
        return pt.broadcast_to(batched, (self.node.inputs[0], *batched.shape))[last]

    def _batched(
        self, variables: Sequence[Variable], kept: Variable | None = None
    ) -> list[TensorVariable] | None:
        """Return inner variables with an axis of steps, without it where they do not depend on one.

        The result is None if this requires a loop.
        """
        elements = self.elements
        if kept is not None:
            elements = {inner: rows[-kept:] for inner, rows in elements.items()}
        try:
            results = vectorize_graph(list(variables), elements)
        except (NotImplementedError, TypeError, ValueError):
            return None
        results = graph_replace(results, self.constants, strict=False)
        known = {*elements.values(), *self.constants.values()}
        if any(takes_a_loop(node) for node in toposort(results, blockers=known)):
            return None
        return results


def _is_batched(result: TensorVariable, variable: Variable) -> bool:
    return result.type.ndim > variable.type.ndim
