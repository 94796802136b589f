"""Scan, which becomes a loop that carries the latest values and stacks what each step returns.

PyTensor keeps every recurrent output in a buffer that holds its initial values too, and reads past
values by their offset (tap) from the step. Here past values are carried from step to step, one for
each tap, so that no buffer is copied; the buffer is put together after the loop.

The loop is an ONNX Scan, whose steps cost less than those of a Loop, unless a condition may end it
early or a state may change its shape. A Scan cannot run zero steps, so it may stand in an If.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.scan.op import Scan

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import Dim, Dims, constant_ints, dims_of, sizes_in
from pytensor_onnx.dispatch.basic import convert_inner, onnx_funcify
from pytensor_onnx.dispatch.loop_checks import checked_count, first_rows
from pytensor_onnx.dispatch.scan_buffers import nearest_later
from pytensor_onnx.dispatch.scan_history import Histories, History
from pytensor_onnx.dispatch.scan_outputs import Outputs, runs_at_least_once
from pytensor_onnx.failures import name_failure
from pytensor_onnx.inference import dtype_of
from pytensor_onnx.rewriting.loop_checks import StepCount


@onnx_funcify.register(Scan)
def lower_scan(op: Scan, node: Apply, onnx: Builder, *outer: ir.Value) -> list[ir.Value]:
    """Run the inner graph step by step."""
    return _Lowering(op, node, onnx, list(outer)).run()


class _Lowering:
    """The lowering of one Scan; the inputs and outputs of its op are grouped by `Scan` itself."""

    def __init__(self, op: Scan, node: Apply, onnx: Builder, outer: list[ir.Value]) -> None:
        self.op, self.info, self.node = op, op.info, node
        self.onnx, self.outer = onnx, outer
        self.n_steps = self._checked_steps()
        self.is_scan = self._has_fixed_form()
        self.never_runs = constant_ints(self.n_steps) == [0]
        self.is_guarded = self.is_scan and not runs_at_least_once(self.n_steps)
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
        histories = Histories(op, self.node, self.onnx, self.outer, self._carry)
        mit_mot = histories.mit_mot()
        mit_mot_taps = [
            self._mit_mot_tap(i, tap, mit_mot[i])
            for i, taps in enumerate(info.normalized_mit_mot_in_slices)
            for tap in taps
        ]
        recurrent = histories.recurrent()
        taps = [
            history.past[-tap - 1]
            for history, slices in zip(
                recurrent, info.mit_sot_in_slices + info.sit_sot_in_slices, strict=True
            )
            for tap in slices
        ]
        mapped = histories.mapped()
        untraced = [self._carry(x) for x in op.outer_untraced_sit_sot(self.outer)]
        arguments = [*sequences, *mit_mot_taps, *taps, *untraced, *op.outer_non_seqs(self.outer)]
        results = convert_inner(op.fgraph, self.loop, arguments)
        return self._close(results, mit_mot, recurrent, mapped)

    def _checked_steps(self) -> ir.Value:
        """Return the number of steps, which fails where it is negative."""
        steps = self.onnx.cast(self.outer[0], "int64")
        if steps.const_value is None:
            if sizes_in(steps) not in (None, (None,)):
                return steps
            return checked_count(self.onnx, steps, StepCount(self.op.name or "scan").failure)
        if int(steps.const_value.numpy()) < 0:
            raise self.onnx.unsupported("a scan cannot run a negative number of steps")
        return steps

    def _has_fixed_form(self) -> bool:
        """Return whether an ONNX Scan does what is asked: it runs to the end of its sequences."""
        runs_over_something = self.info.n_seqs or any(
            nearest_later(writes, tap) is None
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
        canonical = self.onnx.scope.canonical_dim
        dims = self.onnx.dims(sequence)
        steps = sizes_in(self.n_steps)
        if (
            not start
            and steps
            and steps[0] is not None
            and canonical(dims[0]) == canonical(steps[0])
        ):
            return sequence
        return first_rows(self.place, sequence, self.n_steps, failure, start)

    def _carry(self, initial: ir.Value) -> ir.Value:
        """Return the value that a step gets, and note where it starts from."""
        dims = dims_of(initial)
        inside = _declared("state", dtype_of(initial), dims)
        self.state.append((initial, inside))
        return inside

    def _mit_mot_tap(self, group: int, tap: int, histories: dict[int, History]) -> ir.Value:
        written = nearest_later(tuple(histories), tap)
        if written is not None:
            return histories[written].past[written - tap - 1]
        return self._element(self.op.outer_mitmot(self.outer)[group], tap, f"buffer {group}")

    def _close(
        self,
        results: list[ir.Value],
        mit_mot: list[dict[int, History]],
        recurrent: list[History],
        mapped: list[History | None],
    ) -> list[ir.Value]:
        """Emit the loop and return the outputs of the Scan."""
        op = self.op
        histories = [
            *(h for group in mit_mot for h in group.values()),
            *recurrent,
            *(h or History([]) for h in mapped),
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
        outer = self.node.inputs
        typed = [
            *(x for x, g in zip(op.outer_mitmot(outer), mit_mot, strict=True) for _ in g),
            *op.outer_mitsot(outer),
            *op.outer_sitsot(outer),
            *op.outer_nitsot_outs(self.node.outputs),
        ]
        empty = [
            _sizes_of_no_steps(new, variable)
            for history, new, variable in zip(histories, computed, typed, strict=True)
            if not history.is_kept
        ]
        values = self._emit(results, next_state, stacked, empty)
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
        outputs = Outputs(op, self.node, self.onnx, self.n_steps)
        return [
            *map(outputs.mit_mot, op.outer_mitmot(self.outer), mit_mot),
            *map(outputs.recurrent, recurrent, buffers, variables),
            *map(
                outputs.mapped,
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
        self,
        results: list[ir.Value],
        next_state: list[ir.Value],
        stacked: list[ir.Value],
        empty: list[list[int]],
    ) -> list[ir.Value]:
        """Emit the loop; return the last state, and what was stacked."""
        initial = [outside for outside, _ in self.state]
        if self.never_runs:
            return [*initial, *map(partial(_empty_trace, self.onnx), stacked, empty)]
        inside = [inside for _, inside in self.state]
        if not self.is_scan:
            going = self._condition(results)
            body = self.loop.graph([self.step, self.going, *inside], [going, *next_state, *stacked])
            return self.place.loop(self.n_steps, None, initial, body)
        body = self.loop.graph([*inside, *self.elements], [*next_state, *stacked])
        values = self.place.scan(initial, self.sequences, body)
        if not self.is_guarded:
            return values
        skipped = self.onnx.subgraph()
        nothing = [*initial, *map(partial(_empty_trace, skipped), stacked, empty)]
        return self.onnx.if_else(
            self.onnx.Greater(self.n_steps, 0),
            self.place.graph([], values),
            skipped.graph([], nothing),
        )

    def _condition(self, results: list[ir.Value]) -> ir.Value:
        """Return whether another step follows: an inner `until` that holds ends the loop."""
        if not self.info.as_while:
            return self.loop.Identity(self.going)
        return self.loop.Not(self.loop.cast(results[-1], "bool"))


def _sizes_of_no_steps(row: ir.Value, whole: Variable) -> list[int]:
    """Return the sizes of a row that no step computes; those that only a step tells are zero."""
    known = zip(dims_of(row) or (), whole.type.shape[1:], strict=True)
    return [d if isinstance(d, int) else size or 0 for d, size in known]


def _empty_trace(builder: Builder, row: ir.Value, sizes: list[int]) -> ir.Value:
    """Return what is stacked in no step."""
    return builder.Identity(builder.constant(np.zeros((0, *sizes), dtype_of(row).numpy())))


def _declared(name: str, dtype: ir.DataType, dims: Dims | None) -> ir.Value:
    shape = None if dims is None else ir.Shape(_sizes_only(dims))
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)


def _sizes_only(dims: Dims) -> list[Dim]:
    return [d if isinstance(d, int) else None for d in dims]
