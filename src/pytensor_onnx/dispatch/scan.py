"""Scan, which becomes a loop that carries the latest values and stacks what each step returns.

PyTensor keeps every recurrent output in a buffer that holds its initial values too, and reads past
values by their offset (tap) from the step. Here past values are carried from step to step, one for
each tap, so that no buffer is copied; the buffer is put together after the loop.

The loop is an ONNX Scan, whose steps cost less than those of a Loop, unless a condition may end it
early or a state may change its shape. A Scan cannot run zero steps, so it may stand in an If.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import Add, Minimum, ScalarOp
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.subtensor import IncSubtensor

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import Dim, Dims, constant_ints, dims_of, sizes_in
from pytensor_onnx.dispatch.basic import convert_inner, onnx_funcify
from pytensor_onnx.dispatch.failure import name_failure, name_indexing
from pytensor_onnx.inference import dtype_of


@onnx_funcify.register(Scan)
def lower_scan(op: Scan, node: Apply, onnx: Builder, *outer: ir.Value) -> list[ir.Value]:
    """Run the inner graph step by step."""
    return _Lowering(op, node, onnx, list(outer)).run()


@dataclass
class _History:
    """The latest values of one output, the newest first, carried from step to step.

    Some outputs keep no more than these, and then nothing is stacked.
    """

    initial: list[ir.Value]
    is_kept: bool = False
    past: list[ir.Value] = field(default_factory=list)
    final: list[ir.Value] = field(default_factory=list)
    trace: ir.Value | None = None


class _Lowering:
    """The lowering of one Scan; the inputs and outputs of its op are grouped by `Scan` itself."""

    def __init__(self, op: Scan, node: Apply, onnx: Builder, outer: list[ir.Value]) -> None:
        self.op, self.info, self.node = op, op.info, node
        self.onnx, self.outer = onnx, outer
        self.n_steps = self._checked_steps()
        self.is_scan = self._has_fixed_form()
        self.never_runs = constant_ints(self.n_steps) == [0]
        self.is_guarded = self.is_scan and not self._runs_at_least_once()
        self.place = onnx.subgraph() if self.is_guarded else onnx
        self.loop = self.place.subgraph()
        self.sequences: list[ir.Value] = []
        self.elements: list[ir.Value] = []
        self.step = _declared("step", ir.DataType.INT64, ())
        self.going = _declared("going", ir.DataType.BOOL, ())
        self.state: list[tuple[ir.Value, ir.Value]] = []

    def run(self) -> list[ir.Value]:
        op, info = self.op, self.info
        sequences = [
            self._element(sequence, 0, f"sequence {i}")
            for i, sequence in enumerate(op.outer_seqs(self.outer))
        ]
        mit_mot = self._mit_mot_histories()
        mit_mot_taps = [
            self._mit_mot_tap(i, tap, mit_mot[i])
            for i, taps in enumerate(info.normalized_mit_mot_in_slices)
            for tap in taps
        ]
        recurrent = self._recurrent_histories()
        taps = [
            history.past[-tap - 1]
            for history, slices in zip(
                recurrent, info.mit_sot_in_slices + info.sit_sot_in_slices, strict=True
            )
            for tap in slices
        ]
        mapped = self._mapped_histories()
        untraced = [self._carry(x) for x in op.outer_untraced_sit_sot(self.outer)]
        arguments = [*sequences, *mit_mot_taps, *taps, *untraced, *op.outer_non_seqs(self.outer)]
        results = convert_inner(op.fgraph, self.loop, arguments)
        return self._close(results, mit_mot, recurrent, mapped)

    def _checked_steps(self) -> ir.Value:
        """Return the number of steps, which fails where it is negative."""
        steps = self.onnx.cast(self.outer[0], "int64")
        if steps.const_value is not None:
            if int(steps.const_value.numpy()) < 0:
                raise self.onnx.unsupported("a scan cannot run a negative number of steps")
            return steps
        if sizes_in(steps) not in (None, (None,)):
            return steps
        is_negative = self.onnx.cast(self.onnx.Less(steps, 0), "int64")
        checked = self.onnx.Gather(self.onnx.Unsqueeze(steps, [0]), is_negative, axis=0)
        name = self.op.name or "scan"
        name_failure(
            self.onnx, checked, IndexError(f"{name} was asked to run a negative number of steps")
        )
        return checked

    def _runs_at_least_once(self) -> bool:
        n_steps = self.n_steps.const_value
        return n_steps is not None and int(n_steps.numpy()) > 0

    def _has_fixed_form(self) -> bool:
        """Return whether an ONNX Scan does what is asked: it runs to the end of its sequences."""
        runs_over_something = self.info.n_seqs or any(
            _nearest_later(writes, tap) is None
            for reads, writes in zip(
                self.info.normalized_mit_mot_in_slices,
                self.info.normalized_mit_mot_out_slices,
                strict=True,
            )
            for tap in reads
        )
        untraced = self.op.outer_untraced_sit_sot(self.node.inputs)
        return (
            not self.info.as_while
            and bool(runs_over_something)
            and all(None not in getattr(variable.type, "shape", ()) for variable in untraced)
        )

    def _element(self, sequence: ir.Value, start: int, what: str) -> ir.Value:
        """Return what a sequence holds at a position from the step on."""
        failure = ValueError(f"{what} of {self.op.name or 'scan'} ends before its steps do")
        if self.is_scan:
            sequence = self._cut(sequence, start, failure)
            dims = dims_of(sequence)
            element = _declared("element", dtype_of(sequence), dims[1:] if dims else None)
            self.elements.append(element)
            self.sequences.append(sequence)
            return element
        position = self.loop.Add(self.step, start) if start else self.step
        element = self.loop.Gather(sequence, position, axis=0)
        name_failure(self.loop, element, failure)
        return element

    def _cut(self, sequence: ir.Value, start: int, failure: Exception) -> ir.Value:
        """Return as much of a sequence as there are steps, which fails where it is too short."""
        place, canonical = self.place, self.onnx.scope.canonical_dim
        dims = self.onnx.dims(sequence)
        steps = sizes_in(self.n_steps)
        if (
            not start
            and steps
            and steps[0] is not None
            and canonical(dims[0]) == canonical(steps[0])
        ):
            return sequence
        count = place.Unsqueeze(self.n_steps, [0])
        end = place.Add(count, start) if start else count
        cut = place.Slice(sequence, [start], end, [0])
        rows = place.sizes(sequence, 1, len(dims))
        exact = place.Reshape(cut, place.Concat(count, rows, axis=0), allowzero=1)
        exact.shape = ir.Shape((None, *dims[1:]))
        name_failure(place, exact, failure)
        return exact

    def _carry(self, initial: ir.Value) -> ir.Value:
        """Return the value that a step gets, and note where it starts from."""
        dims = dims_of(initial)
        inside = _declared("state", dtype_of(initial), dims)
        self.state.append((initial, inside))
        return inside

    def _history(self, initial: list[ir.Value], *, is_kept: bool = False) -> _History:
        return _History(initial, is_kept, [self._carry(x) for x in initial])

    def _recurrent_histories(self) -> list[_History]:
        op, info = self.op, self.info
        buffers = op.outer_mitsot(self.outer) + op.outer_sitsot(self.outer)
        variables = op.outer_mitsot(self.node.inputs) + op.outer_sitsot(self.node.inputs)
        histories = []
        for buffer, variable, taps in zip(
            buffers, variables, info.mit_sot_in_slices + info.sit_sot_in_slices, strict=True
        ):
            length = -min(taps)
            initial = self._initial_rows(variable, buffer)
            source = buffer if initial is None else initial
            rows = [self._row(source, i) for i in range(length)][::-1]
            kept = self._rows_kept(buffer, variable, length)
            # Only as many rows are returned as there are values, so that any may fill up the rest.
            filling = [rows[-1]] * ((kept or length) - length)
            histories.append(self._history([*rows, *filling], is_kept=kept is not None))
        return histories

    def _rows_kept(self, buffer: ir.Value, variable: Variable, n_initial: int) -> int | None:
        """Return how many of the latest values a buffer holds at most, None where not a few."""
        dims, n_steps = dims_of(buffer), self.node.inputs[0]
        size = None if dims is None else dims[0]
        if size == n_initial:
            return n_initial
        if self.info.as_while:
            return None
        if isinstance(size, int) and isinstance(n_steps, Constant):
            is_filled = size <= int(n_steps.data) + n_initial
            return size if is_filled and size <= _MOST_CARRIED else None
        limit = _most_steps(_buffer_size(variable), n_steps, n_initial)
        return limit + n_initial if limit and limit + n_initial <= _MOST_CARRIED else None

    def _mapped_histories(self) -> list[_History | None]:
        """Return the history of each output without recurrence; None for those to be stacked."""
        n_outer = len(self.node.outputs) - self.info.n_nit_sot - self.info.n_untraced_sit_sot
        return [
            self._mapped_history(size, variable)
            for size, variable in zip(
                self.op.outer_nitsot(self.node.inputs),
                self.node.outputs[n_outer : n_outer + self.info.n_nit_sot],
                strict=True,
            )
        ]

    def _mapped_history(self, size: Variable, variable: Variable) -> _History | None:
        n_steps, row = self.node.inputs[0], variable.type.shape[1:]
        if not isinstance(size, Constant) or None in row:
            return None
        kept = int(size.data)
        is_filled = not isinstance(n_steps, Constant) or kept <= int(n_steps.data)
        if not 0 < kept <= (1 if self.info.as_while else _MOST_CARRIED) or not is_filled:
            return None
        nothing = self.onnx.constant(np.zeros(row, variable.type.dtype))
        return self._history([nothing] * kept, is_kept=True)

    def _initial_rows(self, variable: Variable, buffer: ir.Value) -> ir.Value | None:
        """Return what was put into a fresh buffer before the loop, None where that is not known.

        What is written to a buffer broadcasts along its rows.
        """
        written = _written_to_fresh_buffer(variable)
        value = None if written is None else self.onnx.peek(written)
        dims, whole = dims_of(value), dims_of(buffer)
        if value is None or not dims or whole is None or len(dims) != len(whole):
            return None
        canonical = self.onnx.scope.canonical_dim
        if [*map(canonical, dims[1:])] == [*map(canonical, whole[1:])]:
            return value
        return self.onnx.Expand(
            value,
            self.onnx.Concat(self.onnx.ints([1]), self.onnx.sizes(buffer, 1, len(whole)), axis=0),
        )

    def _row(self, buffer: ir.Value, position: int) -> ir.Value:
        producer = buffer.producer()
        if producer is not None and producer.op_type == "Unsqueeze":
            operand, axes = producer.inputs
            if constant_ints(axes) == [0] and operand is not None:
                return operand
        return self.onnx.Gather(buffer, np.int64(position), axis=0)

    def _mit_mot_histories(self) -> list[dict[int, _History]]:
        """Return, for each buffer that is read and written, the histories of its written offsets.

        What is read at offset t was written by the nearest later offset o, o - t steps before.
        """
        groups = []
        for buffer, reads, writes in zip(
            self.op.outer_mitmot(self.outer),
            self.info.normalized_mit_mot_in_slices,
            self.info.normalized_mit_mot_out_slices,
            strict=True,
        ):
            depths = dict.fromkeys(writes, 0)
            for tap in reads:
                written = _nearest_later(writes, tap)
                if written is not None:
                    depths[written] = max(depths[written], written - tap)
            groups.append(
                {
                    o: self._history([self._row(buffer, o - k) for k in range(1, depth + 1)])
                    for o, depth in depths.items()
                }
            )
        return groups

    def _mit_mot_tap(self, group: int, tap: int, histories: dict[int, _History]) -> ir.Value:
        written = _nearest_later(tuple(histories), tap)
        if written is not None:
            return histories[written].past[written - tap - 1]
        return self._element(self.op.outer_mitmot(self.outer)[group], tap, f"buffer {group}")

    def _close(
        self,
        results: list[ir.Value],
        mit_mot: list[dict[int, _History]],
        recurrent: list[_History],
        mapped: list[_History | None],
    ) -> list[ir.Value]:
        """Emit the loop and return the outputs of the Scan."""
        op = self.op
        histories = [
            *(h for group in mit_mot for h in group.values()),
            *recurrent,
            *(h or _History([]) for h in mapped),
        ]
        computed = [
            *(x for group in op.inner_mitmot_outs_grouped(results) for x in group),
            *op.inner_mitsot_outs(results),
            *op.inner_sitsot_outs(results),
            *op.inner_nitsot_outs(results),
        ]
        next_state: list[ir.Value] = []
        for history, new in zip(histories, computed, strict=True):
            next_state += [new, *history.past][: len(history.past)]
        next_state += op.inner_untraced_sit_sot_outs(results)
        stacked = [
            new for history, new in zip(histories, computed, strict=True) if not history.is_kept
        ]
        values = self._emit(results, next_state, stacked)
        last, traces = values[: len(self.state)], values[len(self.state) :]
        for trace, row in zip(traces, stacked, strict=True):
            dims = dims_of(row)
            trace.shape = None if dims is None else ir.Shape((self._length(), *_sizes_only(dims)))
        for history in histories:
            history.final, last = last[: len(history.past)], last[len(history.past) :]
            if not history.is_kept:
                history.trace, *traces = traces
        buffers = op.outer_mitsot(self.outer) + op.outer_sitsot(self.outer)
        variables = op.outer_mitsot(self.node.inputs) + op.outer_sitsot(self.node.inputs)
        return [
            *(self._mit_mot_output(i, group) for i, group in enumerate(mit_mot)),
            *map(self._recurrent_output, recurrent, buffers, variables),
            *map(
                self._mapped_output,
                histories[len(histories) - len(mapped) :],
                op.outer_nitsot(self.outer),
                op.outer_nitsot(self.node.inputs),
            ),
            *last,
        ]

    def _length(self) -> Dim:
        """Return the dimension that a trace has, where it is known."""
        steps = sizes_in(self.n_steps)
        return steps[0] if steps and not self.info.as_while else None

    def _emit(
        self, results: list[ir.Value], next_state: list[ir.Value], stacked: list[ir.Value]
    ) -> list[ir.Value]:
        """Emit the loop; return the last state, and what was stacked."""
        initial = [outside for outside, _ in self.state]
        if self.never_runs:
            return [*initial, *(self._empty_trace(self.onnx, row) for row in stacked)]
        inside = [inside for _, inside in self.state]
        if not self.is_scan:
            going = self._condition(results)
            body = self.loop.graph([self.step, self.going, *inside], [going, *next_state, *stacked])
            name_indexing(self.onnx, body, self.op.name or "scan")
            return self.place.loop(self.n_steps, None, initial, body)
        body = self.loop.graph([*inside, *self.elements], [*next_state, *stacked])
        name_indexing(self.onnx, body, self.op.name or "scan")
        values = self.place.scan(initial, self.sequences, body)
        if not self.is_guarded:
            return values
        skipped = self.onnx.subgraph()
        nothing = [*initial, *(self._empty_trace(skipped, row) for row in stacked)]
        return self.onnx.if_else(
            self.onnx.Greater(self.n_steps, 0),
            self.place.graph([], values),
            skipped.graph([], nothing),
        )

    def _empty_trace(self, builder: Builder, row: ir.Value) -> ir.Value:
        """Return what is stacked in no step; sizes that only a step tells are zero."""
        sizes = [d if isinstance(d, int) else 0 for d in dims_of(row) or ()]
        return builder.Identity(builder.constant(np.zeros((0, *sizes), dtype_of(row).numpy())))

    def _condition(self, results: list[ir.Value]) -> ir.Value:
        """Return whether another step follows: an inner `until` that holds ends the loop."""
        if not self.info.as_while:
            return self.loop.Identity(self.going)
        return self.loop.Not(self.loop.cast(results[-1], "bool"))

    def _mit_mot_output(self, group: int, histories: dict[int, _History]) -> ir.Value:
        """Return a buffer with what was written to it, the last write to each place winning."""
        onnx, buffer = self.onnx, self.op.outer_mitmot(self.outer)[group]
        dims = dims_of(buffer)
        for offset in sorted(histories, reverse=True):
            trace = self._with_row_shape(histories[offset].trace, buffer)
            end = onnx.Add(onnx.Shape(trace, start=0, end=1), offset)
            parts = [onnx.Slice(buffer, [0], [offset], [0])] if offset else []
            parts += [trace, onnx.Slice(buffer, end, onnx.ints([_END]), onnx.ints([0]))]
            buffer = onnx.Concat(*parts, axis=0)
            buffer.shape = None if dims is None else ir.Shape(dims)
        return buffer

    def _recurrent_output(
        self, history: _History, buffer: ir.Value, variable: Variable
    ) -> ir.Value:
        """Return initial values and trace as PyTensor keeps them: the last that fit the buffer."""
        onnx = self.onnx
        if history.is_kept:
            n_kept, size = len(history.final), onnx.dims(buffer)[0]
            first = None if size == n_kept else onnx.Sub(n_kept, onnx.sizes(buffer, 0, 1))
            return self._joined(history.final, first)
        n_initial = len(history.initial)
        rows = [onnx.Unsqueeze(x, [0]) for x in reversed(history.initial)]
        trace = self._with_row_shape(history.trace, buffer)
        whole = onnx.Concat(*rows, trace, axis=0)
        return self._fit(whole, None, variable, n_initial, buffer)

    def _mapped_output(self, history: _History, size: ir.Value, variable: Variable) -> ir.Value:
        """Return what is computed without recurrence, the last that are asked for."""
        if not history.is_kept:
            assert history.trace is not None
            return self._fit(history.trace, size, variable, 0)
        n_steps, n_kept = self.n_steps, len(history.final)
        if n_steps.const_value is not None:
            return self._joined(history.final, None)
        missing = self.onnx.Max(self.onnx.Sub(n_kept, n_steps), 0)
        return self._joined(history.final, self.onnx.Unsqueeze(missing, [0]))

    def _joined(self, newest_first: list[ir.Value], first: ir.Value | None) -> ir.Value:
        """Return values in the order of the steps, all or from a position on."""
        onnx = self.onnx
        rows = [onnx.Unsqueeze(x, [0]) for x in reversed(newest_first)]
        joined = onnx.Concat(*rows, axis=0) if len(rows) > 1 else rows[0]
        if first is None:
            return joined
        return onnx.Slice(joined, first, onnx.ints([_END]), onnx.ints([0]))

    def _with_row_shape(self, trace: ir.Value | None, buffer: ir.Value) -> ir.Value:
        """Return a trace whose rows have the shape of a buffer's, even if there are none."""
        assert trace is not None
        dims = dims_of(buffer)
        if self._runs_at_least_once() or dims is None or all(isinstance(d, int) for d in dims[1:]):
            return trace
        onnx = self.onnx
        shape = onnx.Concat(
            onnx.Shape(trace, start=0, end=1), onnx.sizes(buffer, 1, len(dims)), axis=0
        )
        reshaped = onnx.Reshape(trace, shape, allowzero=1)
        reshaped.shape = ir.Shape((None, *dims[1:]))
        return reshaped

    def _fit(
        self,
        whole: ir.Value,
        size: ir.Value | None,
        variable: Variable,
        n_initial: int,
        buffer: ir.Value | None = None,
    ) -> ir.Value:
        """Return the last rows that a buffer holds; one that is too long ends in zeros.

        The latter happens to gradients that are truncated, as they are not computed for all steps.
        """
        if self._is_exact(variable, n_initial):
            return whole
        onnx = self.onnx
        if size is None:
            assert buffer is not None
            size = onnx.size(buffer, 0)
        size = onnx.Reshape(onnx.cast(size, "int64"), onnx.ints([1]))
        rank = len(onnx.dims(whole))
        n_rows = onnx.Shape(whole, start=0, end=1)
        missing = onnx.Max(onnx.Sub(size, n_rows), 0)
        start = onnx.Max(onnx.Sub(n_rows, size), 0)
        last = onnx.Slice(whole, start, onnx.ints([_END]), onnx.ints([0]))
        # The size that PyTensor reduces the trace to, for all but its last steps, is a constant.
        is_reduced = isinstance(variable, Constant) and self.n_steps.const_value is None
        if self.info.as_while or is_reduced:
            return last
        zero = onnx.constant(np.zeros((), dtype_of(whole).numpy()))
        shape = (
            missing
            if rank == 1
            else onnx.Concat(missing, onnx.Shape(whole, start=1, end=rank), axis=0)
        )
        return onnx.Concat(last, onnx.Expand(zero, shape), axis=0)

    def _is_exact(self, variable: Variable, n_initial: int) -> bool:
        """Return whether a buffer is known to hold all of an output and no more."""
        n_steps = self.node.inputs[0]
        size = _buffer_size(variable) if n_initial else variable
        if size is None:
            return False
        if isinstance(size, Constant) and isinstance(n_steps, Constant):
            return int(size.data) == int(n_steps.data) + n_initial
        return _is_sum(size, n_steps, n_initial)


