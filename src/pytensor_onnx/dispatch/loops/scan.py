"""Scan, which becomes a loop that carries the latest values and stacks the results of the steps.

PyTensor keeps every recurrent output in a buffer that holds its initial values too, and reads past
values by their offset (tap) from the step. Here past values are carried from step to step, one for
each tap, so that no buffer is copied; the buffer is put together after the loop.

The loop is an ONNX Scan, whose steps cost less than those of a Loop, unless a condition may end it
early or a state may change its shape. Without sequences, the number of steps and the shapes of the
states have to be known. A Scan cannot run zero steps, so it may stand in an If.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.scan.op import Scan

from pytensor_onnx.dispatch.loops.scalar_loop import checked_count, first_rows
from pytensor_onnx.dispatch.loops.scan_histories import (
    Histories,
    History,
    Outputs,
    nearest_later,
    runs_at_least_once,
)
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.graph.builder import Builder, name_failure
from pytensor_onnx.operators.dims import Dim, Dims, constant_ints, dims_of, sizes_in
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.loops import StepCount

Read = tuple[ir.Value, int, Exception]
"""A sequence, the position of its first element, and the failure of a sequence too short."""


@onnx_funcify.register(Scan)
def lower_scan(op: Scan, node: Apply, build: Builder, *outer: ir.Value) -> list[ir.Value]:
    """Run the inner graph step by step."""
    return _Lowering(op, node, build, list(outer)).run()


class _Lowering:
    """Lowering of one Scan, with its inputs and outputs grouped as by `Scan`."""

    def __init__(self, op: Scan, node: Apply, build: Builder, outer: list[ir.Value]) -> None:
        self.op, self.info, self.node = op, op.info, node
        self.build, self.outer = build, outer
        self.n_steps = self._checked_steps()
        self.reads = self._reads()
        self.is_scan = self._has_fixed_form()
        histories = Histories(op, node, build, self.outer)
        self.mit_mot = histories.mit_mot()
        self.recurrent = histories.recurrent()
        self.mapped = histories.mapped()
        self.histories = [
            *(history for group in self.mit_mot for history in group.values()),
            *self.recurrent,
            *(history or History([]) for history in self.mapped),
        ]
        self.traced = self._traced()
        self.stacked: list[ir.Value] = []

    def run(self) -> list[ir.Value]:
        """Emit the loop and return the outputs of the Scan."""
        untraced = self.op.outer_untraced_sit_sot(self.outer)
        initial = [*(x for history in self.histories for x in history.initial), *untraced]
        values = self._emit(initial)
        last, traces = values[: len(initial)], values[len(initial) :]
        for trace, row in zip(traces, self.stacked, strict=True):
            dims = dims_of(row)
            trace.shape = None if dims is None else ir.Shape((self._length(), *_sizes_only(dims)))
        for history in self.histories:
            history.final, last = last[: len(history.initial)], last[len(history.initial) :]
        for i, trace in zip(self.traced, traces, strict=True):
            self.histories[i].trace = trace
        return [*self._outputs(), *last]

    def _emit(self, initial: list[ir.Value]) -> list[ir.Value]:
        """Emit the loop; return the last state and the stacked rows."""
        if constant_ints(self.n_steps) == [0]:
            self._loop(self.build.subgraph(), initial)
            return self._skipped(self.build, initial)
        is_guarded = self.is_scan and not self.build.scope.is_portable
        if not is_guarded or runs_at_least_once(self.n_steps):
            return self._loop(self.build, initial)
        return self.build.cond(
            self.build.Greater(self.n_steps, 0),
            lambda then: self._loop(then, initial),
            lambda otherwise: self._skipped(otherwise, initial),
        )

    def _loop(self, build: Builder, initial: list[ir.Value]) -> list[ir.Value]:
        if self.is_scan:

            def step(body: Builder, *values: ir.Value) -> list[ir.Value]:
                return self._step(body, values[: len(initial)], values[len(initial) :])[0]

            cut = [self._cut(build, *read) for read in self.reads]
            return build.scan(initial, cut or [self._steps_without_value(build)], step)

        def step_if_going(body: Builder, i: ir.Value, *state: ir.Value) -> list[ir.Value]:
            elements = [_element(body, i, *read) for read in self.reads]
            values, results = self._step(body, state, elements)
            # An inner `until` that holds ends the loop.
            going = [_negated(body, body.cast(results[-1], "bool"))] if self.info.as_while else []
            return [*going, *values]

        condition = build.constant(np.True_) if self.info.as_while else None
        return build.loop(self.n_steps, condition, initial, step_if_going)

    def _step(
        self, body: Builder, state: Sequence[ir.Value], elements: Sequence[ir.Value]
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        """Return the next state, the rows to stack, and the results of the inner graph."""
        op, info, rest = self.op, self.info, list(state)
        for history in self.histories:
            history.past, rest = rest[: len(history.initial)], rest[len(history.initial) :]
        read = iter(elements)
        sequences = [next(read) for _ in range(info.n_seqs)]
        mit_mot_taps = [
            next(read) if written is None else group[written].past[written - tap - 1]
            for group, taps in zip(self.mit_mot, info.normalized_mit_mot_in_slices, strict=True)
            for tap in taps
            for written in [nearest_later(tuple(group), tap)]
        ]
        taps = [
            history.past[-tap - 1]
            for history, slices in zip(
                self.recurrent, info.mit_sot_in_slices + info.sit_sot_in_slices, strict=True
            )
            for tap in slices
        ]
        arguments = [*sequences, *mit_mot_taps, *taps, *rest, *op.outer_non_seqs(self.outer)]
        results = convert_inner(op.fgraph, body, arguments)
        computed = [
            *(x for group in op.inner_mitmot_outs_grouped(results) for x in group),
            *op.inner_mitsot_outs(results),
            *op.inner_sitsot_outs(results),
            *op.inner_nitsot_outs(results),
        ]
        values: list[ir.Value] = []
        for history, new in zip(self.histories, computed, strict=True):
            values += [new, *history.past][: len(history.past)]
        values += op.inner_untraced_sit_sot_outs(results)
        self.stacked = [computed[i] for i in self.traced]
        return [*values, *self.stacked], results

    def _skipped(self, build: Builder, initial: list[ir.Value]) -> list[ir.Value]:
        """Return the outputs of zero steps."""
        op, outer = self.op, self.node.inputs
        typed = [
            *(x for x, g in zip(op.outer_mitmot(outer), self.mit_mot, strict=True) for _ in g),
            *op.outer_mitsot(outer),
            *op.outer_sitsot(outer),
            *op.outer_nitsot_outs(self.node.outputs),
        ]
        whole = [typed[i] for i in self.traced]
        return [*initial, *map(partial(_empty_trace, build), self.stacked, whole)]

    def _outputs(self) -> list[ir.Value]:
        op = self.op
        buffers = op.outer_mitsot(self.outer) + op.outer_sitsot(self.outer)
        variables = op.outer_mitsot(self.node.inputs) + op.outer_sitsot(self.node.inputs)
        outputs = Outputs(op, self.node, self.build, self.n_steps)
        return [
            *map(outputs.mit_mot, op.outer_mitmot(self.outer), self.mit_mot),
            *map(outputs.recurrent, self.recurrent, buffers, variables),
            *map(
                outputs.mapped,
                self.histories[len(self.histories) - len(self.mapped) :],
                op.outer_nitsot(self.outer),
                op.outer_nitsot(self.node.inputs),
            ),
        ]

    def _traced(self) -> list[int]:
        """Return the positions of the histories that are stacked.

        Buffers of gradients come last, since often only their last values are used, and results
        that nothing uses are dropped from the end of a loop.
        """
        n_buffers = sum(map(len, self.mit_mot))
        order = [*range(n_buffers, len(self.histories)), *range(n_buffers)]
        return [i for i in order if not self.histories[i].is_kept]

    def _checked_steps(self) -> ir.Value:
        """Return the number of steps, with a node that fails if it is negative."""
        steps = self.build.cast(self.outer[0], "int64")
        if steps.const_value is None:
            if sizes_in(steps) not in (None, (None,)):
                return steps
            return checked_count(self.build, steps, StepCount(self.op.name or "scan").failure)
        if int(steps.const_value.numpy()) < 0:
            raise self.build.unsupported("a scan cannot run a negative number of steps")
        return steps

    def _reads(self) -> list[Read]:
        """Return the sequences, and the parts of buffers that no step has written."""
        info, name = self.info, self.op.name or "scan"
        sequences = [(x, 0, f"sequence {i}") for i, x in enumerate(self.op.outer_seqs(self.outer))]
        buffers = [
            (buffer, tap, f"buffer {i}")
            for i, (buffer, reads, writes) in enumerate(
                zip(
                    self.op.outer_mitmot(self.outer),
                    info.normalized_mit_mot_in_slices,
                    info.normalized_mit_mot_out_slices,
                    strict=True,
                )
            )
            for tap in reads
            if nearest_later(writes, tap) is None
        ]
        return [
            (value, start, ValueError(f"{what} of {name} ends before its steps do"))
            for value, start, what in (*sequences, *buffers)
        ]

    def _has_fixed_form(self) -> bool:
        """Return whether an ONNX Scan suffices, which runs to the end of its sequences."""
        if not self.build.scope.has_scan:
            return False
        op, outputs = self.op, self.op.fgraph.outputs
        states = list(op.outer_untraced_sit_sot(self.node.inputs))
        if not self.reads and self.build.scope.is_portable:
            # OpenVINO and tract have no Scan that only counts its steps.
            return False
        if not self.reads:
            # A file of a Loop is shorter if the number is unknown, and a traced state may grow.
            if self.n_steps.const_value is None:
                return False
            states += [*op.inner_mitsot_outs(outputs), *op.inner_sitsot_outs(outputs)]
            states += op.inner_untraced_sit_sot_outs(outputs)
        return not self.info.as_while and all(
            None not in getattr(variable.type, "shape", ()) for variable in states
        )

    def _steps_without_value(self, build: Builder) -> ir.Value:
        """Return a sequence that only counts the steps, with one byte for each."""
        return build.ConstantOfShape(build.Unsqueeze(self.n_steps, [0]), value=np.zeros(1, "bool"))

    def _cut(self, build: Builder, sequence: ir.Value, start: int, failure: Exception) -> ir.Value:
        """Cut a sequence to the number of steps, by a node that fails if it is too short."""
        canonical = build.scope.dims.canonical
        length, steps = canonical(build.dims(sequence)[0]), sizes_in(self.n_steps)
        if not start and steps and steps[0] is not None and length == canonical(steps[0]):
            return sequence
        return first_rows(build, sequence, self.n_steps, failure, start)

    def _length(self) -> Dim:
        """Return the dimension of a trace, if known."""
        steps = sizes_in(self.n_steps)
        return steps[0] if steps and not self.info.as_while else None


def _element(
    body: Builder, i: ir.Value, sequence: ir.Value, start: int, failure: Exception
) -> ir.Value:
    """Return the element of a sequence for a step."""
    element = body.Gather(sequence, body.Add(i, start) if start else i, axis=0)
    name_failure(body, element, failure)
    return element


def _negated(body: Builder, condition: ir.Value) -> ir.Value:
    """Return the opposite of a condition, which may be the operand of a Not."""
    node = condition.producer()
    operand = node.inputs[0] if node is not None and node.op_type == "Not" else None
    return body.Not(condition) if operand is None else operand


def _empty_trace(builder: Builder, row: ir.Value, whole: Variable) -> ir.Value:
    """Return the trace of zero steps, with zeros for unknown sizes."""
    known = zip(dims_of(row) or (), whole.type.shape[1:], strict=True)
    sizes = [d if isinstance(d, int) else size or 0 for d, size in known]
    return builder.Identity(builder.constant(np.zeros((0, *sizes), dtype_of(row).numpy())))


def _sizes_only(dims: Dims) -> list[Dim]:
    return [d if isinstance(d, int) else None for d in dims]
