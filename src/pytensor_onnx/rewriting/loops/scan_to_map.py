"""Loops without states as batched graphs.

PyTensor moves elementwise operations that do not depend on earlier steps out of a loop. A sum of
terms remains as a Scan that adds, and a function applied to every row as a Scan without a state.
Here, both are computed for all steps at once, unless that requires another loop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace, vectorize_graph
from pytensor.graph.rewriting.basic import GraphRewriter, copy_stack_trace
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar, cast, scalar_from_tensor
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.loops import INDEXING, FirstRows, StepIndex
from pytensor_onnx.rewriting.engine.batches import has_own_slices, takes_a_loop
from pytensor_onnx.rewriting.loops.early_parts import are_held, depends_on, factors_of_sum
from pytensor_onnx.rewriting.loops.inner_loops import loop_like
from pytensor_onnx.rewriting.loops.loop_lengths import (
    allocated_length,
    are_equal,
    first_row,
    has_length,
    is_sum,
    unwrapped,
)
from pytensor_onnx.rewriting.loops.scan_outputs import (
    Accumulation,
    buffer_of_rows,
    swapped,
    update_of,
    written_rows,
)
from pytensor_onnx.rewriting.loops.step_lookups import mark_indices
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


@cache
def _canonical_form() -> GraphRewriter:
    """Return the rewrites that bring a graph into canonical form."""
    return optdb.query(RewriteDatabaseQuery(include=["canonicalize"]))


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
        if not info.n_sit_sot and not info.n_mit_mot:
            # Branches that are not taken else multiply zeros by infinite slopes.
            _canonical_form().rewrite(inner)
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


_WRITING = (IncSubtensor, AdvancedIncSubtensor)


class Rows:
    """Values of an inner graph for all rows at once.

    Attributes
    ----------
    size
        Number of rows.
    loop
        Name of the loop over the rows.
    known
        The new variable for each variable of the inner graph, as far as known.
    batched
        The variables that differ between rows. Their new variables have a leading axis.
    """

    def __init__(self, size: Variable, loop: str) -> None:
        self.size, self.loop = size, loop
        self.known: dict[Variable, Variable] = {}
        self.batched: set[Variable] = set()

    def add(self, old: Variable, new: Variable, *, is_row: bool) -> None:
        """Add a variable."""
        self.known[old] = new
        if is_row:
            self.batched.add(old)

    def add_node(self, node: Apply) -> None:
        """Add the outputs of a node, unless they need a loop over the rows or unknown values."""
        if not all(x in self.known or isinstance(x, Constant) for x in node.inputs):
            return
        inputs = [self.known.get(x, x) for x in node.inputs]
        if self.batched.isdisjoint(node.inputs):
            for old, new in zip(node.outputs, _with_inputs(node, inputs), strict=True):
                self.add(old, new, is_row=False)
            return
        found = self._results(node, inputs, [x in self.batched for x in node.inputs])
        for old, (new, is_row) in zip(node.outputs, found or (), strict=found is not None):
            self.add(old, new, is_row=is_row)

    def in_rows(self, old: Variable) -> TensorVariable:
        """Return a known value for all rows, repeated if it is the same for each."""
        new = self.known.get(old, old)
        return new if old in self.batched else _repeated(new, self.size)

    def _results(
        self, node: Apply, inputs: list[Variable], is_row: list[bool]
    ) -> list[tuple[Variable, bool]] | None:
        """Return the outputs of a node and whether they differ between rows, None if unknown."""
        match node.op:
            case Shape():
                return [(inputs[0].shape[1:], False)]
            case Shape_i(i=axis):
                return [(Shape_i(axis + 1)(inputs[0]), False)]
            case SpecifyShape():
                rows, *sizes = inputs
                known = [
                    n if isinstance(n.type, TensorType) else rows.shape[k + 1]
                    for k, n in enumerate(sizes)
                ]
                return [(pt.specify_shape(rows, [rows.shape[0], *known]), True)]
            case Scan():
                return _batched_scan(node, inputs, is_row, self)
            case FirstRows():
                if is_row[1]:
                    return None
                return [(swapped(node.op(swapped(inputs[0]), inputs[1])), True)]
            case CheckAndRaise():
                value, *conditions = inputs
                # Without a row, nothing is checked.
                all_hold = [
                    pt.all(x) if row else pt.or_(x, pt.eq(self.size, 0))
                    for x, row in zip(conditions, is_row[1:], strict=True)
                ]
                return [(node.op(value, *all_hold), is_row[0])]
            case ScalarFromTensor() | TensorFromScalar():
                return [(inputs[0], True)]
        n_arrays = 1 + isinstance(node.op, _WRITING)
        if isinstance(node.op, INDEXING) and any(is_row[n_arrays:]):
            if has_own_slices(node.op, node.inputs, self.batched):
                return None
            return _vectorized(node, inputs, is_row, self.loop)
        if isinstance(node.op, IncSubtensor):
            return [(written_rows(node, inputs, is_row, self.size), True)]
        return _vectorized(node, inputs, is_row)


def _vectorized(
    node: Apply, inputs: Sequence[Variable], is_row: Sequence[bool], loop: str | None = None
) -> list[tuple[Variable, bool]] | None:
    """Return the outputs of a node for all rows, None if this requires a loop.

    With the name of a loop, indices are marked, so that an error of one names the loop.
    """
    if not all(isinstance(x.type, TensorType) for x in node.outputs):
        return None
    places, given = list(inputs), {}
    for k, (old, new, row) in enumerate(zip(node.inputs, inputs, is_row, strict=True)):
        if row:
            place = pt.tensor(dtype=old.type.dtype, shape=getattr(old.type, "shape", ()))
            is_value = k <= isinstance(node.op, _WRITING)
            marked = place if loop is None or is_value else StepIndex(loop)(place)
            is_tensor = isinstance(old.type, TensorType)
            places[k] = marked if is_tensor else scalar_from_tensor(marked)
            given[place] = new
    core = _with_inputs(node, places)
    try:
        results = vectorize_graph(core, given)
    except (NotImplementedError, TypeError, ValueError):
        return None
    if any(takes_a_loop(x) for x in toposort(results, blockers=inputs)):
        return None
    return [(x, x.type.ndim > y.type.ndim) for x, y in zip(results, core, strict=True)]


def _batched_scan(
    node: Apply, given: list[Variable], is_row: list[bool], rows: Rows
) -> list[tuple[Variable, bool]] | None:
    """Return the outputs of a loop that computes all rows in each step.

    A state differs between rows if its first value does, or a value that it depends on.
    """
    op = node.op
    places = op.get_oinp_iinp_iout_oout_mappings()
    inputs_of, results_of = places["inner_inp_from_outer_inp"], places["inner_out_from_outer_inp"]
    if (
        op.info.as_while
        or is_row[0]
        or any(row and not inputs_of[i] for i, row in enumerate(is_row))
    ):
        return None
    inner = op.fgraph.unfreeze()
    found = _with_rows_of_states(node, inner, given, is_row, rows)
    if found is None:
        return None
    step, given, is_row = found
    outputs = list(inner.outputs)
    rows_of_output: dict[int, bool] = {}
    for i, ks in results_of.items():
        differs = is_row[i] or any(inner.outputs[k] in step.batched for k in ks)
        rows_of_output[places["outer_out_from_outer_inp"][i]] = differs
        for k in ks:
            x = inner.outputs[k]
            outputs[k] = step.in_rows(x) if differs else step.known.get(x, x)
    scan = loop_like(op, [step.known[x] for x in inner.inputs], outputs)
    results = scan(
        *(
            swapped(x) if row and i < _n_traced(op) else x
            for i, (x, row) in enumerate(zip(given, is_row, strict=True))
        ),
        return_list=True,
    )
    n_stacked = len(results) - op.info.n_untraced_sit_sot
    for k in range(n_stacked - op.info.n_nit_sot, n_stacked):
        if rows_of_output[k]:
            results[k] = _of_rows(results[k], rows.size)
    return [
        (swapped(x) if rows_of_output[k] and k < n_stacked else x, rows_of_output[k])
        for k, x in enumerate(results)
    ]


def _n_traced(op: Scan) -> int:
    """Return the number of inputs before the states without a trace: arrays of steps."""
    info = op.info
    return 1 + info.n_seqs + info.n_mit_mot + info.n_mit_sot + info.n_sit_sot


def _with_rows_of_states(
    node: Apply, inner: FunctionGraph, given: list[Variable], is_row: list[bool], rows: Rows
) -> tuple[Rows, list[Variable], list[bool]] | None:
    """Return a step for all rows, and the inputs of its loop with the states that differ repeated.

    None if the step needs a loop over the rows. A state that differs between rows may make other
    states differ, so that the step is computed until no further state does.
    """
    op, given, is_row = node.op, list(given), list(is_row)
    places = op.get_oinp_iinp_iout_oout_mappings()
    inputs_of, results_of = places["inner_inp_from_outer_inp"], places["inner_out_from_outer_inp"]
    while True:
        step = _step_of_rows(inner, given, is_row, inputs_of, rows.loop)
        if not all(x in step.known or isinstance(x, Constant) for x in inner.outputs):
            return None
        grown = [
            i
            for i, ks in results_of.items()
            if inputs_of[i] and not is_row[i] and any(inner.outputs[k] in step.batched for k in ks)
        ]
        if not grown:
            return step, given, is_row
        for i in grown:
            is_traced = i < _n_traced(op)
            repeat = _repeated_steps if is_traced else _repeated
            given[i], is_row[i] = repeat(given[i], rows.size), True


def _repeated_steps(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array of steps, repeated along a new leading axis."""
    return swapped(buffer_of_rows(x, size))