_END = np.iinfo(np.int64).max
_MOST_CARRIED = 8


def _declared(name: str, dtype: ir.DataType, dims: Dims | None) -> ir.Value:
    shape = None if dims is None else ir.Shape(_sizes_only(dims))
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)


def _sizes_only(dims: Dims) -> list[Dim]:
    return [d if isinstance(d, int) else None for d in dims]


def _nearest_later(writes: Sequence[int], tap: int) -> int | None:
    return min((o for o in writes if o > tap), default=None)


def _written_to_fresh_buffer(variable: Variable) -> Variable | None:
    """Return what `set_subtensor(empty[:k], rows)` put first into a buffer, one row for each k."""
    node = variable.owner
    if node is None or not isinstance(node.op, IncSubtensor) or not node.op.set_instead_of_inc:
        return None
    empty, rows, *bounds = node.inputs
    (index,) = node.op.idx_list if len(node.op.idx_list) == 1 else (None,)
    starts_first = isinstance(index, slice) and index.start is None and index.step is None
    if not starts_first or empty.owner is None or not isinstance(empty.owner.op, AllocEmpty):
        return None
    stop = bounds[0] if len(bounds) == 1 else None
    n_rows = rows.type.shape[0] if rows.type.ndim else None
    is_whole = isinstance(stop, Constant) and n_rows == int(stop.data)
    return rows if is_whole else None