def _step_of_rows(
    inner: FunctionGraph,
    given: Sequence[Variable],
    is_row: Sequence[bool],
    inputs_of: dict[int, list[int]],
    loop: str,
) -> Rows:
    """Return the values of a step, for the inputs of the loop that differ between rows."""
    inputs = list(inner.inputs)
    batched = {j for i, row in enumerate(is_row) if row for j in inputs_of[i]}
    n_rows = next(x.type.shape[0] for x, row in zip(given, is_row, strict=True) if row)
    new = [
        x.type.clone(shape=(n_rows, *x.type.shape))() if j in batched else x.type()
        for j, x in enumerate(inputs)
    ]
    step = Rows(new[min(batched)].shape[0], loop)
    for j, x in enumerate(inputs):
        step.add(x, new[j], is_row=j in batched)
    for node in inner.toposort():
        step.add_node(node)
    return step


def _repeated(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array repeated along a new leading axis."""
    return pt.alloc(x, size, *x.shape)


def _of_rows(trace: TensorVariable, size: Variable) -> TensorVariable:
    """Return a trace with the number of rows on its second axis, also if it has no steps.

    A loop of zero steps does not know the sizes of the results of a step.
    """
    return trace.reshape((trace.shape[0], size, *trace.shape[2:]))


def _with_inputs(node: Apply, inputs: Sequence[Variable]) -> list[Variable]:
    return node.clone_with_new_inputs(list(inputs), strict=False).outputs