def _buffer_size(variable: Variable) -> Variable | None:
    """Return the length of a buffer that PyTensor allocated for a scan."""
    owner = variable.owner
    if owner is not None and isinstance(owner.op, IncSubtensor):
        owner = owner.inputs[0].owner
    if owner is None or not isinstance(owner.op, AllocEmpty):
        return None
    return owner.inputs[0]


def _is_sum(size: Variable, n_steps: Variable, n_initial: int) -> bool:
    """Return whether an expression is the number of steps plus a constant."""
    size, n_steps = _unwrapped(size), _unwrapped(n_steps)
    if n_initial == 0:
        return size is n_steps
    return any(
        int(constant.data) == n_initial and other is n_steps
        for constant, other in _constant_operands(size, Add)
    )


def _most_steps(size: Variable | None, n_steps: Variable, n_initial: int) -> int | None:
    """Return the constant c where a size is the lesser of c and the steps, plus a constant."""
    if size is None:
        return None
    for constant, other in _constant_operands(size, Add):
        for limit, count in _constant_operands(other, Minimum):
            if int(constant.data) == n_initial and count is _unwrapped(n_steps):
                return int(limit.data)
    return None


def _constant_operands(
    variable: Variable, scalar_op: type[ScalarOp]
) -> list[tuple[Constant, Variable]]:
    """Return the constant and the other operand of a scalar operation, nothing where not such."""
    node = _unwrapped(variable).owner
    if node is None or len(node.inputs) != 2:
        return []
    if not isinstance(getattr(node.op, "scalar_op", node.op), scalar_op):
        return []
    first, second = map(_unwrapped, node.inputs)
    pairs = [(first, second), (second, first)]
    return [(a, b) for a, b in pairs if isinstance(a, Constant)]


def _unwrapped(variable: Variable) -> Variable:
    """Return what stands behind conversions between tensors and scalars."""
    while variable.owner is not None and isinstance(
        variable.owner.op, TensorFromScalar | ScalarFromTensor
    ):
        (variable,) = variable.owner.inputs
    return variable
